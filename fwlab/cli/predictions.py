# SPDX-License-Identifier: GPL-2.0-or-later
"""The student's predictions: work/predictions.yml, one number per exercise, written before measuring."""

import math

import yaml

from fwlab.checkout.atomic_write import write_atomically
from fwlab.checkout.yaml_files import read_yaml_file
from fwlab.model.errors import BadInput
from fwlab.model.lab import Lab

FILE = "predictions.yml"


def read_predictions(lab: Lab) -> dict[str, float]:
    """The lab's predictions by exercise; empty if none were made. Raises BadInput for a faulty file."""
    path = lab.folder / "work" / FILE
    if not path.exists():
        return {}
    return predictions_in(read_yaml_file(path, f"work/{FILE}", _hint(lab.id)), lab.id)


def predictions_in(data: object, lab_id: str) -> dict[str, float]:
    """The predictions by exercise. Raises BadInput naming the first that is not a number of at least 0."""
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise BadInput(f"work/{FILE}: must hold one number per exercise", _hint(lab_id))
    found = {}
    for key, value in data.items():
        number = _number(value)
        if not (isinstance(key, str) and math.isfinite(number) and number >= 0):
            what = f"{str(key)[:40]}: {str(value)[:40]}"
            raise BadInput(f"work/{FILE}: must hold one number per exercise: {what}", _hint(lab_id))
        found[key] = number
    return found


def _number(value: object) -> float:
    """The value as a number, NaN if it is none. YAML reads 1e5 as a string; it is accepted as a number."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return math.nan
    try:
        return float(value)
    except ValueError:
        return math.nan


def _hint(lab_id: str) -> str:
    return f"fix labs/{lab_id}/work/{FILE}, or delete it and predict again"


def write_prediction(lab: Lab, exercise: str, number: float) -> None:
    """Record a prediction, replacing an earlier one. Raises BadInput for a number that is negative or not finite."""
    if not math.isfinite(number) or number < 0:
        raise BadInput(
            f"a prediction must be a finite number of at least 0 (got {number:g})", "give a number, such as 250000"
        )
    predictions = {**read_predictions(lab), exercise: number}
    path = lab.folder / "work" / FILE
    write_atomically(path, yaml.safe_dump(predictions))
