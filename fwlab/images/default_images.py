# SPDX-License-Identifier: GPL-2.0-or-later
"""Which images are built if none is named: those of every lab on Linux, and FreeBSD's where somebody wants it.

FreeBSD's image is a large download, which who has Linux labs only should not have to wait for.
"""

import os
from typing import Any

from fwlab.host.project import Project, lab_ids
from fwlab.host.yaml_files import read_yaml_file
from fwlab.images.build import LINUX_IMAGES
from fwlab.images.freebsd_image import FREEBSD, NONE, URL, chosen_before
from fwlab.model.errors import BadInput

SYSTEM, OTHER = "freebsd", "linux"


def default_images(project: Project, lab: str | None) -> list[str]:
    """FreeBSD's if $FWLAB_FREEBSD_URL names one, if this checkout has its box, or if the machines of `lab` run it."""
    url = os.environ.get(URL, "")
    chosen = (os.environ.get("FWLAB_DUT") or SYSTEM) == SYSTEM
    needed = lab is not None and chosen and systems_of(project, lab)[:1] == [SYSTEM]
    wanted = url != NONE and bool(url or needed or chosen_before(project))
    return [*LINUX_IMAGES, FREEBSD] if wanted else [*LINUX_IMAGES]


def left_out(project: Project, why: str) -> str | None:
    """What of the labs works without FreeBSD's image, and how to get it; None if no lab can use it."""
    labs = {lab: systems for lab in lab_ids(project) if SYSTEM in (systems := systems_of(project, lab))}
    if not labs:
        return None
    words = [f"{lab} (on {OTHER}: FWLAB_DUT={OTHER})" if OTHER in systems else lab for lab, systems in labs.items()]
    return f"{FREEBSD}: left out: {why}\n  without it: every lab but {', '.join(words)}\n  next: packer/build {FREEBSD}"


def systems_of(project: Project, lab: str) -> list[str]:
    """`needs.systems` of a lab; of a file that is wrong, which other commands report, none."""
    try:
        data: Any = read_yaml_file(project.labs / lab / "lab.yml", "lab.yml")
        return [str(system) for system in data["needs"]["systems"]]
    except (BadInput, KeyError, TypeError):
        return []
