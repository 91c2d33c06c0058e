# SPDX-License-Identifier: GPL-2.0-or-later
"""What the student predicted, in work/predictions.yml: one number an exercise, written before measuring."""

from __future__ import annotations

import yaml

from fwlab.outside.atomic_write import write_atomically
from fwlab.outside.yaml_text import parse_yaml
from fwlab.words.errors import BadInput
from fwlab.words.lab import Lab

FILE = "predictions.yml"
#: Nobody expects so many packets a second; what is compared with it must not overflow.
LARGEST = 1e15


def read_predictions(lab: Lab) -> dict[str, float]:
    path = lab.folder / "work" / FILE
    if not path.exists():
        return {}
    try:
        data = parse_yaml(path.read_text(encoding="utf-8"), FILE) or {}
        predictions = {str(key): float(value) for key, value in data.items()}
        if not all(map(_possible, predictions.values())):
            raise ValueError("out of range")
    except (BadInput, OSError, AttributeError, TypeError, ValueError, OverflowError) as error:
        hint = f"fwlab predict {lab.id} EXERCISE N"
        raise BadInput(f"work/{FILE}: not one number for each exercise", hint) from error
    return predictions


def _possible(number: float) -> bool:
    return 0 <= number <= LARGEST


def write_prediction(lab: Lab, exercise: str, number: float) -> None:
    if not _possible(number):
        raise BadInput(f"{number} is no prediction", "give a number, such as 250000")
    predictions = {**read_predictions(lab), exercise: number}
    path = lab.folder / "work" / FILE
    write_atomically(path, yaml.safe_dump(predictions))
