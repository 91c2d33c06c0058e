#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# `iptables` is the nft variant, Debian's default. Both variants remain available by their full names.
set -eu

for family in iptables ip6tables; do
    update-alternatives --quiet --set $family /usr/sbin/$family-nft
done

iptables --version | grep -q nf_tables
iptables-legacy --version | grep -q legacy
for tool in nft ipset conntrack tc xdp-filter perf ethtool; do
    command -v $tool >/dev/null
done
