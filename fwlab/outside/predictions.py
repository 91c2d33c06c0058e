# SPDX-License-Identifier: GPL-2.0-or-later
"""What the student predicted, in work/predictions.yml: one number an exercise, written before measuring."""

from __future__ import annotations

import math

import yaml

from fwlab.outside.atomic_write import write_atomically
from fwlab.outside.yaml_files import read_yaml_file
from fwlab.words.errors import BadInput
from fwlab.words.lab import Lab

FILE = "predictions.yml"


def read_predictions(lab: Lab) -> dict[str, float]:
    path = lab.folder / "work" / FILE
    if not path.exists():
        return {}
    return predictions_in(read_yaml_file(path, f"work/{FILE}", _hint(lab.id)), lab.id)


def predictions_in(data: object, lab_id: str) -> dict[str, float]:
    """By exercise. Raises BadInput naming the first that is no number."""
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise BadInput(f"work/{FILE}: not one number for each exercise", _hint(lab_id))
    for key, value in data.items():
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not (isinstance(key, str) and number and math.isfinite(value) and value >= 0):
            what = f"{str(key)[:40]}: {str(value)[:40]}"
            raise BadInput(f"work/{FILE}: not one number for each exercise: {what}", _hint(lab_id))
    return {key: float(value) for key, value in data.items()}


def _hint(lab_id: str) -> str:
    return f"correct labs/{lab_id}/work/{FILE}, or remove it and predict again"


def write_prediction(lab: Lab, exercise: str, number: float) -> None:
    if not math.isfinite(number) or number < 0:
        raise BadInput(f"{number} is no prediction", "give a number, such as 250000")
    predictions = {**read_predictions(lab), exercise: number}
    path = lab.folder / "work" / FILE
    write_atomically(path, yaml.safe_dump(predictions))
