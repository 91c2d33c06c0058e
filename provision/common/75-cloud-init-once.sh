#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Four runs of a Python program are a third of an emulated boot. A seed with "dsmode: local" in its meta-data has
# all its init modules run by the first one, before the network starts; the other three are then left out.
# Without that word everything is as cloud-init documents it. (cloud-init status is "running" where they were
# left out, for the last one would have said "done".)
set -eu

for unit in cloud-init cloud-config cloud-final; do
    mkdir -p /etc/systemd/system/$unit.service.d
    cat >/etc/systemd/system/$unit.service.d/fwlab.conf <<'END'
[Service]
ExecCondition=/bin/sh -c '! grep -qs dsmode=local /run/cloud-init/status.json'
END
done

# cloud-init's own generator asks at each boot, with a few hundred lines of shell, whether to enable it: yes.
mkdir -p /etc/systemd/system-generators /etc/systemd/system/multi-user.target.wants
ln -sfn /dev/null /etc/systemd/system-generators/cloud-init-generator
ln -sfn /lib/systemd/system/cloud-init.target /etc/systemd/system/multi-user.target.wants/cloud-init.target

[ -e /etc/systemd/system/multi-user.target.wants/cloud-init.target ]
[ "$(readlink /etc/systemd/system-generators/cloud-init-generator)" = /dev/null ]
