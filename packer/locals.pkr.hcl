# SPDX-License-Identifier: GPL-2.0-or-later

locals {
  # One entry per image. A FreeBSD DUT would be another, with its own shell and its own command to become root.
  images = {
    generator = { memory_mib = 1024, become_root = "sudo -n" }
    dut-linux = { memory_mib = 1024, become_root = "sudo -n" }
    sink      = { memory_mib = 1024, become_root = "sudo -n" }
  }
  image = local.images[var.image]

  direct_boot = [
    ["-kernel", var.kernel],
    ["-initrd", var.initrd],
    ["-append", "root=/dev/vda1 ro console=ttyS0 net.ifnames=0 nokaslr quiet"],
  ]
  # packer/seed makes the CD-ROM, because Packer 1.6.6 cannot.
  machine = [
    ["-cdrom", var.seed],
    ["-serial", "file:${var.work}/console.log"],
    ["-cpu", var.accelerator == "kvm" ? "host" : "qemu64"],
  ]
}
