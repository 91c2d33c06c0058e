#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The replay engine: one static binary, compiled in this Debian (packer/base/engine) and copied into the image.
set -eu

from=$(dirname "$0")/../engine/fwlab-replay
[ -f "$from" ] || { echo "engine/fwlab-replay is missing: it comes with the image (packer/build)" >&2; exit 1; }
install -m 755 "$from" /usr/local/sbin/fwlab-replay

/usr/local/sbin/fwlab-replay --help >/dev/null
