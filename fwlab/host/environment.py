# SPDX-License-Identifier: GPL-2.0-or-later
"""What the environment sets on this host: the cache directory, libvirt's address, QEMU's accelerator.

provision/vagrant/lab_machines.rb reads the same variables by the same rules. An empty variable counts as unset.
"""

import os
from pathlib import Path

import platformdirs

from fwlab.model.errors import BadInput
from fwlab.model.results import Accelerator

#: Of `vagrant up` (BOOT_TIMEOUT in lab_machines.rb).
USUAL_BOOT_TIMEOUT_S = 300


def cache_directory() -> Path:
    """Where boxes, bases and downloads are kept, outside the checkout.

    $FWLAB_CACHE, else /var/cache/fwlab for root, else fwlab below $XDG_CACHE_HOME or ~/.cache.
    """
    if chosen := os.environ.get("FWLAB_CACHE"):
        return Path(chosen).absolute()
    root = os.getuid() == 0
    return platformdirs.site_cache_path("fwlab") if root else platformdirs.user_cache_path("fwlab")


def patience() -> float:
    """How many times longer than usual a machine of this host takes, by $FWLAB_BOOT_TIMEOUT; at least 1.

    `vagrant` says what is wrong with a wrong value.
    """
    wanted = os.environ.get("FWLAB_BOOT_TIMEOUT", "")
    return max(1.0, int(wanted) / USUAL_BOOT_TIMEOUT_S) if wanted.isascii() and wanted.isdecimal() else 1.0


def libvirt_uri() -> str:
    """The libvirt that Vagrant uses: $FWLAB_LIBVIRT_URI, else root's own or an ordinary user's own."""
    return os.environ.get("FWLAB_LIBVIRT_URI") or f"qemu:///{'session' if os.getuid() else 'system'}"


def accelerator() -> Accelerator | None:
    """QEMU's accelerator that $FWLAB_ACCEL asks for; None if it is unset. Raises BadInput."""
    match os.environ.get("FWLAB_ACCEL", ""):
        case "":
            return None
        case "tcg":
            return "tcg"
        case "kvm":
            return "kvm"
        case other:
            renamed = " (qemu is now called tcg)" if other == "qemu" else ""
            raise BadInput(f"FWLAB_ACCEL={other}: must be tcg or kvm{renamed}", "export FWLAB_ACCEL=tcg")
