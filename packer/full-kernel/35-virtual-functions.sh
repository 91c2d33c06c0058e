#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Staged before the common scripts of 40 and above, and only for images with Debian's full kernel. Lets the drivers of
# virtual functions name their NICs before virtio's: the kernel counts eth0, eth1, ... in the order in which drivers find
# NICs, and the links come before the management NIC.
set -eu

drivers="igbvf ixgbevf iavf mlx5_core bnxt_en cxgb4vf"
echo "softdep virtio_net pre: $drivers" >/etc/modprobe.d/fwlab-virtual-functions.conf

for kernel in /lib/modules/*; do
    for driver in $drivers; do
        modinfo -k "${kernel##*/}" -F filename "$driver" >/dev/null
    done
done
