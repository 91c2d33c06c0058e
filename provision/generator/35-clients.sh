#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Clients for TCP connections. A lab says which addresses they use; nothing of that is in the image, and no
# ruleset is loaded at boot.
set -eu

systemctl --quiet --no-reload disable nftables.service 2>/dev/null

if systemctl --quiet is-enabled nftables.service 2>/dev/null; then exit 1; fi
for tool in wrk httperf nft; do
    command -v $tool >/dev/null
done
httperf --help >/dev/null 2>&1
