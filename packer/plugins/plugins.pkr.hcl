# SPDX-License-Identifier: GPL-2.0-or-later
# For Packer 1.7 and later, which no longer carry these: run `packer init packer/plugins` once.
# A folder of its own, because Debian 12's Packer 1.6.6 has them built in and refuses this block.
# Packer 1.16.0 with these two built the sink's box as 1.6.6 does (2026-11-21).
packer {
  required_plugins {
    qemu = {
      version = "1.1.4"
      source  = "github.com/hashicorp/qemu"
    }
    vagrant = {
      version = "1.1.7"
      source  = "github.com/hashicorp/vagrant"
    }
  }
}
