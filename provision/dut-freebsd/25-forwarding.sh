#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The DUT is a router. Without redirects the kernel forwards by its fast path. No packet is sent unasked.
set -eu

cat >/etc/sysctl.conf.local <<'END'
net.inet.ip.redirect=0
net.inet6.ip6.redirect=0
net.inet6.ip6.dad_count=0
END

# shellcheck disable=SC2046 # word splitting is intended
[ "$(sysctl -n $(cut -d= -f1 /etc/sysctl.conf.local) | grep -c '^[01]$')" = 3 ]
