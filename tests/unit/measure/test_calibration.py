# SPDX-License-Identifier: GPL-2.0-or-later
"""`fwlab calibrate`: what it keeps, when that is stale or broken, and what it refuses later."""

import contextlib
import datetime
import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fwlab.checkout.project import Project, load_topology
from fwlab.cli import calibrate as command
from fwlab.cli import doctor
from fwlab.cli.main import main
from fwlab.judge.verdicts import NEAR_CEILING, all_doubts, judge_cases
from fwlab.measure.calibration import (
    MAX_DAYS,
    HostClass,
    Setup,
    calibrated,
    load_host_class,
    path_of,
    write_host_class,
)
from fwlab.metrics.registry import METRICS
from fwlab.model.errors import EXIT_PASS, EXIT_UNMEASURED, EXIT_USAGE, BadInput
from fwlab.model.results import Measured, Run
from fwlab.model.verdict import Outcome
from tests import ROOT
from tests.checkout import lab_named
from tests.fakes.factories import a_lab, a_run, expectation, measured, real, testbed, trials

HOSTS = expectation(id="hosts", hosts={"epyc": {"raw-drop": [290_000, 310_000]}})
LAB = a_lab([HOSTS])
NOW = datetime.datetime(2026, 1, 3, tzinfo=datetime.UTC)


def bare(*pps: float, generator: float = 1_000_000, **fields: Any) -> Measured:
    return measured(
        LAB, "raw-drop", trials=trials(*pps, scale=1), also=["generator"], generator_pps=generator, **fields
    )


def on_real(*cases: Measured) -> Run:
    return a_run(list(cases), testbed=real())


def a_class(ceiling: float = 1_000_000, **setup: Any) -> HostClass:
    run = on_real()
    return HostClass(
        name="epyc",
        measured=datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC),
        case="lab99-made-up raw-drop",
        setup=Setup.of(run).model_copy(update=setup),
        ceiling_pps=[ceiling],
        bare_dut_pps=[300_000],
    )


# ---- the file
def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    project = Project(tmp_path)
    assert load_host_class(project) is None
    assert write_host_class(project, a_class()) == tmp_path / ".fwlab" / "host-class.json"
    assert load_host_class(project) == a_class()


def broken(**fields: Any) -> str:
    return json.dumps({**json.loads(a_class().model_dump_json()), **fields})


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "Invalid JSON"),
        ("{}", "name: Field required"),
        (broken(ceiling_pps=[0]), "ceiling_pps.0: "),
        (broken(measured="2026-01-02T00:00:00"), "measured: "),
    ],
)
def test_a_broken_file_is_named_with_its_fault(tmp_path: Path, text: str, fault: str) -> None:
    project = Project(tmp_path)
    path_of(project).parent.mkdir()
    path_of(project).write_text(text)
    with pytest.raises(BadInput, match=rf"^\.fwlab/host-class\.json: .*({fault})") as raised:
        load_host_class(project)
    assert raised.value.hint == "fwlab calibrate NAME"


# ---- whether it holds
def test_a_run_on_the_same_host_gets_its_class_and_ceiling() -> None:
    run, reasons = calibrated(on_real(), a_class(), NOW)
    assert (run.host.host_class, run.host.ceiling_pps, reasons) == ("epyc", 1_000_000, [])


def test_a_class_that_the_environment_names_stays() -> None:
    run = on_real()
    run = run.model_copy(update={"host": run.host.model_copy(update={"host_class": "named"})})
    assert calibrated(run, a_class(), NOW)[0].host.host_class == "named"


@pytest.mark.parametrize(
    ("setup", "reasons"),
    [
        ({"kernel": "5.10"}, ["kernel was 5.10, is 6.1.0-host"]),
        ({"accelerator": "tcg"}, ["accelerator was tcg, is kvm"]),
        ({"link": "virtio", "cores": 64}, ["cores was 64, is 2", "link was virtio, is socket"]),
    ],
)
def test_another_setup_makes_it_stale(setup: dict[str, Any], reasons: list[str]) -> None:
    run, [said] = calibrated(on_real(), a_class(**setup), NOW)
    assert all(reason in said for reason in [*reasons, "fwlab calibrate epyc renews it"])
    assert (run.host.host_class, run.host.ceiling_pps) == (None, None)


@pytest.mark.parametrize(("days", "stale"), [(0, False), (MAX_DAYS, False), (MAX_DAYS + 1, True), (-2, True)])
def test_it_ages(days: int, stale: bool) -> None:
    now = a_class().measured + datetime.timedelta(days=days)
    assert bool(calibrated(on_real(), a_class(), now)[1]) is stale


def test_the_virtual_testbed_has_no_class() -> None:
    run = a_run([], testbed=testbed())
    assert calibrated(run, a_class(kernel="5.10"), NOW) == (run, [])


# ---- what follows
def with_ceiling(ceiling: float, *cases: Measured) -> Run:
    return calibrated(on_real(*cases), a_class(ceiling), NOW)[0]


@pytest.mark.parametrize(
    ("ceiling", "pps", "said"),
    [
        (400_000, 300_000, None),
        (320_000, 300_000, "300,000 pps is 94% of what the generator can send on this host (320,000 pps"),
        (110_000, 100_000, "100,000 pps is 91%"),  # far outside its range, too
    ],
)
def test_a_figure_near_the_ceiling_is_refused(ceiling: float, pps: float, said: str | None) -> None:
    run = with_ceiling(ceiling, bare(*[pps] * 6))
    [verdict] = judge_cases(LAB, run, METRICS)
    assert verdict.outcome is (Outcome.INCONCLUSIVE if said else Outcome.PASS)
    assert all_doubts(run.cases[0], run, METRICS) == ([verdict.text] if said else [])
    assert (said or "") in verdict.text


def test_what_the_generator_sends_is_not_refused_itself() -> None:
    run = with_ceiling(1_000_000, measured(LAB, "raw-drop", trials=[], metric="generator", generator_pps=1_000_000))
    assert all_doubts(run.cases[0], run, METRICS) == []


# ---- the command
@pytest.fixture
def on_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The command, on a session that measures what it is given."""
    project, seen = Project(tmp_path), []

    def session_of(*found: Measured) -> list[Any]:
        @contextlib.contextmanager
        def opened(context: object, _tell: object) -> Iterator[SimpleNamespace]:
            run = on_real()
            seen.append(context)

            def measure(specs: list[Any]) -> None:
                seen.extend(specs)
                run.cases.extend(found)

            yield SimpleNamespace(measure_cases=measure, run=run)

        monkeypatch.setattr(command, "open_session", opened)
        return seen

    lab = lab_named(command.LAB)
    context = SimpleNamespace(project=project, lab=lab, topology=load_topology(Project(ROOT)))
    asked = []
    monkeypatch.setattr(command, "run_context", lambda *words, **options: asked.append((words, options)) or context)
    return SimpleNamespace(session_of=session_of, project=project, asked=asked)


def call(*words: str, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr("sys.argv", ["fwlab", "calibrate", *words])
    with pytest.raises(SystemExit) as left:
        main()
    return int(left.value.code or 0)


def test_it_measures_the_bare_dut_and_the_generator(
    on_host: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen = on_host.session_of(bare(*[300_000] * 10))
    assert call("epyc", monkeypatch=monkeypatch) == EXIT_PASS
    assert on_host.asked[0][0][1:] == ("lab01-forwarding", "real")
    _context, spec = seen
    assert (spec.id, spec.metrics) == ("forward", ["capacity", "generator"])
    assert (spec.trial.count, spec.interleaved) == (10, None)
    found = load_host_class(on_host.project)
    assert (found.ceiling, found.bare_dut, len(found.bare_dut_pps)) == (1_000_000, 300_000, 10)
    assert "1,000.0 kpps" in capsys.readouterr().out


def test_a_generator_that_is_hardly_faster_than_the_dut_is_kept_and_reported(
    on_host: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    on_host.session_of(bare(*[300_000] * 10, generator=300_000 / NEAR_CEILING))
    assert call("epyc", monkeypatch=monkeypatch) == EXIT_UNMEASURED
    assert "figures above 300.0 kpps are inconclusive" in capsys.readouterr().out
    assert load_host_class(on_host.project) is not None


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (bare(*[300_000] * 10, problems=["DUT not saturated: 3 of 10 valid trials"]), "DUT not saturated"),
        (bare(*[250_000, 300_000] * 5), "confidence interval is"),
        (bare(*[300_000] * 10, generator=None), "nothing was measured"),
        (measured(LAB, "raw-drop", trials=[], refused="no such file"), "nothing was measured"),
    ],
)
def test_a_doubtful_calibration_is_not_kept(
    found: Measured, why: str, on_host: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    on_host.session_of(found)
    assert call("epyc", monkeypatch=monkeypatch) == EXIT_UNMEASURED
    said = capsys.readouterr().err
    assert why in said
    assert "fwlab calibrate epyc" in said
    assert load_host_class(on_host.project) is None


def test_a_name_that_no_range_could_have_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("My Host", monkeypatch=monkeypatch) == EXIT_USAGE
    assert "small letters" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "ok", "says"),
    [
        (None, True, "not calibrated"),
        (
            a_class().model_dump_json(),
            True,
            "epyc, calibrated 2026-01-02: the generator sends 1,000.0 kpps",
        ),
        ("{", False, ".fwlab/host-class.json"),
    ],
)
def test_doctor_says_which_class_this_host_has(tmp_path: Path, text: str | None, ok: bool, says: str) -> None:
    if text is not None:
        path_of(Project(tmp_path)).parent.mkdir()
        path_of(Project(tmp_path)).write_text(text)
    finding = doctor._host_class(Project(tmp_path))
    assert (finding.ok, says in finding.says) == (ok, True)
