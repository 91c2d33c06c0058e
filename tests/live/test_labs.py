# SPDX-License-Identifier: GPL-2.0-or-later
"""Every measured lab on the real machines: quick cases hold, references pass, mistakes and starts fail.

One set of machines serves all labs. To limit the time, only every third exercise of a lab is graded, and one right and
one wrong variant. `make labs` grades all of them.
"""

from __future__ import annotations

import csv
import io

import pytest

from fwlab.grading.variant_files import load_variants
from fwlab.host.project import is_measured, lab_ids
from fwlab.measure.labs import load_lab
from fwlab.model.lab import Lab
from fwlab.model.systems import on_system, several

from .conftest import LAB, PROJECT, Checkout

pytestmark = pytest.mark.live

#: A lab whose DUT has more NICs needs machines of its own (test_lab11.py).
LABS = [name for name in lab_ids(PROJECT) if is_measured(PROJECT, name) and not load_lab(PROJECT, name).needs.nics]
SYSTEM = "linux"  # of the machines that serve all labs


def measured_lab(name: str) -> Lab:
    """What these machines measure of the lab."""
    return on_system(load_lab(PROJECT, name), SYSTEM)


def sample_of_variants(name: str) -> list[tuple[str, str, str]]:
    """(who, exercise, verdict) of one right and one wrong variant; empty if the lab has no variants."""
    lab = measured_lab(name)
    for exercise in lab.exercises:
        variants = load_variants(PROJECT, lab, exercise)
        if variants.names:
            right = [("right-" + variant, exercise.id, "pass") for variant in variants.right]
            wrong = [("wrong-" + variant, exercise.id, "fail") for variant in variants.wrong]
            return right[:1] + wrong[:1]
    return []


@pytest.mark.parametrize("name", LABS)
def test_a_lab_grades_itself(lab: Checkout, name: str) -> None:
    measured = measured_lab(name)
    declared = [exercise.id for exercise in measured.exercises]
    chosen = declared[::3]
    sampled = sample_of_variants(name)
    left_out = [exercise for exercise in declared if exercise not in chosen]
    own = " and ".join(f"not {word}" for word in [*left_out, "right-", "wrong-"])
    others = "".join(f" or {who}/{exercise}" for who, exercise, _ in sampled)
    words = ("--testinfra", "--lab", name, "--machines", LAB, "--part", "all", "-q", "-k", f"({own}){others}")
    done = lab.pytest(*words)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    file = f"marks-{SYSTEM}.csv" if several(measured) else "marks.csv"
    marks = list(csv.DictReader(io.StringIO((lab.top / "reports" / name / "grading" / file).read_text())))
    verdicts = {(row["who"], row["exercise"]): row["verdict"] for row in marks if row["verdict"] in ("pass", "fail")}
    wanted = {"start": "fail", "reference": "pass", "mistake": "fail"}
    by_part = {(who, exercise): wanted[who] for who in wanted for exercise in chosen}
    assert verdicts == by_part | {(who, exercise): verdict for who, exercise, verdict in sampled}
