#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Unpack TRex into /opt/trex if packer/build was given its tarball; otherwise do nothing.
set -eu

from=$(dirname "$0")/../trex.tar.gz
if [ ! -f "$from" ]; then
    [ -z "${FWLAB_TREX_SHA256:-}" ] || { echo "TRex's tarball is missing: run packer/build, not packer" >&2; exit 1; }
    exit 0
fi
echo "$FWLAB_TREX_SHA256  $from" | sha256sum --check --quiet

# Leave out what a lab never runs: debug builds, captures, client emulation.
rm -rf /opt/trex
mkdir -p /opt/trex
tar -xzf "$from" -C /opt/trex --strip-components=1 --no-same-owner --wildcards \
    --exclude='*-debug*' --exclude='*/cap2/*' --exclude='*/avl/*' --exclude='*/exp/*' --exclude='*/emu/*' \
    --exclude='*/trex_emu/*' --exclude='*/trex-emu' --exclude='*/bp-sim-64*' --exclude='*/trex_client_*'
# Record the checksum only: the URL may be a path on the build host.
mkdir -p /etc/fwlab
printf '{"sha256": "%s"}\n' "$FWLAB_TREX_SHA256" >/etc/fwlab/trex.json

# TRex sends through the kernel from a ring of 256 frames. The default socket buffer holds fewer long frames than that,
# so the rest would stay in the ring and leave with the next run's frames.
echo 'net.core.wmem_default = 4194304' >/etc/sysctl.d/80-trex.conf

[ -x /opt/trex/t-rex-64 ] && grep -q wmem /etc/sysctl.d/80-trex.conf
