# SPDX-License-Identifier: GPL-2.0-or-later
"""Which FreeBSD the DUT's image is made from if nobody names one."""

#: The newest release of the 14 series in November 2026.
RELEASE = "14.5"
#: The first with nuageinit and with official images that contain it.
OLDEST = 14
IMAGE = f"FreeBSD-{RELEASE}-RELEASE-amd64-BASIC-CLOUDINIT-ufs.qcow2.xz"
OFFICIAL = f"https://download.freebsd.org/releases/VM-IMAGES/{RELEASE}-RELEASE/amd64/Latest/{IMAGE}"
#: What to do about an image that does not fit.
EXAMPLE = f"use an official BASIC-CLOUDINIT-ufs image, such as {OFFICIAL}"
