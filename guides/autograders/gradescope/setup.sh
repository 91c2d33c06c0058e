#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Gradescope runs this once, as root, while it builds the autograder's image. Installs what runs the lab, takes the boxes
# from the archive that BOXES names, and leaves a saved state of the machines, from which each grading begins.
set -eu

cd "$(dirname "$0")"
tar -xzf fwlab-@LAB@.tar.gz
cd fwlab-@LAB@
apt-get update
provision/host/install packages.txt packages-image.txt
provision/host/venv
id lab >/dev/null 2>&1 || useradd --create-home lab
curl --fail --silent --show-error --location --output boxes.tar "@BOXES@"
echo "@SHA256@  boxes.tar" | sha256sum --check --quiet
mkdir boxes
tar -xf boxes.tar -C boxes --strip-components=1
chown -R lab .
runuser -u lab -- packer/build --import "$PWD/boxes"
rm -r boxes boxes.tar
runuser -u lab -- env PATH="$PWD/.venv/bin:$PATH" sh -c 'vagrant up @LAB@; vagrant destroy -f @LAB@'
