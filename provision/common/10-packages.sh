#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Installs what the two package lists name and the image lacks: nothing, unless it began as a cloud image.
set -eu

here=$(dirname "$0")
names=$(sed 's/#.*//' "$here/packages.txt" "$here/../$FWLAB_ROLE/packages.txt")

missing=
for name in $names; do
    case $(dpkg-query -W -f '${db:Status-Abbrev}' "$name" 2>/dev/null) in
    ii*) ;;
    *) missing="$missing $name" ;;
    esac
done
if [ -n "$missing" ]; then
    apt-get -q update
    # shellcheck disable=SC2086 # a list of words
    apt-get -q -y --no-install-recommends install $missing
fi

# shellcheck disable=SC2086 # a list of words
dpkg-query -W $names >/dev/null
