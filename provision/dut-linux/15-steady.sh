#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The kernel stays out of the way while packets are counted.
# slub_min_order: an skb cache whose slabs hold 16 serves batches of 16; whether a batch straddled two slabs was
# chance, stayed so for minutes, and was worth 1.5 %. In slabs of 128 it makes no difference.
# The others keep memory management from working in the background (a kworker took 28 ms of a trial).
# The file sorts after zz-fwlab.cfg, to which it adds.
set -eu

cat >/etc/sysctl.d/61-fwlab-steady.conf <<'END'
vm.compaction_proactiveness = 0
vm.stat_interval = 100000
END
mkdir -p /etc/default/grub.d
cat >/etc/default/grub.d/zzz-fwlab-steady.cfg <<'END'
GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX slub_min_order=3 transparent_hugepage=never"
END

sh -n /etc/default/grub.d/zzz-fwlab-steady.cfg
[ "$(grep -c '= [0-9]*$' /etc/sysctl.d/61-fwlab-steady.conf)" = 2 ]
