#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# pf and pflog are loaded at boot; pf is off and has no rule: each case of a lab loads everything it measures, and the
# agent switches pf on. pflogd stays off: it holds a bpf device open, through which every logged packet would be copied.
set -eu

cat >/etc/pf.conf <<'END'
# No rule: everything passes.
END
sysrc -q -f /etc/rc.conf.local pf_enable=NO pflog_enable=NO kld_list="pf pflog" >/dev/null
for module in pf pflog; do
    kldstat -q -m $module || kldload $module
done

pfctl -nf /etc/pf.conf
pfctl -s info 2>/dev/null | grep -q '^Status: Disabled'
ifconfig pflog0 >/dev/null
