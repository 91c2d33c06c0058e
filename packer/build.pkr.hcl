# SPDX-License-Identifier: GPL-2.0-or-later

build {
  sources = ["source.qemu.image"]

  provisioner "shell" {
    inline = ["mkdir -p /tmp/fwlab"]
  }

  provisioner "file" {
    source      = "${var.provision}/"
    destination = "/tmp/fwlab"
  }

  # Runs twice; the second run must change nothing, so that a student can run a script again.
  provisioner "shell" {
    environment_vars = [
      "FWLAB_KEY=${var.key}",
      "FWLAB_BUILT=${var.built}",
      "FWLAB_TREX_URL=${var.trex_url}",
      "FWLAB_TREX_SHA256=${var.trex_sha256}",
    ]
    execute_command = format(local.image.as_root, "env {{ .Vars }} sh {{ .Path }}")
    inline          = ["sh /tmp/fwlab/idempotence_check ${var.image}"]
  }

  provisioner "file" {
    direction   = "download"
    source      = "/etc/fwlab/image.json"
    destination = "${var.work}/image.json"
  }

  provisioner "shell" {
    execute_command = format(local.image.as_root, "sh {{ .Path }}")
    inline          = ["sh /tmp/fwlab/cleanup"]
  }

  # The disk is compressed already, so the archive is not.
  post-processor "vagrant" {
    output            = "${var.work}/${var.image}.box"
    provider_override = "libvirt"
    compression_level = 0
  }
}
