#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The kernel does no housekeeping of memory while packets are counted, and keeps freed receive buffers at hand:
# whether its page lists were drained lately made figures of one boot differ by 1.5 %.
set -eu

cat >/etc/sysctl.d/61-fwlab-steady.conf <<'END'
vm.compaction_proactiveness = 0
vm.percpu_pagelist_high_fraction = 8
vm.stat_interval = 100000
END
mkdir -p /etc/default/grub.d
cat >/etc/default/grub.d/zz-fwlab-steady.cfg <<'END'
GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX transparent_hugepage=never"
END

sh -n /etc/default/grub.d/zz-fwlab-steady.cfg
[ "$(grep -c '= [0-9]*$' /etc/sysctl.d/61-fwlab-steady.conf)" = 3 ]
