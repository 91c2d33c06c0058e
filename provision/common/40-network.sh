#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# systemd-networkd alone manages the NICs. There is no DHCP: a client holds a packet socket, which makes the kernel
# time-stamp every received packet. NICs that the machine's seed does not configure send nothing.
set -eu

mkdir -p /etc/systemd/network
cat >/etc/systemd/network/90-silent.network <<'END'
[Match]
Name=eth*

[Network]
DHCP=no
LinkLocalAddressing=no
IPv6AcceptRA=no
LLDP=no
EmitLLDP=no
END
systemctl --quiet --no-reload enable systemd-networkd.service
systemctl --quiet --no-reload mask networking.service ifupdown-pre.service NetworkManager.service \
    systemd-networkd-wait-online.service

# cloud-init's files leave LLDP on by default, which is another packet socket.
for name in eth0 eth1 eth2 management; do
    mkdir -p /etc/systemd/network/10-cloud-init-$name.network.d
    printf '%s\n' '[Network]' LLDP=no EmitLLDP=no IPv6AcceptRA=no \
        >/etc/systemd/network/10-cloud-init-$name.network.d/fwlab.conf
done

# Allow ping without root: the image has no file capabilities.
echo 'net.ipv4.ping_group_range = 0 2147483647' >/etc/sysctl.d/60-fwlab-ping.conf

systemctl --quiet is-enabled systemd-networkd.service
