# SPDX-License-Identifier: GPL-2.0-or-later

locals {
  # One entry an image. A FreeBSD DUT is one more: it has another shell and gives itself root by another command.
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
  # The seed is a CD-ROM of its own, for Packer 1.6.6 cannot make one.
  machine = [
    ["-cdrom", var.seed],
    ["-serial", "file:${var.work}/console.log"],
    ["-cpu", var.accelerator == "kvm" ? "host" : "qemu64"],
  ]
}
