# SPDX-License-Identifier: GPL-2.0-or-later
"""Boxes of systems that come as an image of their makers: which are built, and from which image.

Each is a large download, which users of Linux labs alone need not wait for: `default_images` says when it is built
without being named.
"""

import importlib
import os
from typing import Any, cast

from fwlab.checkout.project import Project, lab_ids
from fwlab.checkout.yaml_files import read_yaml_file
from fwlab.dut.system import DutSystem, ImageSource, MakersImage
from fwlab.host.published_file import NONE
from fwlab.images.boxes import LINUX_IMAGES, MAKERS, built_boxes
from fwlab.model.errors import BadInput, CannotMeasure


def source_of(system: DutSystem) -> ImageSource:
    """Where the image of a system in MAKERS comes from."""
    return cast("ImageSource", importlib.import_module(str(system.image)))


def chosen_images(project: Project) -> dict[str, MakersImage]:
    """By box, what it is made from, unless it is left out. Nothing is fetched yet. Raises SourceError."""
    found = {box: source_of(system).chosen_image(known(project, box)) for box, system in MAKERS.items()}
    return {box: image for box, image in found.items() if image is not None}


def known(project: Project, box: str) -> dict[str, str] | None:
    """The record of the image that this checkout's box was made from; None if it has no such box."""
    try:
        record = built_boxes(project)[box][MAKERS[box].name]
        return {name: str(record[name]) for name in ("url", "sha256")}
    except (CannotMeasure, KeyError, TypeError):
        return None


def default_images(project: Project, lab: str | None) -> list[str]:
    """The Linux ones, and those whose variable names an image, that this checkout has, or that `lab` runs on."""
    found = [*LINUX_IMAGES]
    for box, system in MAKERS.items():
        url = os.environ.get(source_of(system).URL_NAME, "")
        chosen = (os.environ.get("FWLAB_DUT") or system.name) == system.name
        needed = lab is not None and chosen and systems_of(project, lab)[:1] == [system.name]
        if url != NONE and (url or needed or known(project, box)):
            found.append(box)
    return found


def left_out(project: Project, box: str, why: str) -> str | None:
    """What of the labs works without this box, and how to get it; None if no lab can use it."""
    system = MAKERS[box].name
    labs = {lab: systems for lab in lab_ids(project) if system in (systems := systems_of(project, lab))}
    if not labs:
        return None
    words = []
    for lab, systems in labs.items():
        other = next((other for other in systems if other != system), None)
        words.append(f"{lab} (on {other}: FWLAB_DUT={other})" if other else lab)
    return f"{box}: left out: {why}\n  without it: every lab but {', '.join(words)}\n  next: packer/build {box}"


def systems_of(project: Project, lab: str) -> list[str]:
    """`needs.systems` of a lab; of a file that is wrong, which other commands report, none."""
    try:
        data: Any = read_yaml_file(project.labs / lab / "lab.yml", "lab.yml")
        return [str(system) for system in data["needs"]["systems"]]
    except (BadInput, KeyError, TypeError):
        return []
