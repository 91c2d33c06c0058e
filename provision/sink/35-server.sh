#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Install the TCP server but leave it off: a lab starts it with a configuration of its own.
set -eu

systemctl --quiet --no-reload disable nginx.service 2>/dev/null
rm -f /etc/nginx/sites-enabled/default

if systemctl --quiet is-enabled nginx.service 2>/dev/null; then exit 1; fi
nginx -v 2>&1 | grep -q nginx/
