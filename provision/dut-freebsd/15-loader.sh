#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Settings of the boot loader. It reads this folder after /boot/loader.conf, so they win.
# vtnet: checksums and segments made by the host, or packets merged by it, are not what a wire carries; ALTQ leaves a
# NIC with one queue. The serial console is where libvirt and Packer listen. No interface gets an address of its own.
# -n: by default the first stage polls the keyboard for three seconds of the machine's clock, which take a minute where
# that clock counts instructions.
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
net.inet6.ip6.auto_linklocal="0"
END
printf '%s\n' -n >/boot.config

[ "$(grep -c '^hw.vtnet.*="1"$' /boot/loader.conf.d/fwlab.conf)" = 4 ]
grep -qx -e -n /boot.config
