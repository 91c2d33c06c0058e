#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# /etc/rc.conf.local wins over the image's rc.conf. Off is what lengthens the boot or could run during a trial. devd
# would start a DHCP client, which holds a bpf device open, as pflogd does: every packet would be offered to it.
# 60-seed.sh takes nuageinit's place. pf is loaded and off: each case of a lab loads everything it measures, and the
# agent switches pf on. SSH asks for a key; options on its command line win over sshd_config.
set -eu

{
    for name in cron devd devmatch syslogd newsyslog sendmail_submit sendmail_outbound sendmail_msp_queue powerd ntpd \
        ntpdate moused virecover savecore clear_tmp growfs nuageinit mixer rtsold rtsol blacklistd zfs zpool \
        local_unbound linux firstboot_freebsd_update firstboot_pkg_upgrade firstboot_pkgs pf pflog sshd_rsa \
        sshd_ecdsa; do
        echo "${name}_enable=NO"
    done
    cat <<'END'
sendmail_enable=NONE
dumpdev=NO
update_motd=NO
background_fsck=NO
rc_startmsgs=NO
ifconfig_DEFAULT=
ipv6_activate_all_interfaces=NO
gateway_enable=YES
ipv6_gateway_enable=YES
kld_list="pf pflog"
sshd_enable=YES
sshd_ed25519_enable=YES
sshd_flags="-o UseDNS=no -o PasswordAuthentication=no -o KbdInteractiveAuthentication=no"
sshd_flags="$sshd_flags -o MaxSessions=32 -o MaxStartups=32 -o PrintLastLog=no -o PrintMotd=no"
END
} >/etc/rc.conf.local

# shellcheck disable=SC1091 # made above
. /etc/rc.conf.local
# shellcheck disable=SC2086,SC2154 # word splitting is intended; the file sets it
/usr/sbin/sshd -T $sshd_flags | grep -qi '^maxsessions 32$'
