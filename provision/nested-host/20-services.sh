#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The common scripts mask what a lab's node does without. A host of labs runs libvirt and may use huge pages.
set -eu

systemctl --quiet --no-reload unmask dev-hugepages.mount dev-mqueue.mount
systemctl --quiet --no-reload enable libvirtd.service

systemctl --quiet is-enabled libvirtd.service
