# SPDX-License-Identifier: GPL-2.0-or-later
"""answers.yml: what a lab asks: the predictions of its page, and its workbook. Each answer is a number.

It is compared with what follows from the student's own run. There is a closed list of derivations, and no expression
in YAML. A derivation works on costs: of a capacity or a rate of connections the instructions of one
packet or connection, of a time the instructions that it takes. Other metrics are taken as they are.
"""

from collections.abc import Callable, Sequence
from typing import Annotated, Literal

from pydantic import Field, model_validator

from fwlab.checkout.project import Project, display_path, read_yaml
from fwlab.judge.statistics import figure
from fwlab.judge.verdicts import doubts
from fwlab.metrics.registry import METRICS
from fwlab.model.case import Case, Sweep
from fwlab.model.declared import Identifier, Strict, Value
from fwlab.model.errors import BadInput
from fwlab.model.lab import Lab
from fwlab.model.metric import MAIN_METRIC, MetricName
from fwlab.model.results import Run
from fwlab.report.curves import crossovers
from fwlab.report.model import build_model

FILE = "answers.yml"


class Figure(Strict):
    """`derive: figure`: the figure of a case, in the unit that reports show it in; a share from 0 to 1."""

    derive: Literal["figure"]
    case: str


class Cost(Strict):
    """`derive: cost`: what a packet of a case costs."""

    derive: Literal["cost"]
    case: str


class Difference(Strict):
    """`derive: difference`: what a packet of `case` costs more than one of `less`."""

    derive: Literal["difference"]
    case: str
    less: str


class Ratio(Strict):
    """`derive: ratio`: the figure of a case, divided by that of another. Figures, not costs."""

    derive: Literal["ratio"]
    case: str
    to: str


class Share(Strict):
    """`derive: share`: which part of what `of` costs more than `base` is already in `case`; without `base`, the cost of
    `case` as a share of that of `of`."""

    derive: Literal["share"]
    case: str
    of: str
    base: str | None = None


class Steps(Strict):
    """The values of a sweep, from one of them to another (default: from the first to the last)."""

    sweep: Identifier
    first: Value | None = Field(default=None, alias="from")
    last: Value | None = Field(default=None, alias="to")


class PerStep(Steps):
    """`derive: per step`: what each further rule, entry or port of a sweep costs."""

    derive: Literal["per step"]


class BreakEven(Steps):
    """`derive: break-even`: how many steps of a sweep cost as much as `case`, or as it costs more than `base`."""

    derive: Literal["break-even"]
    case: str
    base: str | None = None


class Crossing(Strict):
    """`derive: crossing`: where one of the lab's `crossovers` lies."""

    derive: Literal["crossing"]
    crossover: Identifier


class Mix(Strict):
    """`derive: mix`: the capacity, as reports show it, of packets of which a share each costs as in these cases."""

    derive: Literal["mix"]
    shares: Annotated[dict[str, Annotated[float, Field(gt=0, lt=1)]], Field(min_length=2)]

    @model_validator(mode="after")
    def _whole(self) -> "Mix":
        if abs(sum(self.shares.values()) - 1) > 1e-6:
            raise ValueError("the shares do not add up to 1")
        return self


Derivation = Annotated[
    Figure | Cost | Difference | Ratio | Share | PerStep | BreakEven | Crossing | Mix, Field(discriminator="derive")
]


class Asked(Strict):
    """A question whose answer follows from a run: one that the lab's page asks before the measurement.

    question  what is asked, with the unit
    from_runs  how the number is derived from the student's own run
    metric    of the figures that it is derived from
    class     the traffic class, for a metric that is measured by class
    unit      of the answer
    """

    id: Identifier
    question: str
    from_runs: Derivation = Field(alias="answer")
    metric: MetricName = MAIN_METRIC
    traffic_class: str = Field(default="", alias="class")
    unit: str = ""

    @property
    def is_share(self) -> bool:
        """Whether the answer is a share, from 0 to 1."""
        return isinstance(self.from_runs, Figure) and METRICS[self.metric].unit == "ratio"


class Question(Asked):
    """One question of the workbook.

    hint      what to think of, for a wrong number
    why       what the two sentences are to explain; they are kept for the instructor, not judged
    """

    hint: str
    why: str


class Questions(Strict):
    """The predictions, then the workbook, in their order."""

    predictions: list[Asked] = Field(default_factory=list)
    questions: Annotated[list[Question], Field(min_length=1)]

    @model_validator(mode="after")
    def _no_two_alike(self) -> "Questions":
        seen: set[str] = set()
        for question in [*self.predictions, *self.questions]:
            if question.id in seen:
                raise ValueError(f"question {question.id} is declared twice")
            seen.add(question.id)
        return self


def workbook_of(project: Project, lab: Lab) -> list[Question]:
    """The workbook; empty if the lab has none. Raises BadInput naming the file and the question."""
    found = _questions(project, lab)
    return [] if found is None else found.questions


def predictions_of(project: Project, lab: Lab) -> list[Asked]:
    """What the lab's page asks before the measurement. Raises BadInput naming the file and the question."""
    found = _questions(project, lab)
    return [] if found is None else found.predictions


def _questions(project: Project, lab: Lab) -> Questions | None:
    path = lab.folder / FILE
    if not path.exists():
        return None
    found = read_yaml(project, path, Questions, {"metrics": METRICS})
    where = display_path(project, path)
    for question in [*found.predictions, *found.questions]:
        try:
            cases = needed_cases(lab.whole, question)
        except ValueError as error:
            raise BadInput(f"{where}: question {question.id}: {error}", f"fix {where}") from error
        if question.traffic_class and question.traffic_class not in lab.classes:
            raise BadInput(f"{where}: question {question.id}: unknown class {question.traffic_class}", f"fix {where}")
        for case in cases:
            if question.metric not in (case.metric, *case.also):
                message = f"{where}: question {question.id}: case {case.id} does not measure {question.metric}"
                raise BadInput(message, f"fix {where}")
    return found


def needed_cases(lab: Lab, question: Asked) -> list[Case]:
    """The cases whose figures the answer is derived from. Raises ValueError for a name that the lab does not have."""
    match question.from_runs:
        case Figure(case=case) | Cost(case=case):
            names = [case]
        case Difference(case=case, less=other) | Ratio(case=case, to=other):
            names = [case, other]
        case Share(case=case, of=whole, base=base):
            names = [case, whole, *([base] if base else [])]
        case PerStep() as step:
            names = ends(lab, step)
        case BreakEven(case=case, base=base) as step:
            names = [case, *([base] if base else []), *ends(lab, step)]
        case Crossing(crossover=name):
            names = _crossing_cases(lab, name)
        case Mix(shares=shares):
            names = list(shares)
    for name in names:
        if name not in lab.cases:
            raise ValueError(f"unknown case {name}")
    return [lab.cases[name] for name in dict.fromkeys(names)]


def ends(lab: Lab, step: Steps) -> list[str]:
    """The first and the last case of the steps. Raises ValueError."""
    values = end_values(lab, step)
    return [sweep_of(lab, step.sweep).case_id(value) for value in values]


def end_values(lab: Lab, step: Steps) -> tuple[Value, Value]:
    """The values of the sweep between which its steps are counted. Raises ValueError."""
    values = sweep_of(lab, step.sweep).values
    first = values[0] if step.first is None else step.first
    last = values[-1] if step.last is None else step.last
    for value in (first, last):
        if value not in values or isinstance(value, str):
            raise ValueError(f"{value} is not a number among the values of the sweep {step.sweep}")
    if first == last:
        raise ValueError(f"the steps of the sweep {step.sweep} begin and end at {first}")
    return first, last


def sweep_of(lab: Lab, name: str) -> Sweep:
    """The sweep of this name. Raises ValueError."""
    found = next((sweep for sweep in lab.sweeps if sweep.id == name), None)
    if found is None:
        raise ValueError(f"unknown sweep {name}")
    return found


def _crossing_cases(lab: Lab, name: str) -> list[str]:
    declared = next((crossover for crossover in lab.crossovers if crossover.id == name), None)
    if declared is None:
        raise ValueError(f"unknown crossover {name}")
    both = [sweep_of(lab, declared.slower), sweep_of(lab, declared.faster)]
    common = [value for value in both[0].values if value in both[1].values]
    return [sweep.case_id(value) for sweep in both for value in common]


#: How far an answer may be from the number that the run gives, as a share of it.
WITHIN = 0.05
#: If a wrong answer is off by one of these factors, the message says so.
_SLIPS = {1000.0: "a thousand times too large", 0.001: "a thousand times too small", -1.0: "of the wrong sign"}
_SLIPS |= {100.0: "a hundred times too large", 0.01: "a hundred times too small"}
#: Nanoseconds in a second: the instructions of the reference CPU.
_NS = 1e9

Cases = Callable[[str], float]


def derived(lab: Lab, question: Asked, runs: Sequence[Run]) -> float:
    """The number that these runs give.

    Raises BadInput, with the command that measures them, if they lack a case or its figure is in doubt.
    """
    lab = lab.whole
    found = {case.id: _median(case.id, question, runs) for case in needed_cases(lab, question)}
    medians = {name: value for name, value in found.items() if value is not None}
    if missing := [name for name in found if name not in medians]:
        names = _by_sweep(lab, missing)
        raise BadInput(
            f"{question.id}: you have no figure yet of {', '.join(names)}", f"fwlab run {lab.id} {' '.join(names)}"
        )

    def cost(case: str) -> float:
        return _cost(medians[case], question.metric)

    match question.from_runs:
        case Figure(case=name):
            return medians[name] * _display_factor(question)
        case Cost(case=name):
            return cost(name)
        case Difference(case=name, less=other):
            return cost(name) - cost(other)
        case Ratio(case=name, to=other):
            return medians[name] / medians[other]
        case Share(case=name, of=whole, base=base):
            below = cost(base) if base else 0.0
            return (cost(name) - below) / (cost(whole) - below)
        case PerStep() as step:
            return _per_step(lab, step, cost)
        case BreakEven(case=name, base=base) as step:
            return (cost(name) - (cost(base) if base else 0.0)) / _per_step(lab, step, cost)
        case Mix(shares=shares):
            mean = sum(share * cost(name) for name, share in shares.items())
            return _NS / mean * _display_factor(question)
        case Crossing(crossover=name):
            return _crossing(lab, question, name, runs)


def _display_factor(question: Asked) -> float:
    """The factor to the unit that reports show; a share stays between 0 and 1."""
    display = METRICS[question.metric].display
    return 1.0 if display.unit == "%" else display.factor


def _by_sweep(lab: Lab, cases: list[str]) -> list[str]:
    """The cases, with a sweep's name in place of more than three of its cases."""
    found: dict[str, list[str]] = {}
    for name in cases:
        found.setdefault(lab.cases[name].sweep or name, []).append(name)
    return [name for sweep, own in found.items() for name in ([sweep] if len(own) > 3 else own)]


def _per_step(lab: Lab, step: Steps, cost: Cases) -> float:
    first, last = (float(value) for value in end_values(lab, step))
    low, high = ends(lab, step)
    return (cost(high) - cost(low)) / (last - first)


def _crossing(lab: Lab, question: Asked, name: str, runs: Sequence[Run]) -> float:
    curves = (curve for run in runs for curve in build_model(lab, run).curves.get(question.metric, ()))
    found = next((one for one in crossovers(lab, curves) if one.id == name), None)
    if found is None or found.value is None:
        raise BadInput(f"{question.id}: the curves do not cross in your run", f"fwlab run {lab.id}")
    return found.value


def _cost(median: float, metric: str) -> float:
    unit = METRICS[metric].unit
    if unit in ("pps", "cps"):
        return _NS / median
    return median * _NS if unit == "s" else median


def _median(case: str, question: Asked, runs: Sequence[Run]) -> float | None:
    """The case's median; None if no run has one that can be relied on."""
    metric = METRICS[question.metric]
    for run in runs:
        measured = run.case(case)
        if measured is None or measured.refused is not None or doubts(measured, metric, run):
            continue
        if found := figure(measured, metric, run.testbed, question.traffic_class):
            return found.median
    return None


def agrees(given: float, expected: float) -> bool:
    """Whether an answer is within WITHIN of the number that the run gives."""
    return abs(given - expected) <= WITHIN * abs(expected)


def slip(given: float, expected: float) -> str:
    """What a wrong answer would have to be multiplied with to be right, in words; nothing if that is no usual slip."""
    return next((words for factor, words in _SLIPS.items() if agrees(given / factor, expected)), "")
