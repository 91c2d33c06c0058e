#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Installs the packages in the two lists that the image lacks. Only an image made from a cloud image lacks any.
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
    # shellcheck disable=SC2086 # word splitting is intended
    apt-get -q -y --no-install-recommends install $missing
fi

# shellcheck disable=SC2086 # word splitting is intended
dpkg-query -W $names >/dev/null
