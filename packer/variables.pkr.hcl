# SPDX-License-Identifier: GPL-2.0-or-later
# packer/build sets all of these. Run it, not packer itself.

variable "image" {
  type        = string
  description = "Which entry of local.images to build."
  default     = "dut-linux"
}

variable "base" {
  type        = string
  description = "Disk image to start from: a path or a URL."
  default     = "disk.raw"
}

variable "base_checksum" {
  type        = string
  description = "As Packer writes it (sha256:...); none for a base that this build made."
  default     = "none"
}

variable "disk_size" {
  type        = string
  description = "Of the machine's disk, at least that of the base."
  default     = "4096M"
}

variable "kernel" {
  type        = string
  description = "Kernel for a direct boot if the base has no boot loader yet. Empty: the base boots by itself."
  default     = ""
}

variable "initrd" {
  type        = string
  description = "Initial RAM disk that goes with the kernel."
  default     = ""
}

variable "accelerator" {
  type        = string
  description = "kvm if it was probed and runs a kernel, otherwise tcg."
  default     = "tcg"
}

variable "seed" {
  type        = string
  description = "NoCloud ISO made by packer/seed."
  default     = "seed.iso"
}

variable "ssh_key" {
  type        = string
  description = "Private key for the seed, made for this build only."
  default     = "id_ed25519"
}

variable "provision" {
  type        = string
  description = "Staged copy of provision/ with what this image needs and no more."
  default     = "provision"
}

variable "trex_url" {
  type        = string
  description = "TRex's tarball for the generator, verified and staged in provision by packer/build. Empty: none."
  default     = ""
}

variable "trex_sha256" {
  type        = string
  description = "Its SHA-256, verified again where it is unpacked."
  default     = ""
}

variable "key" {
  type        = string
  description = "Content key of the image, for its manifest."
  default     = "unknown"
}

variable "built" {
  type        = string
  description = "Time of the build, for its manifest (RFC 3339)."
  default     = "unknown"
}

variable "work" {
  type        = string
  description = "Directory for the disk, the box and the manifest. Must not contain a 'disk' yet."
  default     = "build"
}
