#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# A cloud image becomes what a base from packages is from the start. Staged before the common scripts, and only
# where the base is a cloud image.
set -eu

# Manuals and translations go: those that are there, and those that later packages would bring.
list=$(dirname "$0")/dpkg.cfg
cp "$list" /etc/dpkg/dpkg.cfg.d/fwlab
folders=$(sed -n 's|^path-exclude=\(.*\)/\*$|\1|p' "$list")
for folder in $folders; do
    [ ! -d "$folder" ] || find "$folder" ! -type d ! -name copyright ! -name locale.alias -delete
done

# The address that this very build has was written for netplan, before cloud-init was told to use networkd alone.
rm -f /etc/netplan/50-cloud-init.yaml

[ -n "$folders" ] && [ -z "$(find /usr/share/man /usr/share/info ! -type d 2>/dev/null)" ]
