#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Mask every unit that lengthens the boot or could run during a trial. Keep the journal in memory.
set -eu

units='apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer e2scrub_reap.service
fstrim.timer logrotate.timer man-db.timer systemd-tmpfiles-clean.timer systemd-timesyncd.service
systemd-pstore.service systemd-random-seed.service systemd-resolved.service unattended-upgrades.service getty@tty1.service
cloud-init-hotplugd.socket dev-hugepages.mount dev-mqueue.mount sys-fs-fuse-connections.mount
modprobe@drm.service modprobe@fuse.service modprobe@efi_pstore.service modprobe@configfs.service
modprobe@dm_mod.service modprobe@loop.service sys-kernel-config.mount systemd-update-utmp.service
systemd-update-utmp-runlevel.service systemd-network-generator.service proc-sys-fs-binfmt_misc.automount'
# shellcheck disable=SC2086 # word splitting is intended
systemctl --quiet --no-reload mask $units

mkdir -p /etc/systemd/journald.conf.d
printf '%s\n' '[Journal]' Storage=volatile RuntimeMaxUse=16M Audit=no >/etc/systemd/journald.conf.d/fwlab.conf

for unit in $units; do
    [ "$(readlink "/etc/systemd/system/$unit")" = /dev/null ]
done
