#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The DUT is a router. Turn off reverse-path filtering and redirects, which cost work per packet that no ruleset asks
# for. (systemd's own file sets rp_filter to 2 for each interface, hence the pattern and the later file name.)
set -eu

cat >/etc/sysctl.d/60-fwlab.conf <<'END'
net.ipv4.ip_forward = 1
net.ipv6.conf.all.forwarding = 1
net.ipv4.conf.default.rp_filter = 0
net.ipv4.conf.*.rp_filter = 0
net.ipv4.conf.all.rp_filter = 0
net.ipv4.conf.default.send_redirects = 0
net.ipv4.conf.*.send_redirects = 0
net.ipv4.conf.all.send_redirects = 0
END

[ "$(grep -c '= [01]$' /etc/sysctl.d/60-fwlab.conf)" = 8 ]
