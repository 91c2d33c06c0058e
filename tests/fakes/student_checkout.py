# SPDX-License-Identifier: GPL-2.0-or-later
"""A checkout with one small lab of two exercises, and a session that measures what a test says."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fwlab.checkout.project import Project
from fwlab.cli import main
from fwlab.measure.labs import load_lab
from fwlab.model.lab import Lab
from fwlab.model.results import Measured
from fwlab.model.ruleset import ruleset_hash
from fwlab.model.trial import Delivery
from tests.fakes import factories

LAB = "lab98-trouble"
EX1, EX2 = "ex1-block", "ex2-more"
#: Exit code, standard output, standard error.
Door = Callable[..., tuple[int, str, str]]


def make(top: Path) -> Path:
    """The checkout, with a reference of the first exercise alone."""
    factories.small_checkout(top, LAB)
    folder = top / "labs" / LAB
    text = (folder / "lab.yml").read_text()
    exercises = text[text.index("  - id: ex1-block") : text.index("expectations:")]
    second = exercises.replace("ex1-block", EX2).replace("one host", "more")
    (folder / "lab.yml").write_text(text.replace("expectations:", f"{second}expectations:"))
    for name in (f"{EX2}/start", f"{EX1}/reference"):
        (folder / "rulesets" / name).mkdir(parents=True)
    start = folder / "rulesets" / EX1 / "start" / "rules.iptables"
    (folder / "rulesets" / EX2 / "start" / "rules.iptables").write_text(start.read_text())
    (folder / "rulesets" / EX1 / "reference" / "rules.iptables").write_text(
        "*raw\n-A PREROUTING -s 198.18.20.66 -j DROP\nCOMMIT\n"
    )
    return folder


def lab(top: Path) -> Lab:
    return load_lab(Project(top), LAB)


class Measuring:
    """A session. `arrived`: packets of the attacker that reach the sink; `problems` make it inconclusive."""

    def __init__(self) -> None:
        self.run = factories.a_run([], lab=LAB)
        self.arrived, self.problems, self.opened = 0, [], 0

    @contextlib.contextmanager
    def open(self, *_: object) -> Iterator[Measuring]:
        self.opened += 1
        self.run = factories.a_run([], lab=LAB)
        yield self

    def require(self, *_: object) -> None: ...

    def measurable(self, specs: list) -> list:
        return specs

    def measure_cases(self, specs: list) -> None:
        self.run.cases += [self._measured(spec, 300_000) for spec in specs]

    def measure_exercises(self, specs: list) -> None:
        self.run.exercises += [self._measured(spec, 250_000) for spec in specs]

    def _measured(self, spec, pps: float) -> Measured:
        offered, arrived = {"attacker": 900}, {"attacker": self.arrived}
        return Measured(
            id=spec.id,
            title=spec.title,
            ruleset=spec.ruleset,
            remarks=spec.remarks,
            ruleset_hash=ruleset_hash(spec.files),
            parameters=spec.parameters,
            traffic="flood",
            also=["delivered"],
            trials=factories.trials(pps, pps, pps),
            deliveries=[Delivery(intended_load=1000, sent=900, offered=offered, arrived=arrived)],
            problems=self.problems,
            wall_s=7.0,
        )


def measuring(monkeypatch: pytest.MonkeyPatch) -> Measuring:
    """A session that measures what it is given, in place of the machines'."""
    session = Measuring()
    monkeypatch.setattr(main, "open_session", session.open)
    return session


def door(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Door:
    """`fwlab WORDS`."""

    def call(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["fwlab", *words])
        with pytest.raises(SystemExit) as left:
            main.main()
        said = capsys.readouterr()
        return left.value.code or 0, said.out, said.err

    return call
