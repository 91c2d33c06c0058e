# SPDX-License-Identifier: GPL-2.0-or-later
"""What a student expects of an exercise before it is measured: labs/LAB/work/predictions.yml."""

import math
import re

import yaml

from fwlab.checkout.atomic_write import write_atomically
from fwlab.checkout.yaml_files import read_yaml_file
from fwlab.metrics.registry import METRICS
from fwlab.model.errors import BadInput
from fwlab.model.lab import Exercise, Lab
from fwlab.student.progress import read_progress

_GROUPED = re.compile(r"[+-]?\d{1,3}([,_ ]\d{3})+(\.\d+)?")
_FACTORS = {"k": 1e3, "M": 1e6, "%": 0.01}


def number_in(text: str) -> float:
    """A number as people type it: 280000, 280k, 280,000, 2.8e5, 19%. Raises ValueError, with examples."""
    bare = text.strip()
    factor = _FACTORS.get(bare[-1:], 1.0)
    bare = bare[:-1].rstrip() if factor != 1.0 else bare
    if _GROUPED.fullmatch(bare):
        bare = re.sub(r"[,_ ]", "", bare)
    try:
        return float(bare) * factor
    except ValueError:
        raise ValueError(f"{text!r} is not a number; write 280000, 280k, 280,000, 0.19 or 19%") from None


PREDICTIONS = "predictions.yml"


def read_predictions(lab: Lab) -> dict[str, float]:
    """The lab's predictions by exercise; empty if none were made. Raises BadInput for a faulty file."""
    path = lab.folder / "work" / PREDICTIONS
    if not path.exists():
        return {}
    return predictions_in(read_yaml_file(path, f"work/{PREDICTIONS}", _hint(lab.id)), lab.id)


def predictions_in(data: object, lab_id: str) -> dict[str, float]:
    """The predictions by exercise. Raises BadInput naming the first that is not a number of at least 0."""
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise BadInput(f"work/{PREDICTIONS}: must hold one number per exercise", _hint(lab_id))
    found = {}
    for key, value in data.items():
        number = _number(value)
        if not (isinstance(key, str) and math.isfinite(number) and number >= 0):
            what = f"{str(key)[:40]}: {str(value)[:40]}"
            raise BadInput(f"work/{PREDICTIONS}: must hold one number per exercise: {what}", _hint(lab_id))
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
    return f"fix labs/{lab_id}/work/{PREDICTIONS}, or delete it and predict again"


def write_prediction(lab: Lab, exercise: str, number: float) -> None:
    """Record a prediction, replacing an earlier one. Raises BadInput for a number that is negative or not finite."""
    if not math.isfinite(number) or number < 0:
        raise BadInput(
            f"a prediction must be a finite number of at least 0 (got {number:g})", "give a number, such as 250000"
        )
    predictions = {**read_predictions(lab), exercise: number}
    path = lab.folder / "work" / PREDICTIONS
    write_atomically(path, yaml.safe_dump(predictions))


def predict_exercise(lab: Lab, exercise: Exercise, value: float) -> list[str]:
    """Record what a student expects of an exercise. Returns what to say about it.

    Raises BadInput for an exercise that was measured, and for a number that cannot be meant.
    """
    metric = METRICS[exercise.predict.metric]
    first = read_progress(lab).of(exercise.id).first_measured
    if first is not None:
        raise BadInput(
            f"{exercise.id} was measured on {first.at[:10]}; a prediction comes before that", f"fwlab status {lab.id}"
        )
    share, again = metric.unit == "ratio", f"fwlab predict {lab.id} {exercise.id}"
    if share and value > 1:
        raise no_share(exercise.id, value, again)
    if metric.unit in ("pps", "cps") and 0 < value < 1:
        raise BadInput(
            f"{exercise.id}: the question asks for {metric.unit}, a number above 1 (got {value:g})",
            again,
        )
    write_prediction(lab, exercise.id, value)
    told = [f"{exercise.id}: you predict {f'{100 * value:,g} %' if share else f'{value:,g} {metric.unit}'}"]
    if metric.unit == "pps" and 1 <= value < 1000:
        shown = "Tables show thousands (kpps)"
        told.append(f"  That is {value:g} packets per second. {shown}: did you mean {value:g}k?")
    return told


def no_share(question: str, value: float, hint: str) -> BadInput:
    """The error for a number that is no share."""
    asks = f"the question asks for a share, from 0 to 1 (got {value:g}); a percentage has its sign: 19%"
    return BadInput(f"{question}: {asks}", hint)
