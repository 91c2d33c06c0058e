#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The DUT boots without a ruleset and without connection tracking: each case of a lab loads everything it measures.
set -eu

systemctl --quiet --no-reload disable nftables.service 2>/dev/null
rm -f /etc/modules-load.d/*conntrack*

if systemctl --quiet is-enabled nftables.service 2>/dev/null; then exit 1; fi
if grep -rqs conntrack /etc/modules /etc/modules-load.d /usr/lib/modules-load.d; then exit 1; fi
