#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# cloud-init's four stages take a third of the boot time in an emulated machine. A seed with "dsmode: local" in its
# meta-data makes the first stage run all init modules, before the network starts; the other three are then skipped.
# Without "dsmode: local" cloud-init works as documented. (`cloud-init status` stays "running" if the last stage was
# skipped, because that stage reports "done".)
set -eu

for unit in cloud-init cloud-config cloud-final; do
    mkdir -p /etc/systemd/system/$unit.service.d
    cat >/etc/systemd/system/$unit.service.d/fwlab.conf <<'END'
[Service]
ExecCondition=/bin/sh -c '! grep -qs dsmode=local /run/cloud-init/status.json'
END
done

# cloud-init's generator runs a few hundred lines of shell at each boot to decide whether to enable cloud-init. Always
# enable it instead.
mkdir -p /etc/systemd/system-generators /etc/systemd/system/multi-user.target.wants
ln -sfn /dev/null /etc/systemd/system-generators/cloud-init-generator
ln -sfn /lib/systemd/system/cloud-init.target /etc/systemd/system/multi-user.target.wants/cloud-init.target

[ -e /etc/systemd/system/multi-user.target.wants/cloud-init.target ]
[ "$(readlink /etc/systemd/system-generators/cloud-init-generator)" = /dev/null ]
