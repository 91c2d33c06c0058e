# SPDX-License-Identifier: GPL-2.0-or-later

source "qemu" "image" {
  iso_url          = var.base
  iso_checksum     = var.base_checksum
  disk_image       = true
  disk_size        = var.disk_size
  format           = "qcow2"
  disk_interface   = "virtio"
  disk_discard     = "unmap"
  disk_compression = true
  net_device       = "virtio-net"
  accelerator      = var.accelerator
  machine_type     = "pc"
  cpus             = 1
  memory           = local.image.memory_mib
  headless         = true
  qemuargs         = concat(local.machine, var.kernel == "" ? [] : local.direct_boot, local.image.isolated ? local.isolated : [])

  # No wait (0s would mean the default, 10s) and nothing typed: the seed lets Packer log in.
  boot_wait    = "-1s"
  boot_command = []
  disable_vnc  = true

  ssh_username         = "vagrant"
  ssh_private_key_file = var.ssh_key
  ssh_timeout          = local.image.ssh_timeout
  shutdown_command     = format(local.image.as_root, local.image.power_off)
  shutdown_timeout     = "3m"

  output_directory = "${var.work}/disk"
  vm_name          = "${var.image}.qcow2"
}
