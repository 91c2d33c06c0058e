#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The sink boots without a ruleset; each trial loads counters for its own traffic classes.
set -eu

systemctl --quiet --no-reload disable nftables.service 2>/dev/null

if systemctl --quiet is-enabled nftables.service 2>/dev/null; then exit 1; fi
command -v nft >/dev/null
