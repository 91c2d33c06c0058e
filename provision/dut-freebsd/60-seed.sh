#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# At every boot, before the network starts: take name, addresses, routes, neighbours and the SSH key from the seed CD.
# See FreeBsd.seed in fwlab/dut/freebsd/__init__.py.
set -eu

cat >/etc/rc.d/fwlab_seed <<'END'
#!/bin/sh
# PROVIDE: fwlab_seed
# REQUIRE: FILESYSTEMS
# BEFORE: hostname netif routing static_arp static_ndp
. /etc/rc.subr
name=fwlab_seed
start_cmd=fwlab_seed_start
fwlab_seed_start()
{
    [ -e /dev/iso9660/cidata ] && mount -t cd9660 -o ro /dev/iso9660/cidata /mnt || return 0
    if [ -e /mnt/rc.conf ]; then
        mkdir -p /etc/rc.conf.d
        for script in hostname network routing static_arp static_ndp; do
            cp /mnt/rc.conf /etc/rc.conf.d/$script
        done
        cp /mnt/hosts /etc/hosts
        install -d -o vagrant -g vagrant -m 700 /home/vagrant/.ssh
        install -o vagrant -g vagrant -m 600 /mnt/authorized_keys /home/vagrant/.ssh/authorized_keys
    fi
    umount /mnt
}
run_rc_command "$1"
END
chmod 555 /etc/rc.d/fwlab_seed

sh -n /etc/rc.d/fwlab_seed
rcorder /etc/rc.d/* 2>/dev/null | grep -n -e '/fwlab_seed$' -e '/netif$' | head -1 | grep -q fwlab_seed
