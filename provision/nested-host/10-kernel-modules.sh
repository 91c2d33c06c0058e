#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Load what a host with hardware loads by itself or at the first use, so that the first `fwlab doctor` sees it.
set -eu

printf '%s\n' kvm_amd vhost_net tun macvtap vfio-pci >/etc/modules-load.d/fwlab.conf

for kernel in /lib/modules/*; do
    for module in kvm-amd vhost_net macvtap vfio-pci virtio_net; do
        find "$kernel/kernel" -name "$module.ko*" | grep -q . || { echo "$kernel has no $module" >&2; exit 1; }
    done
done
