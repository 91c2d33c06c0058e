# SPDX-License-Identifier: GPL-2.0-or-later
"""lab.yml as data. The classes here, and those that they name, document every field that a lab.yml may have.

Cases and sweeps are in case.py, traffic in declared_traffic.py, checks in check.py, expectations in expectation.py.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Container, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from pydantic import ConfigDict, Field, PrivateAttr, ValidationInfo, model_validator

from fwlab.model.case import Case, DeclaredCrossover, Sweep, Trials
from fwlab.model.check import AnyCheck
from fwlab.model.declared import Identifier, KernelSeries, Strict, Value, or_else
from fwlab.model.declared_traffic import Connections, Traffic, TrafficClass
from fwlab.model.drawn import Drawn, holders
from fwlab.model.expectation import DeclaredExpectation, Expectation
from fwlab.model.lab_file import completed
from fwlab.model.metric import MAIN_METRIC, MetricName, Metrics, TrafficKind, judgeable, known_metrics, missing_fields
from fwlab.model.ranges import Ranges
from fwlab.model.ruleset import RulesKind, SettingsKind

#: The places that are drawn by the seed of a class: arguments of profiles, and where the clients of connections are.
_BY_SEED = re.compile(r"traffic\.[^.]+\.(tunables\.[^.]+|connections\.clients)")


class Needs(Strict):
    """What the DUT must have, which the grading run checks on the node; and which labs come first.

    labs      labs whose figures or ideas this one uses; the course map shows them
    systems   what the DUT may run, by the names in topology.yml: the first, unless FWLAB_DUT names another of them
    packages  Debian packages
    modules   kernel modules of Linux that can be loaded
    sysctls   settings of Linux and their values
    nics      models of NIC that the DUT has on each link next to the usual one, by QEMU's names. Only socket links have
              them. What a kernel has no driver for is left out
    """

    labs: list[Identifier] = []
    systems: list[Identifier] = Field(default=["linux"], min_length=1)
    packages: list[str] = []
    modules: list[str] = []
    sysctls: dict[str, int | str] = {}
    nics: list[Identifier] = []


class Defaults(Strict):
    """What cases, sweeps, exercises and checks have where they say nothing else.

    kernel   series of the DUT's kernel on which the limits of checks were measured
    source   raw results behind the limits of capacity, connections and load_time. The name of a file alone means
             results/<lab>/<name>. All other checks have the lab's README.md as their source
    traffic  traffic of cases and sweeps, except those that measure load_time alone
    load_dependent, stateful  of exercises
    """

    kernel: KernelSeries | None = None
    source: list[str] = []
    traffic: str | None = None
    load_dependent: bool = False
    stateful: bool = False


class Part(Strict):
    """A part of a lab, done in one go: its own question, cases and exercises.

    id         the name that `fwlab run LAB --part` takes
    title      the part's question
    minutes    time that a student needs for it; all parts together need the lab's `minutes`
    cases      its cases; the name of a sweep means all its cases. Two parts may have a case in common
    exercises  its exercises, each of which belongs to one part
    """

    id: Identifier
    title: str
    minutes: int = Field(ge=5, le=120)
    cases: list[Identifier] = []
    exercises: list[Identifier] = []

    def only(self, cases: Collection[str], exercises: Collection[str]) -> Part:
        """This part without the cases, sweeps and exercises that are not among these."""
        kept = {
            "cases": [name for name in self.cases if name in cases],
            "exercises": [name for name in self.exercises if name in exercises],
        }
        return self.model_copy(update=kept)


def reject_wrong_parts(
    parts: Sequence[Part], minutes: int, cases: Collection[str], sweeps: Mapping[str, list[str]], own: Collection[str]
) -> None:
    """Raise ValueError unless the parts make up the lab: all its cases, exercises (`own`) and minutes."""
    if not parts:
        return
    if len({part.id for part in parts}) != len(parts):
        raise ValueError("parts: an id is used twice")
    covered = set()
    for part in parts:
        for name in part.cases:
            if name not in cases and name not in sweeps:
                raise ValueError(f"part {part.id}: unknown case {name}")
            covered |= {name, *sweeps.get(name, [])}
        for name in part.exercises:
            if name not in own:
                raise ValueError(f"part {part.id}: unknown exercise {name}")
    listed = [name for part in parts for name in part.exercises]
    for name in own:
        if listed.count(name) != 1:
            raise ValueError(f"exercise {name} belongs to {listed.count(name)} parts, not to one")
    left = [name for name in cases if name not in covered]
    if left:
        raise ValueError(f"case {left[0]} belongs to no part")
    total = sum(part.minutes for part in parts)
    if total != minutes:
        raise ValueError(f"the parts take {total} minutes, the lab says {minutes}")


class Predict(Strict):
    """The number that the student writes down before measuring. A text alone is the question.

    question  what is asked
    metric    the metric that the prediction is compared with
    class     the traffic class, for a metric that is measured by class
    start     the question is about the start: only a check of the unchanged start is compared with the prediction
    """

    model_config = ConfigDict(json_schema_extra=or_else({"type": "string"}))
    question: str
    metric: MetricName = MAIN_METRIC
    traffic_class: str = Field(default="", alias="class")
    start: bool = False

    @model_validator(mode="before")
    @classmethod
    def _question_alone(cls, data: Any) -> Any:
        return {"question": data} if isinstance(data, str) else data


class Exercise(Strict):
    """What the student writes into work/<id>/, and how it is judged. rulesets/<id>/ has start, reference and mistake.

    traffic         what is played; nothing, where checks draw packets from the rules
    parameters      words of the templates
    state_packets   packets played before states are counted; needed by checks of states and state_bytes
    total_load      load as a multiple of the baseline's capacity; needed by checks of survival
    load_dependent  true: a correct ruleset may treat a packet differently under load, as rate limits do. Else it fails
    stateful        true: a correct ruleset may let a packet pass only after another one, as connection tracking does.
                    It must still do under load what it does at a light load
    settings        kinds of settings files (ethtool, rps, routes, sysctl) that are accepted with rules, and tc, for
                    queues at a link's exit. They change what every packet costs
    rules           kinds of rules that are accepted, such as iptables; all of them if it is left out. None (an empty
                    list): settings alone. Else another mechanism could do what the exercise is about
    only            patterns such as net.netfilter.*: sysctl files may set nothing else
    further         true: for those who want more. A class's grading leaves it out unless it is asked for
    predict         the prediction that is asked for
    system          in a lab for several systems, the one that it is measured on (default: whose tools load its start)
    nic             the NIC on both links, as of a case
    checks          see Check; a name alone means one of the lab's `checks`, a list several of them
    """

    id: Identifier
    title: str
    traffic: str | None = None
    parameters: dict[str, Value] = {}
    state_packets: int | None = Field(default=None, ge=1)
    total_load: float | None = Field(default=None, gt=0)
    load_dependent: bool = False
    stateful: bool = False
    settings: list[SettingsKind] = []
    rules: list[RulesKind] | None = None
    only: list[str] = ["*"]
    further: bool = False
    predict: Predict
    system: Identifier | None = None
    nic: Identifier | None = None
    checks: list[AnyCheck] = Field(min_length=1)

    @property
    def shown_title(self) -> str:
        """The title, and whether the exercise is a further one."""
        return f"{self.title} (further)" if self.further else self.title


class Lab(Strict):
    """One lab: the folder labs/<id>.

    minutes       time that a student needs
    solution_after  how many rulesets of their own students try before they may see an exercise's solution
    sources       documents that the cases come from
    classes       traffic classes, counted one by one at the sink; a packet belongs to the first class that it fits
    traffic       by name: a TRex profile with its tunables, or TCP connections
    trials        how often and how long a case is measured
    baseline      the case that ratios in reports refer to; in a lab for several systems, one case for each, by system
    cases         cases, one by one
    sweeps        a case for each value of a parameter
                  Cases or sweeps that have much in common can be one entry: the common fields, and a list of what
                  differs under `series`
    parts         if the lab is cut into parts, each with a question, minutes, cases and exercises
    crossovers    pairs of sweeps: where one becomes faster than the other
    checks        checks that several exercises use, by name
    expectations  what the cases should measure, and why. The numbers are in ranges.yml, which is generated
    drawn         numbers from a seed: of a class, of a play, or of a student (drawn.py)
    """

    id: Annotated[str, Field(pattern=r"^lab\d\d-[a-z0-9-]+$")]
    title: str
    minutes: int = Field(ge=5, le=240)
    solution_after: int = Field(default=3, ge=1)
    sources: list[str] = []
    needs: Needs = Needs()
    defaults: Defaults = Defaults()
    classes: dict[Identifier, TrafficClass] = {}
    declared_traffic: dict[Identifier, Traffic] = Field(default={}, alias="traffic")
    trials: Trials = Trials()
    declared_baseline: str | dict[Identifier, str] = Field(alias="baseline")
    single_cases: list[Case] = Field(default=[], alias="cases")
    sweeps: list[Sweep] = []
    parts: list[Part] = []
    crossovers: list[DeclaredCrossover] = []
    shared_checks: dict[Identifier, AnyCheck] = Field(default={}, alias="checks")
    exercises: list[Exercise] = []
    declared_expectations: list[DeclaredExpectation] = Field(default=[], alias="expectations")
    drawn: dict[Identifier, Drawn] = {}
    _folder: Path = PrivateAttr(default=Path())
    _ranges: Ranges = PrivateAttr(default=Ranges())
    _expectations: list[Expectation] = PrivateAttr(default=[])
    _whole: Lab | None = PrivateAttr(default=None)

    @property
    def whole(self) -> Lab:
        """The lab on all its systems, where this is what one of them measures."""
        return self._whole or self

    @property
    def baseline(self) -> str:
        """The case that ratios refer to; in a lab for several systems, that of the first."""
        by_system = self.declared_baseline
        return by_system if isinstance(by_system, str) else by_system[self.needs.systems[0]]

    @property
    def folder(self) -> Path:
        """The folder that holds lab.yml."""
        return self._folder

    def profile(self, traffic: str) -> Path | None:
        """The file of a traffic's profile, which may be in labs/common; None for TCP connections."""
        named = self.traffic[traffic].profile
        return None if named is None else Path(os.path.normpath(self.folder / named))

    @property
    def code_folders(self) -> list[Path]:
        """The folders with the Python files of its profiles: its own, and those of the profiles that it shares."""
        profiles = filter(None, map(self.profile, self.declared_traffic))
        return sorted({self.folder, *(profile.parent for profile in profiles)})

    @property
    def number(self) -> int:
        """The two digits of the identifier; ports derive from it."""
        return int(self.id[3:5])

    @property
    def ranges(self) -> Ranges:
        """What ranges.yml says; nothing before the lab was measured."""
        return self._ranges

    @property
    def expectations(self) -> list[Expectation]:
        """The expectations that have ranges, ready to judge."""
        return self._expectations

    def with_ranges(self, ranges: Ranges) -> Lab:
        """This lab, judged by these ranges. Ranges of cases that it does not have are ignored."""
        found = [
            expectation
            for declared in self.declared_expectations
            for expectation in ranges.expectations(declared, self.cases_named(declared.cases))
        ]
        lab = self.with_expectations(found)
        lab._ranges = ranges
        return lab

    def with_expectations(self, expectations: list[Expectation]) -> Lab:
        """This lab, judged by these expectations."""
        lab = self.model_copy()
        lab._expectations = expectations
        return lab

    @cached_property
    def cases(self) -> dict[str, Case]:
        """Every case by id, sweeps written out, in the order in which they are measured."""
        return {case.id: case for case in self._every_case()}

    def cases_named(self, names: list[str]) -> list[str]:
        """Ids of cases; the id of a sweep means the case of each of its values."""
        sweeps = self._case_ids_of_sweeps()
        return list(dict.fromkeys(case for name in names for case in sweeps.get(name, [name])))

    @cached_property
    def traffic(self) -> dict[str, Traffic]:
        """Every traffic by name: the declared ones, and those of sweeps that vary a tunable."""
        every = dict(self.declared_traffic)
        for sweep in self.sweeps:
            if sweep.varies == "traffic" and sweep.traffic in self.declared_traffic:
                for value in sweep.values:
                    tuned = self.declared_traffic[sweep.traffic].tuned(**{sweep.parameter: value})
                    every[str(sweep.traffic_for(value))] = tuned
        return every

    def tunables(self, traffic: str, seed: int, play: int = 0) -> dict[str, Value]:
        """The arguments of a traffic's profile: those of lab.yml, and what this seed draws for them in this play."""
        own = self.traffic[traffic]
        return own.with_drawn(self._with_drawn(traffic, {"tunables": dict(own.tunables)}, seed, play)["tunables"])

    def connections(self, traffic: str, seed: int) -> Connections | None:
        """A traffic's TCP connections, with the clients that this seed draws; None if it has a profile."""
        own = self.traffic[traffic].connections
        if own is None:
            return None
        drawn = self._with_drawn(traffic, {"connections": {"clients": own.clients}}, seed)["connections"]
        return Connections.model_validate({**own.model_dump(), **drawn})

    def _with_drawn(self, traffic: str, declared: dict[str, Any], seed: int, play: int = 0) -> dict[str, Any]:
        """What is declared of a traffic, changed by what this seed draws."""
        data = {"traffic": {self._declared_name(traffic): declared}}
        for name, drawn in self.drawn.items():
            here = [place for place in drawn.adds_to if holders(data, place)] if drawn.of != "student" else []
            if here:
                value = drawn.value(str(seed), self.id, name, f"play {play}" if drawn.of == "play" else "")
                drawn.model_copy(update={"adds_to": here}).put(data, value)
        return declared

    def _declared_name(self, traffic: str) -> str:
        """The name in lab.yml of a traffic that may be a sweep's."""
        made_of = {str(one.traffic_for(value)): str(one.traffic) for one in self.sweeps for value in one.values}
        return traffic if traffic in self.declared_traffic else made_of[traffic]

    def exercise(self, exercise_id: str) -> Exercise | None:
        """The exercise of this id; None if the lab has none."""
        return next((e for e in self.exercises if e.id == exercise_id), None)

    def _every_case(self) -> list[Case]:
        return [*self.single_cases, *(case for sweep in self.sweeps for case in sweep.cases())]

    def _case_ids_of_sweeps(self) -> dict[str, list[str]]:
        return {sweep.id: [sweep.case_id(value) for value in sweep.values] for sweep in self.sweeps}

    @model_validator(mode="before")
    @classmethod
    def _completed(cls, data: Any, info: ValidationInfo) -> Any:
        return completed(data, known_metrics(info))

    @model_validator(mode="after")
    def _consistent(self, info: ValidationInfo) -> Lab:
        """Every name that one section uses is declared in another."""
        known = known_metrics(info) or {}
        self._check_traffic()
        self._check_drawn()
        metrics = self._check_cases(known)
        self._check_needs(metrics)
        sweeps = self._case_ids_of_sweeps()
        for expectation in self.declared_expectations:
            expectation.reject_unknown(metrics, sweeps)
            judgeable([expectation.metric], known, f"expectation {expectation.id}")
        for name, check in self.shared_checks.items():
            # Which traffic it is of is known where an exercise uses it.
            check.reject_unknown(f"check {name}", set(self.classes), metrics, known, of_connections=True)
            judgeable(check.metrics, known, f"check {name}")
        self._check_exercises(metrics, known)
        reject_wrong_parts(self.parts, self.minutes, list(metrics), sweeps, [item.id for item in self.exercises])
        for declared in self.crossovers:
            for name in (declared.slower, declared.faster):
                if name not in sweeps:
                    raise ValueError(f"crossover {declared.id}: unknown sweep {name}")
        return self

    def _check_cases(self, known: Metrics) -> dict[str, set[str]]:
        """By case id, what each measures."""
        metrics: dict[str, set[str]] = {}
        for case in self._every_case():
            if case.id in metrics:
                raise ValueError(f"case {case.id} is declared twice")
            metrics[case.id] = {case.metric, *case.also}
            if case.traffic is not None and case.traffic not in self.traffic:
                raise ValueError(f"case {case.id}: unknown traffic {case.traffic}")
            if case.victim_class is not None and case.victim_class not in self.classes:
                raise ValueError(f"case {case.id}: unknown class {case.victim_class}")
            self._reject_wrong_traffic(f"case {case.id}", case.traffic, [case.metric, *case.also], known)
        return metrics

    def _check_needs(self, cases: Container[str]) -> None:
        """Baselines, cases, sweeps and exercises name only systems and NICs that `needs` names."""
        systems, baseline = self.needs.systems, self.declared_baseline
        if not isinstance(baseline, str) and (len(systems) == 1 or baseline.keys() != set(systems)):
            raise ValueError(f"baseline: name one case, or one for each of needs.systems: {', '.join(systems)}")
        for case in [baseline] if isinstance(baseline, str) else baseline.values():
            if case not in cases:
                raise ValueError(f"baseline: unknown case {case}")
        items: list[Case | Sweep | Exercise] = [*self.single_cases, *self.sweeps, *self.exercises]
        for item in items:
            if item.system is not None and item.system not in systems:
                raise ValueError(f"{item.id}: system {item.system} is not one of needs.systems: {', '.join(systems)}")
            if item.nic is not None and item.nic not in self.needs.nics:
                raise ValueError(f"{item.id}: {item.nic} is not in needs.nics")

    def _check_traffic(self) -> None:
        for name, traffic in self.declared_traffic.items():
            background = traffic.connections and traffic.connections.background
            if background and (background not in self.traffic or self.traffic[background].profile is None):
                raise ValueError(f"traffic {name}: background: {background} is not a traffic with a profile")

    def _check_drawn(self) -> None:
        """The seed of a class or of a play draws tunables and clients. A student's lab is checked once it is made."""
        data: dict[str, dict[str, Any]] = {
            "traffic": {name: {"tunables": dict(one.tunables)} for name, one in self.declared_traffic.items()}
        }
        for name, one in self.declared_traffic.items():
            if one.connections is not None:
                data["traffic"][name]["connections"] = {"clients": one.connections.clients}
        for name, drawn in self.drawn.items():
            if drawn.of == "student":
                continue
            for place in drawn.adds_to:
                if not _BY_SEED.fullmatch(place) or (drawn.of == "play" and ".connections." in place):
                    also = ", or traffic.NAME.connections.clients" if drawn.of == "class" else ""
                    raise ValueError(
                        f"drawn {name}: {place}: of a {drawn.of}, only traffic.NAME.tunables.KEY is drawn{also}"
                    )
            try:
                drawn.put(data, drawn.values[0])
            except ValueError as error:
                raise ValueError(f"drawn {name}: {error}") from error

    def _check_exercises(self, metrics: dict[str, set[str]], known: Metrics) -> None:
        seen: set[str] = set()
        for exercise in self.exercises:
            where = f"exercise {exercise.id}"
            if exercise.id in seen:
                raise ValueError(f"{where} is declared twice")
            seen.add(exercise.id)
            if exercise.traffic is not None and exercise.traffic not in self.traffic:
                raise ValueError(f"{where}: unknown traffic {exercise.traffic}")
            played = None if exercise.traffic is None else self.traffic[exercise.traffic]
            of_connections = played is not None and played.connections is not None
            for check in exercise.checks:
                check.reject_unknown(where, set(self.classes), metrics, known, of_connections=of_connections)
                judgeable(check.metrics, known, where)
            asked = list(dict.fromkeys(name for check in exercise.checks for name in check.metrics))
            self._reject_wrong_traffic(where, exercise.traffic, asked, known)
            for missing in missing_fields(exercise, asked, known):
                raise ValueError(f"{where}: {missing}")
            predict = exercise.predict
            if predict.traffic_class and predict.traffic_class not in self.classes:
                raise ValueError(f"{where}: predict: unknown class {predict.traffic_class}")
            if predict.metric in known and known[predict.metric].by_class and not predict.traffic_class:
                raise ValueError(f"{where}: predict: {predict.metric} needs a class")

    def _reject_wrong_traffic(self, where: str, name: str | None, asked: list[str], known: Metrics) -> None:
        """Each metric says whether it is measured on packets, on connections, or without traffic."""
        if name is None:
            for metric in (name for name in asked if name in known and "none" not in known[name].traffic):
                raise ValueError(f"{where}: {metric} needs a traffic")
            return
        played: TrafficKind = "packets" if self.traffic[name].connections is None else "connections"
        wrong = sorted(metric for metric in asked if metric in known and played not in known[metric].traffic)
        if wrong and played == "packets":
            raise ValueError(f"{where}: {', '.join(wrong)}: needs a traffic of connections, {name} is a profile")
        if wrong:
            raise ValueError(f"{where}: {', '.join(wrong)}: needs a traffic profile, {name} is connections")
