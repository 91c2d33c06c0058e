#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Write /etc/fwlab/image.json, which records what the image contains. Results quote it, the kernel above all: its
# release, and the checksum of its file, because a kernel that somebody built has the release's name, too.
set -eu

file=/etc/fwlab/image.json
mkdir -p /etc/fwlab
packages=$(pkg -N info -q 2>/dev/null | sort)
cat >$file <<END
{
 "image": "$FWLAB_ROLE",
 "key": "$FWLAB_KEY",
 "built": "$FWLAB_BUILT",
 "kernel": "$(uname -r)",
 "kernel_package": "$(uname -v | tr -d '"' | sed 's/ *$//')",
 "kernel_sha256": "$(sha256 -q /boot/kernel/kernel)",
 "versions": {"freebsd": "$(freebsd-version -u)", "openssh": "$(ssh -V 2>&1 | cut -d, -f1)"},
 "packages": $(printf '%s' "$packages" | grep -c . || true),
 "packages_sha256": "$(printf '%s' "$packages" | sha256 -q)"
}
END

[ "$(grep -c '^ "[a-z0-9_]*": .' $file)" = 9 ]
grep -q "^ \"kernel\": \"$(uname -r)\",\$" $file
