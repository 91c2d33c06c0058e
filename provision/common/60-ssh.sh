#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# SSH by key only, and without DNS lookups at login: every fwlab step opens an SSH session.
set -eu

mkdir -p /etc/ssh/sshd_config.d /run/sshd
cat >/etc/ssh/sshd_config.d/fwlab.conf <<'END'
UseDNS no
GSSAPIAuthentication no
PasswordAuthentication no
KbdInteractiveAuthentication no
MaxSessions 32
MaxStartups 32
PrintLastLog no
END
systemctl --quiet --no-reload enable ssh.service

grep -q '^Include /etc/ssh/sshd_config.d/' /etc/ssh/sshd_config
systemctl --quiet is-enabled ssh.service
