#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Makes a cloud image equal to a base made from packages. Staged before the common scripts, and only if the base is a
# cloud image.
set -eu

# Remove manuals and translations, and keep packages installed later from bringing any.
list=$(dirname "$0")/dpkg.cfg
cp "$list" /etc/dpkg/dpkg.cfg.d/fwlab
folders=$(sed -n 's|^path-exclude=\(.*\)/\*$|\1|p' "$list")
for folder in $folders; do
    [ ! -d "$folder" ] || find "$folder" ! -type d ! -name copyright ! -name locale.alias -delete
done

# Written for the address of this build, before cloud-init was told to use networkd only.
rm -f /etc/netplan/50-cloud-init.yaml

[ -n "$folders" ] && [ -z "$(find /usr/share/man /usr/share/info ! -type d 2>/dev/null)" ]
