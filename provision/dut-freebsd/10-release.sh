#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# pf, vtnet and the tools that the labs use are those of FreeBSD 14 and later.
set -eu

found=$(uname -sr)
case $found in
FreeBSD\ 1[4-9].* | FreeBSD\ [2-9][0-9].*) ;;
*)
    echo "fwlab: the image runs $found; FreeBSD 14 or later is needed" >&2
    exit 1
    ;;
esac

for tool in pfctl ifconfig sysctl netstat pw su sshd; do
    command -v $tool >/dev/null
done
