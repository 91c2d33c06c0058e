#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Mask the systemd generators that have nothing to do on a lab's node. Each would run at every boot and every reload.
set -eu

names='cryptsetup gpt-auto hibernate-resume integritysetup rc-local system-update sysv veritysetup'
mkdir -p /etc/systemd/system-generators
for name in $names; do
    ln -sfn /dev/null "/etc/systemd/system-generators/systemd-$name-generator"
done

for name in $names; do
    [ "$(readlink "/etc/systemd/system-generators/systemd-$name-generator")" = /dev/null ]
done
