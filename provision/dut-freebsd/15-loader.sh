#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Settings of the boot loader. It reads this folder after /boot/loader.conf, so they win.
# vtnet: checksums and segments made by the host, or packets merged by it, are not what a wire carries; ALTQ leaves a
# NIC with one queue. The serial console is where libvirt and Packer listen.
set -eu

mkdir -p /boot/loader.conf.d
cat >/boot/loader.conf.d/fwlab.conf <<'END'
autoboot_delay="-1"
beastie_disable="YES"
loader_logo="none"
console="comconsole"
comconsole_speed="115200"
boot_serial="YES"
hw.vtnet.csum_disable="1"
hw.vtnet.tso_disable="1"
hw.vtnet.lro_disable="1"
hw.vtnet.altq_disable="1"
END

[ "$(grep -c '^hw.vtnet.*="1"$' /boot/loader.conf.d/fwlab.conf)" = 4 ]
