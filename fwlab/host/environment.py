# SPDX-License-Identifier: GPL-2.0-or-later
"""What FWLAB_ variables choose on this host. An empty variable counts as unset.

Which system a DUT runs and which kind a link has also depends on the machines that exist: fwlab/testbed.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from fwlab.model.errors import BadInput

if TYPE_CHECKING:
    from fwlab.model.results import Accelerator

#: How long `vagrant up` waits for a machine to let it in (s).
USUAL_BOOT_TIMEOUT_S = 300
MAX_CPUS = 64


def cache_directory() -> Path:
    """Where boxes, bases and downloads are kept, outside the checkout.

    $FWLAB_CACHE, else /var/cache/fwlab for root, else fwlab below $XDG_CACHE_HOME or ~/.cache.
    """
    if chosen := os.environ.get("FWLAB_CACHE"):
        return Path(chosen).absolute()
    return Path("/var/cache/fwlab") if os.getuid() == 0 else user_cache() / "fwlab"


def user_cache() -> Path:
    """Where an ordinary user's programs keep what they can make again."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def boot_timeout() -> int:
    """How long `vagrant up` waits for a machine to let it in (s). Raises BadInput."""
    wanted = os.environ.get("FWLAB_BOOT_TIMEOUT") or str(USUAL_BOOT_TIMEOUT_S)
    if wanted.isascii() and wanted.isdecimal() and int(wanted) > 0:
        return int(wanted)
    message = f"FWLAB_BOOT_TIMEOUT={wanted} is not a number of seconds"
    raise BadInput(message, f"export FWLAB_BOOT_TIMEOUT={USUAL_BOOT_TIMEOUT_S}")


def timeout_scale() -> float:
    """How many times longer than usual a machine of this host takes, by $FWLAB_BOOT_TIMEOUT; at least 1."""
    try:
        return max(1.0, boot_timeout() / USUAL_BOOT_TIMEOUT_S)
    except BadInput:
        return 1.0  # `vagrant` says what is wrong


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
            raise BadInput(f"FWLAB_ACCEL={other}: must be tcg or kvm", "export FWLAB_ACCEL=tcg")


def continues_from_saved_states() -> bool:
    """Whether new machines continue from a saved state where there is one: $FWLAB_SAVED. Raises BadInput."""
    value = os.environ.get("FWLAB_SAVED") or "yes"
    if value not in ("yes", "no"):
        raise BadInput(f"FWLAB_SAVED={value}: must be yes or no", "export FWLAB_SAVED=no")
    return value == "yes"


def dut_cpus() -> int | None:
    """How many CPUs $FWLAB_DUT_CPUS asks for; None if it is unset. Raises BadInput."""
    wanted = os.environ.get("FWLAB_DUT_CPUS")
    if not wanted:
        return None
    if wanted.isascii() and wanted.isdecimal() and 1 <= int(wanted) <= MAX_CPUS:
        return int(wanted)
    message = f"FWLAB_DUT_CPUS={wanted} is not a number of CPUs from 1 to {MAX_CPUS}"
    raise BadInput(message, "export FWLAB_DUT_CPUS=4")


def dut_qemu() -> str | None:
    """The QEMU that runs the DUT in place of this host's own: $FWLAB_DUT_QEMU, an absolute path. Raises BadInput."""
    path = os.environ.get("FWLAB_DUT_QEMU") or None
    if path is None or (path.startswith("/") and Path(path).is_file() and os.access(path, os.X_OK)):
        return path
    raise BadInput(f"FWLAB_DUT_QEMU={path}: not the absolute path of a program", "unset FWLAB_DUT_QEMU")
