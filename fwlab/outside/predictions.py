# SPDX-License-Identifier: GPL-2.0-or-later
"""What the student predicted, in work/predictions.yml: one number an exercise, written before measuring."""

from __future__ import annotations

import math

import yaml

from fwlab.words.errors import BadInput
from fwlab.words.lab import Lab

FILE = "predictions.yml"


def read_predictions(lab: Lab) -> dict[str, float]:
    path = lab.folder / "work" / FILE
    if not path.exists():
        return {}
    try:
        data = yaml.safe_load(path.read_text()) or {}
        return {str(key): float(value) for key, value in data.items()}
    except (yaml.YAMLError, AttributeError, TypeError, ValueError) as error:
        raise BadInput(f"work/{FILE}: not one number for each exercise", f"fwlab predict {lab.id} EXERCISE N") from error


def write_prediction(lab: Lab, exercise: str, number: float) -> None:
    if not math.isfinite(number) or number < 0:
        raise BadInput(f"{number} is no prediction", "give a number, such as 250000")
    predictions = {**read_predictions(lab), exercise: number}
    path = lab.folder / "work" / FILE
    partial = path.with_name(FILE + ".part")
    partial.write_text(yaml.safe_dump(predictions))
    partial.replace(path)
