# SPDX-License-Identifier: GPL-2.0-or-later
"""What the student predicted, in work/predictions.yml: one number an exercise, written before measuring."""

from __future__ import annotations

import math

import yaml

from fwlab.outside.atomic_write import write_atomically
from fwlab.words.errors import BadInput
from fwlab.words.lab import Lab

FILE = "predictions.yml"


def read_predictions(lab: Lab) -> dict[str, float]:
    path = lab.folder / "work" / FILE
    if not path.exists():
        return {}
    try:
        data = yaml.safe_load(path.read_text()) or {}
        predictions = {str(key): float(value) for key, value in data.items()}
        if not all(math.isfinite(number) for number in predictions.values()):
            raise ValueError("not finite")
    except (yaml.YAMLError, OSError, AttributeError, TypeError, ValueError) as error:
        hint = f"fwlab predict {lab.id} EXERCISE N"
        raise BadInput(f"work/{FILE}: not one number for each exercise", hint) from error
    return predictions


def write_prediction(lab: Lab, exercise: str, number: float) -> None:
    if not math.isfinite(number) or number < 0:
        raise BadInput(f"{number} is no prediction", "give a number, such as 250000")
    predictions = {**read_predictions(lab), exercise: number}
    path = lab.folder / "work" / FILE
    write_atomically(path, yaml.safe_dump(predictions))
