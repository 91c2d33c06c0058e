#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# pf and pflog can be loaded, and pf starts off and without a rule.
set -eu

cat >/etc/pf.conf <<'END'
# No rule: everything passes.
END
for module in pf pflog; do
    kldstat -q -m $module || kldload $module
done

pfctl -nf /etc/pf.conf
pfctl -s info 2>/dev/null | grep -q '^Status: Disabled'
ifconfig pflog0 >/dev/null
