# SPDX-License-Identifier: GPL-2.0-or-later
"""Build the labs' images with Packer, keep them in a cache, add them to Vagrant. `packer/build` runs this package."""
