# SPDX-License-Identifier: GPL-2.0-or-later

locals {
  # One entry per image. as_root: the command line of what follows as root; power_off: the command that ends the
  # machine; isolated: the machine sees nothing but Packer's SSH, because an image that updates itself at its first boot
  # is not the one that was named; ssh_timeout: for its first boot, emulated.
  images = {
    generator   = { memory_mib = 1024, as_root = "sudo -n %s", power_off = "systemctl poweroff", isolated = false, ssh_timeout = "10m" }
    dut-linux   = { memory_mib = 1024, as_root = "sudo -n %s", power_off = "systemctl poweroff", isolated = false, ssh_timeout = "10m" }
    sink        = { memory_mib = 1024, as_root = "sudo -n %s", power_off = "systemctl poweroff", isolated = false, ssh_timeout = "10m" }
    dut-freebsd = { memory_mib = 1024, as_root = "su -m root -c \"%s\"", power_off = "shutdown -p now", isolated = true, ssh_timeout = "20m" }
  }
  image = local.images[var.image]

  direct_boot = [
    ["-kernel", var.kernel],
    ["-initrd", var.initrd],
    ["-append", "root=/dev/vda1 ro console=ttyS0 net.ifnames=0 nokaslr norandmaps quiet"],
  ]
  # packer/seed makes the CD-ROM, because Packer 1.6.6 cannot.
  machine = [
    ["-cdrom", var.seed],
    ["-serial", "file:${var.work}/console.log"],
    ["-cpu", var.accelerator == "kvm" ? "host" : "qemu64"],
  ]
  isolated = [
    ["-netdev", "user,id=user.0,restrict=on,hostfwd=tcp:127.0.0.1:{{ .SSHHostPort }}-:22"],
  ]
}
