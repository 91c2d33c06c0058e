#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# TCP clients. A lab declares the addresses they use, so the image configures none, and no ruleset is loaded at boot.
set -eu

systemctl --quiet --no-reload disable nftables.service 2>/dev/null

if systemctl --quiet is-enabled nftables.service 2>/dev/null; then exit 1; fi
for tool in wrk httperf nft; do
    command -v $tool >/dev/null
done
httperf --help >/dev/null 2>&1
