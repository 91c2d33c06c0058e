#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# net.ifnames=0: name the NICs eth0, eth1, ... in the order of their PCI slots, as topology.yml does.
# nokaslr: load the kernel at the same address at every boot. Otherwise results differ by up to 7 % between boots.
# norandmaps: load programs at the same addresses, too. QEMU's translated code depends on them, so an emulated node would
# translate all of a program, its libraries included, each time that it starts: three times the time of a shell loop.
# The file sorts last because a cloud image brings settings of its own.
set -eu

mkdir -p /etc/default/grub.d
cat >/etc/default/grub.d/zz-fwlab.cfg <<'END'
GRUB_CMDLINE_LINUX_DEFAULT="quiet"
GRUB_CMDLINE_LINUX="net.ifnames=0 nokaslr norandmaps console=ttyS0"
GRUB_TIMEOUT=0
GRUB_RECORDFAIL_TIMEOUT=0
GRUB_TERMINAL=console
GRUB_DISABLE_OS_PROBER=true
GRUB_DISABLE_SUBMENU=true
END

sh -n /etc/default/grub.d/zz-fwlab.cfg
