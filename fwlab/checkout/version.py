# SPDX-License-Identifier: GPL-2.0-or-later
"""Which fwlab made a folder with labs. Its labs, Vagrant's plug-in and the installed package belong together.

A checkout or a bundle has its package in itself, and does not say. Vagrant's planner imports this module, so it imports
little.
"""

from pathlib import Path

from fwlab import __version__
from fwlab.model.errors import BadInput

#: In the folder. `fwlab init` writes it last, so a folder that has it is complete.
VERSION = Path(".fwlab", "version")


def reject_other_version(root: Path) -> None:
    """Raise BadInput if `fwlab init` of another version made the folder at `root`."""
    try:
        made = (root / VERSION).read_text().strip()
    except OSError:
        return
    if made != __version__:
        raise BadInput(
            f"{root} was made by fwlab {made}, and this is fwlab {__version__}",
            f"install fwlab {made} again, or `fwlab init` a new folder and copy labs/*/work there",
        )
