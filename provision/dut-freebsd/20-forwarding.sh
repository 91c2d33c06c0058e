#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The DUT is a router. Without redirects the kernel forwards by its fast path. No address of its own choice is on a
# link, and no packet is sent there unasked.
set -eu

conf=/etc/rc.conf.local
sysrc -q -f $conf gateway_enable=YES ipv6_gateway_enable=YES icmp_drop_redirect=YES >/dev/null
cat >/etc/sysctl.conf.local <<'END'
net.inet.ip.redirect=0
net.inet6.ip6.redirect=0
net.inet6.ip6.auto_linklocal=0
net.inet6.ip6.dad_count=0
END

[ "$(sysrc -n -f $conf gateway_enable ipv6_gateway_enable | sort -u)" = YES ]
# shellcheck disable=SC2046 # word splitting is intended
[ "$(sysctl -n $(cut -d= -f1 /etc/sysctl.conf.local) | grep -c '^[01]$')" = 4 ]
