#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# systemd-networkd manages the NICs, alone. No DHCP: a client keeps a packet socket open, and then the kernel
# time-stamps every packet that it receives. NICs that the machine's seed does not name stay silent.
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

# cloud-init's files ask for nothing that they do not say, except LLDP: another packet socket.
for name in eth0 eth1 eth2 management; do
    mkdir -p /etc/systemd/network/10-cloud-init-$name.network.d
    printf '%s\n' '[Network]' LLDP=no EmitLLDP=no IPv6AcceptRA=no \
        >/etc/systemd/network/10-cloud-init-$name.network.d/fwlab.conf
done

# ping without root: the image keeps no file capabilities.
echo 'net.ipv4.ping_group_range = 0 2147483647' >/etc/sysctl.d/60-fwlab-ping.conf

systemctl --quiet is-enabled systemd-networkd.service
