# SPDX-License-Identifier: GPL-2.0-or-later
# `packer init packer` installs these. Debian 12's Packer 1.6.6 has them built in and refuses this block, so it gets the
# other files alone (fwlab/images/programs.py). Packer 1.16.0 with these two built the sink's box as 1.6.6 does
# (2026-11-21).
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
