#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Turn off what lengthens the boot or could run during a trial. devd would start a DHCP client, which holds a bpf device
# open. nuageinit is off because 60-seed.sh takes its place.
set -eu

conf=/etc/rc.conf.local
off=
for name in cron devd devmatch syslogd newsyslog sendmail_submit sendmail_outbound sendmail_msp_queue powerd ntpd \
    ntpdate moused virecover savecore clear_tmp growfs nuageinit mixer rtsold rtsol blacklistd zfs zpool \
    local_unbound linux firstboot_freebsd_update firstboot_pkg_upgrade firstboot_pkgs; do
    off="$off ${name}_enable"
done
# shellcheck disable=SC2046,SC2086 # word splitting is intended
sysrc -q -f $conf $(printf '%s=NO ' $off) sendmail_enable=NONE dumpdev=NO update_motd=NO background_fsck=NO \
    ifconfig_DEFAULT='' ipv6_activate_all_interfaces=NO synchronous_dhclient=NO rc_startmsgs=NO >/dev/null

# shellcheck disable=SC2086 # word splitting is intended
[ "$(sysrc -n -f $conf $off | sort -u)" = NO ]
