#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# sudo(8) is a package on FreeBSD, and the image is built without a network. This stands for it: su(1) lets the group
# wheel become root, whose password is empty. Nobody can log in with it, because SSH asks for a key.
set -eu

mkdir -p /usr/local/bin
cat >/usr/local/bin/sudo <<'END'
#!/bin/sh
# Stands for sudo(8): runs a command as root, or a shell. All options but -u are ignored.
while :; do
    case ${1-} in
    --) shift && break ;;
    -u) [ "${2-}" = root ] && shift 2 || { echo "sudo: only root" >&2; exit 2; } ;;
    -*) shift ;;
    *) break ;;
    esac
done
[ $# -gt 0 ] || exec su -m root
exec su -m root -c 'exec "$0" "$@"' "$@"
END
chmod 755 /usr/local/bin/sudo

sh -n /usr/local/bin/sudo
[ "$(/usr/local/bin/sudo -n -E -u root sh -c 'echo "$1 $(id -u)"' sh 'a b')" = 'a b 0' ]
