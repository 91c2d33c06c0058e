#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Turn off what lengthens the boot or could run during a trial. devd would start a DHCP client, which holds a bpf device
# open. nuageinit is off because 60-seed.sh takes its place.
set -eu

conf=/etc/rc.conf.local
off="cron devd syslogd newsyslog sendmail_submit sendmail_outbound sendmail_msp_queue powerd ntpd ntpdate moused
virecover update_motd savecore clear_tmp background_fsck growfs nuageinit mixer rtsold rtsol blacklistd zfs zpool
local_unbound linux firstboot_freebsd_update firstboot_pkg_upgrade firstboot_pkgs devmatch"
for name in $off; do
    sysrc -q -f $conf "${name}_enable=NO" >/dev/null
done
sysrc -q -f $conf sendmail_enable=NONE dumpdev=NO ifconfig_DEFAULT='' ipv6_activate_all_interfaces=NO \
    synchronous_dhclient=NO rc_startmsgs=NO >/dev/null

for name in $off; do
    [ "$(sysrc -n -f $conf "${name}_enable")" = NO ]
done
