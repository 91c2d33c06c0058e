# SPDX-License-Identifier: GPL-2.0-or-later
""".fwlab/images.json: which boxes this checkout uses."""

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from fwlab.host.atomic_write import write_atomically
from fwlab.host.project import Project
from fwlab.images.errors import BuildError
from fwlab.model.errors import CannotMeasure

#: By image: box, key, path, sha256, manifest and, if the image contains TRex, trex.
Boxes = dict[str, dict[str, Any]]


def boxes_path(project: Project) -> Path:
    """The file that lists the boxes built here."""
    return project.state / "images.json"


def built_boxes(project: Project) -> Boxes:
    """Raises CannotMeasure if no box was built."""
    try:
        boxes = json.loads(boxes_path(project).read_text())
        if not isinstance(boxes, dict):
            raise ValueError("not a list of boxes")
    except (OSError, ValueError, RecursionError) as error:
        raise CannotMeasure("the boxes are not built", "make boxes") from error
    return boxes


def kernels_of_boxes(project: Project) -> list[str]:
    """The kernels of the boxes that were built; none if none was."""
    with suppress(CannotMeasure):
        return [str(box.get("manifest", {}).get("kernel", "")) for box in built_boxes(project).values()]
    return []


def add_boxes(project: Project, boxes: Boxes, without: Sequence[str] = ()) -> None:
    """Write these boxes over those that are listed, and take those `without` from the list. Raises BuildError."""
    known: Boxes = {}
    with suppress(CannotMeasure):
        known = built_boxes(project)
    listed = {image: box for image, box in {**known, **boxes}.items() if image not in without}
    write_atomically(boxes_path(project), json.dumps(listed, indent=1) + "\n", error=BuildError)
