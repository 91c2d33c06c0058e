#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# TRex into /opt/trex, where packer/build was given its tarball; without one there is nothing to do.
set -eu

from=$(dirname "$0")/../trex.tar.gz
if [ ! -f "$from" ]; then
    [ -z "${FWLAB_TREX_SHA256:-}" ] || { echo "TRex's tarball is missing: run packer/build, not packer" >&2; exit 1; }
    exit 0
fi
echo "$FWLAB_TREX_SHA256  $from" | sha256sum --check --quiet

# Without what a generator in a lab never runs: debugging programs, captures, the emulation of clients.
rm -rf /opt/trex
mkdir -p /opt/trex
tar -xzf "$from" -C /opt/trex --strip-components=1 --no-same-owner --wildcards \
    --exclude='*-debug*' --exclude='*/cap2/*' --exclude='*/avl/*' --exclude='*/exp/*' --exclude='*/emu/*' \
    --exclude='*/trex_emu/*' --exclude='*/trex-emu' --exclude='*/bp-sim-64*' --exclude='*/trex_client_*'
# Its address may be a path on the builder's own disk, so only the sum is kept.
mkdir -p /etc/fwlab
printf '{"sha256": "%s"}\n' "$FWLAB_TREX_SHA256" >/etc/fwlab/trex.json

# Through the kernel TRex sends from a ring of 256 frames. With the usual buffer a socket may have fewer of the long
# ones under way; the rest of the ring would wait there for the next run, and leave with that one's frames.
echo 'net.core.wmem_default = 4194304' >/etc/sysctl.d/80-trex.conf

[ -x /opt/trex/t-rex-64 ] && grep -q wmem /etc/sysctl.d/80-trex.conf
