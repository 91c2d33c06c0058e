# SPDX-License-Identifier: GPL-2.0-or-later
"""Both agents sort trials by the same policy, and every answer has the type that its operation declares."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import is_typeddict

from fwlab.dut import freebsd
from fwlab.dut.agent_protocol import POLICY
from fwlab.dut.conversation import validated
from fwlab.dut.linux.agent.agent import COUNTS, Agent
from fwlab.dut.linux.agent.trials import sort_trials
from fwlab.model.errors import CannotMeasure
from tests.fakes.fake_freebsd import answer_type, lua
from tests.fakes.fake_kernel import FakeKernel
from tests.fakes.programs import needs

TERMS = {"windows": 3, "idle_share": 0.001, "other_share": 0.005, "max_unsaturated": 2, **POLICY}
SORT = """
local json, trials = require("json"), require("trials")
local answers = json.array({})
for _, case in ipairs(json.decode([====[%s]====])) do
  local place = 0
  local found = trials.sort(function()
    place = place + 1
    return case.trials[place]
  end, case.terms)
  answers[#answers + 1] = found
end
print(json.encode(answers))
"""


def trial(idle: int = 0, other: int = 0, programs: int = 0) -> dict[str, Any]:
    """A trial of a million nanoseconds."""
    return {"duration_ns": 1_000_000, "idle_ns": idle, "other_ns": other, "programs_ns": programs, "counts": {}}


BUSY, AT_THE_LIMIT, IDLE = trial(), trial(1000), trial(1001)
ALIKE = [trial(other=28_000 + 100 * n) for n in range(7)]
REACHED = [trial(other=67_000 + 100 * n) for n in range(8)]
LOGIN = trial(other=28_000, programs=28_000)
#: What happens: trials in their order, other terms; the valid ones, and how many of each kind are found.
CASES: dict[str, tuple[list[Any], dict[str, Any], list[Any], tuple[int, int, int]]] = {
    "enough": ([BUSY, AT_THE_LIMIT, BUSY, BUSY], {}, [BUSY, AT_THE_LIMIT, BUSY], (3, 0, 0)),
    "unsaturated": ([BUSY, IDLE, BUSY, IDLE, BUSY, BUSY], {}, [BUSY] * 3, (3, 2, 0)),
    "given up": ([BUSY, IDLE, IDLE, IDLE, BUSY], {}, [BUSY], (1, 3, 0)),
    "the load is too small": ([IDLE] * 10, {"max_unsaturated": 0}, [], (0, 1, 0)),
    "perturbed": ([BUSY, trial(other=5001), BUSY, trial(other=5000)], {}, [BUSY, BUSY, trial(other=5000)], (3, 0, 1)),
    "own work": ([*ALIKE[:3], trial(other=90_000), *ALIKE[3:]], {}, ALIKE[:3], (3, 0, 6)),
    # Seen of a router that forwards nothing: 3.8 %, 5.3 %, 6.3 %, then 6.7 % in each trial.
    "own work sets in": ([trial(other=38_000), trial(other=53_000), *REACHED], {}, REACHED[:3], (3, 0, 6)),
    "unequal work": ([trial(other=20_000 * n) for n in range(1, 17)], {}, [], (0, 0, 16)),
    "equal, but half of the CPU": ([trial(other=500_000)] * 16, {}, [], (0, 0, 16)),
    "a login": ([LOGIN] * 16, {}, [], (0, 0, 9)),
    "a login between valid trials": ([BUSY, *[LOGIN] * 9], {}, [BUSY], (1, 0, 9)),
}


def terms(**changed: Any) -> Any:
    return {**TERMS, **changed}


def in_python(trials: list[Any], wanted: Any) -> dict[str, Any]:
    left = iter([dict(one) for one in trials])
    found = sort_trials(lambda: next(left), lambda one: one["programs_ns"], wanted)
    return {kind: found[kind] for kind in ("valid", "unsaturated", "perturbed")}


@pytest.mark.parametrize(("trials", "changed", "valid", "counts"), CASES.values(), ids=CASES)
def test_the_policy(trials: list[Any], changed: dict[str, Any], valid: list[Any], counts: tuple[int, ...]) -> None:
    found = in_python(trials, terms(**changed))
    assert found["valid"] == valid
    assert tuple(len(found[kind]) for kind in ("valid", "unsaturated", "perturbed")) == counts


@needs("lua5.4")
def test_both_agents_sort_alike() -> None:
    drawn = random.Random(39)
    cases = [(trials, terms(**changed)) for trials, changed, *_ in CASES.values()]
    for _ in range(300):
        usual, programs = drawn.choice((4_000, 30_000, 99_000, 110_000)), drawn.choice((0, 0.1, 0.6))
        some = []
        for _ in range(40):
            idle = drawn.choice((0, 0, 0, 1000, 1001, 200_000))
            other = drawn.choice((0, 5000, 5001, usual + drawn.randrange(6000), usual, 400_000))
            some.append(trial(idle, other, other if drawn.random() < programs else 0))
        cases.append((some, terms(windows=drawn.randint(1, 6), max_unsaturated=drawn.randint(0, 8))))
    asked = [{"trials": trials, "terms": wanted} for trials, wanted in cases]
    answers = json.loads(lua(SORT % json.dumps(asked)))
    for (trials, wanted), answer in zip(cases, answers, strict=True):
        assert answer == in_python(trials, wanted)


def test_each_operation_of_either_agent_has_a_type() -> None:
    operations = set(Agent(FakeKernel(), {}).operations())
    assert all(is_typeddict(answer_type(name)) for name in operations - set(COUNTS))
    listed = re.search(
        r"ipairs\(\{([^}]*)\}\) do\s+OPERATIONS", (Path(freebsd.__path__[0]) / "agent/agent.lua").read_text()
    )
    assert listed
    assert set(re.findall(r"\w+", listed[1])) < operations


@pytest.mark.parametrize(
    ("operation", "answer", "place"),
    [
        ("entries", {}, "entries: Field required"),
        ("states", {"states": {"held": 1}}, "states.most: Field required"),
        ("confirm", {"reached": "perhaps"}, "reached: "),
        (
            "measure",
            {"valid": [trial() | {"counts": []}], "unsaturated": [], "perturbed": [], "cpu_ns": {}},
            "valid.0.c",
        ),
    ],
)
def test_an_answer_of_another_type_is_no_measurement(operation: str, answer: Any, place: str) -> None:
    with pytest.raises(CannotMeasure, match=f"dut: the answer to {operation} is wrong at {place}"):
        validated(answer, answer_type(operation), operation)
