#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# pf and pflog can be loaded, and pf starts off and without a rule. A table may be defined with more than the usual
# 65 535 addresses.
set -eu

cat >/etc/pf.conf <<'END'
# No rule: everything passes.
END
for module in pf pflog; do
    kldstat -q -m $module || kldload $module
done

largest=net.pf.request_maxcount
printf '%s="262144"\n' $largest >/boot/loader.conf.d/fwlab-pf.conf
sysctl $largest=262144

pfctl -nf /etc/pf.conf
pfctl -s info 2>/dev/null | grep -q '^Status: Disabled'
ifconfig pflog0 >/dev/null
[ "$(sysctl -n $largest)" = 262144 ]
