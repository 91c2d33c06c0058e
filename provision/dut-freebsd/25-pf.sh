#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# pf is on with no rule, and pflog can log. Each case of a lab loads everything it measures. pflogd stays off: it holds
# a bpf device open, through which every logged packet would be copied.
set -eu

cat >/etc/pf.conf <<'END'
# No rule: everything passes.
END
sysrc -q -f /etc/rc.conf.local pf_enable=YES pf_rules=/etc/pf.conf pflog_enable=NO kld_list="pf pflog" >/dev/null
for module in pf pflog; do
    kldstat -q -m $module || kldload $module
done

pfctl -nf /etc/pf.conf
[ "$(sysrc -n -f /etc/rc.conf.local pf_enable)" = YES ]
ifconfig pflog0 >/dev/null
