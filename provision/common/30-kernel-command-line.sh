#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# net.ifnames=0: NICs are eth0, eth1 in the order of their PCI slots, as topology.yml says.
# nokaslr: the kernel lies at the same addresses in each boot, or figures differ by 7 % from boot to boot.
# The file sorts last, for a cloud image brings settings of its own.
set -eu

mkdir -p /etc/default/grub.d
cat >/etc/default/grub.d/zz-fwlab.cfg <<'END'
GRUB_CMDLINE_LINUX_DEFAULT="quiet"
GRUB_CMDLINE_LINUX="net.ifnames=0 nokaslr console=ttyS0"
GRUB_TIMEOUT=0
GRUB_RECORDFAIL_TIMEOUT=0
GRUB_TERMINAL=console
GRUB_DISABLE_OS_PROBER=true
GRUB_DISABLE_SUBMENU=true
END

sh -n /etc/default/grub.d/zz-fwlab.cfg
