#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# SSH by key only, and without DNS lookups at login. Options on the command line win over sshd_config, which differs
# from release to release.
set -eu

options=
for option in UseDNS=no PasswordAuthentication=no KbdInteractiveAuthentication=no MaxSessions=32 MaxStartups=32 \
    PrintLastLog=no PrintMotd=no; do
    options="$options -o $option"
done
sysrc -q -f /etc/rc.conf.local sshd_enable=YES sshd_rsa_enable=NO sshd_ecdsa_enable=NO sshd_ed25519_enable=YES \
    sshd_flags="${options# }" >/dev/null

# shellcheck disable=SC2086 # word splitting is intended
/usr/sbin/sshd -T $options | grep -qi '^passwordauthentication no$'
