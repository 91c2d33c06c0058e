# SPDX-License-Identifier: GPL-2.0-or-later
"""Floor 3: the outside world: SSH, libvirt, the nodes and what runs on them."""
