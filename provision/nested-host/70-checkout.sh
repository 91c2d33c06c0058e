#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Put the checkout into /opt/fwlab and make its .venv from the wheels beside this script: an emulated machine without a
# network could do neither quickly. Later checkouts of the same requirements keep the .venv.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
[ -d "$here/checkout" ] || exit 0 # running on the machine itself
mkdir -p /opt/fwlab
cp -R "$here/checkout/." /opt/fwlab/
PIP_NO_INDEX=1 PIP_FIND_LINKS="$here/wheels" /opt/fwlab/provision/host/venv

[ -x /opt/fwlab/.venv/bin/fwlab ]
