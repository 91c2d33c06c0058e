# SPDX-License-Identifier: GPL-2.0-or-later
"""A lab for two systems, measured: a run measures one, a report shows both, a grading leaves the other out."""

import dataclasses
import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from fwlab.checkout.raw_results import SUFFIX
from fwlab.grading.engine import Engine
from fwlab.grading.grading_plan import plan_grading
from fwlab.grading.options import GradingOptions
from fwlab.measure.context import RunContext
from fwlab.measure.labs import on_dut
from fwlab.measure.plan import chosen_cases, chosen_exercises, submitted_spec
from fwlab.measure.saved_runs import latest_run, published_files, runs_of_other_systems
from fwlab.model.errors import BadInput
from fwlab.report.files import write_report
from fwlab.report.model import build_model
from fwlab.report.renderers.html import page
from fwlab.report.renderers.json_output import run_document
from fwlab.report.renderers.markdown import figures_table
from fwlab.report.renderers.terminal import show
from fwlab.rulesets.files import student_ruleset
from fwlab.testbed import machine_record
from fwlab.testbed.selection import TestbedRequest
from tests.checkout import PROJECT, TOPOLOGY, lab_named
from tests.fakes.two_systems import FREEBSD, LAB, LINUX, freebsd_run, linux_run
from tools.ranges import as_yaml, renewed

LAB08 = "lab08-pf"


class TestPlan:
    def test_a_dut_measures_its_own_cases(self) -> None:
        lab = lab_named(LAB08)
        parts = {system: on_dut(lab, TOPOLOGY.with_dut(system), lab) for system in ("linux", "freebsd")}
        assert [case.id for case in chosen_cases(parts["linux"], [])] == list(parts["linux"].cases)
        assert {system: len(part.exercises) for system, part in parts.items()} == {"linux": 3, "freebsd": 4}
        with pytest.raises(BadInput) as refused:
            chosen_cases(parts["linux"], ["pf-none"])
        assert str(refused.value) == (
            "pf-none is measured on a DUT with freebsd; this one runs another system\n"
            "  next: vagrant destroy -f lab08-pf, then FWLAB_DUT=freebsd and the same command "
            "(its box: packer/build dut-freebsd)"
        )
        with pytest.raises(BadInput, match="ex1-protocol is measured on a DUT with linux; this one runs another"):
            chosen_exercises(parts["freebsd"], "ex1-protocol")
        with pytest.raises(BadInput, match="lab08-pf has no case nothing"):
            chosen_cases(parts["linux"], ["nothing"])

    def test_machines_of_another_lab_need_the_right_system(self) -> None:
        lab, other = lab_named(LAB08), lab_named("lab03-ipset")
        assert on_dut(lab, TOPOLOGY, other).baseline == "linux-forward"
        only = lab.model_copy(update={"needs": lab.needs.model_copy(update={"systems": ["freebsd"]})})
        with pytest.raises(BadInput, match="lab08-pf needs a DUT with freebsd; that of lab03-ipset runs linux"):
            on_dut(only, TOPOLOGY, other)

    @pytest.mark.parametrize(
        ("system", "exercise", "name", "says"),
        [
            ("freebsd", "ex4-table", "rules.nft", "which has no tool for *.nft"),
            ("linux", "ex1-protocol", "pf.conf", "which has no tool for pf.conf"),
        ],
    )
    def test_a_file_for_another_system_is_refused(
        self, tmp_path: Path, system: str, exercise: str, name: str, says: str
    ) -> None:
        (tmp_path / name).write_text("")
        topology = TOPOLOGY.with_dut(system)
        lab = lab_named(LAB08)
        context = RunContext(PROJECT, topology, on_dut(lab, topology, lab), TestbedRequest("virtual"))
        (chosen,) = chosen_exercises(context.lab, exercise)
        with pytest.raises(BadInput) as refused:
            submitted_spec(context, chosen, tmp_path, student_ruleset(tmp_path))
        assert refused.value.message == f"{name}: {exercise} is measured on {system}, {says}"
        assert refused.value.hint == f"remove {name}"


class TestReport:
    def test_both_runs_are_judged_by_their_own_baselines(self) -> None:
        model = build_model(LINUX, linux_run(), [freebsd_run()])
        ratios = {row.id: row.of("capacity").ratio for row in model.cases}
        linux = {"raw-drop": 1, "set-1": 0.9, "rules-16": 0.8, "rules-1024": 0.05}
        assert ratios == {**linux, "pf-off": 1, "pf-16": 0.75, "pf-1024": 0.5}
        assert {row.system for row in model.cases} == {"linux", "freebsd"}
        assert model.notes == ()
        assert [run.dut.system for run in model.runs] == ["freebsd", "linux"]

    def test_a_crossover_is_between_both_runs(self) -> None:
        model = build_model(LAB, freebsd_run(), [linux_run()])
        (found,) = model.crossovers
        assert found.first < found.value < found.last
        assert build_model(LAB, linux_run(), []).crossovers == ()

    def test_the_missing_half_is_named_with_its_command(self) -> None:
        (note,) = build_model(LINUX, linux_run(), []).notes
        assert "FWLAB_DUT=freebsd fwlab run lab99-made-up" in note
        assert "packer/build dut-freebsd" in note
        assert build_model(LINUX, linux_run()).notes == ()

    def test_all_renderers_show_both_kernels(self) -> None:
        model = build_model(LAB, linux_run(), [freebsd_run()])
        out = io.StringIO()
        show(model, Console(file=out, width=100))
        for text in (out.getvalue(), page(model), figures_table(model)):
            assert "FreeBSD 15.1-RELEASE" in text
            assert "6.1.0-dut" in text
        assert "ratio to `pf-off` or `raw-drop`" in figures_table(model)
        cases = {case["id"]: case for case in run_document(model)["cases"]}
        assert cases["pf-16"]["ratio"] == {"to": "pf-off", "value": 0.75}
        assert cases["set-1"]["ratio"] == {"to": "raw-drop", "value": 0.9}

    def test_each_system_keeps_its_latest_run(self, tmp_path: Path) -> None:
        project = dataclasses.replace(PROJECT, root=tmp_path)
        folder = tmp_path / "reports" / LAB.id
        assert latest_run(project, LAB) == folder / "run-freebsd.json"
        write_report(build_model(LINUX, linux_run(), []), folder)
        assert runs_of_other_systems(LINUX, "linux", folder) == []
        write_report(build_model(FREEBSD, freebsd_run(), runs_of_other_systems(FREEBSD, "freebsd", folder)), folder)
        assert sorted(path.name for path in folder.glob("*.json")) == ["run-freebsd.json", "run-linux.json"]
        assert runs_of_other_systems(FREEBSD, "freebsd", folder) == [linux_run()]
        assert latest_run(project, LAB).parent == folder

    def test_a_damaged_run_of_the_other_system_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "run-linux.json").write_text("{")
        with pytest.raises(BadInput, match=r"run-linux\.json: not a run of fwlab"):
            runs_of_other_systems(FREEBSD, "freebsd", tmp_path)

    def test_each_system_has_a_published_run(self, tmp_path: Path) -> None:
        folder = tmp_path / "results" / LAB.id
        folder.mkdir(parents=True)
        for name in ("linux", "freebsd"):
            (folder / f"published-{name}{SUFFIX}").write_bytes(b"")
        found = published_files(dataclasses.replace(PROJECT, root=tmp_path), LAB)
        assert [path.name for path in found] == ["published-freebsd.json.gz", "published-linux.json.gz"]


def test_ranges_of_one_system_keep_those_of_the_other() -> None:
    first = renewed(LAB, linux_run(), "results/linux.json")
    both = renewed(LAB.with_ranges(first), freebsd_run(), "results/freebsd.json")
    text = as_yaml(LAB, both)
    assert 'kernel: "FreeBSD 15.1"' in text
    assert 'raw-drop: { median: 300000, kernel: "6.1", source: "results/linux.json" }' in text
    judged = LAB.with_ranges(both)
    found = {
        row.id: row.outcome.value for row in build_model(judged, linux_run(), [freebsd_run()]).cases if row.outcome
    }
    assert found == dict.fromkeys(["raw-drop", "set-1", "pf-off", "pf-16", "pf-1024"], "pass")


@pytest.mark.usefixtures("unplayed")
class TestGrading:
    def plan(self, monkeypatch: pytest.MonkeyPatch, **options: Any):
        monkeypatch.setenv("FWLAB_DUT", "linux")
        monkeypatch.setattr(machine_record, "recorded_boxes", lambda *_: {})  # whatever runs in this checkout
        return plan_grading(PROJECT, GradingOptions(labs=[LAB08], **options))

    def test_the_labs_own_rulesets_of_the_other_system_are_left_out(self, monkeypatch: pytest.MonkeyPatch) -> None:
        plan = self.plan(monkeypatch, parts=["reference"])
        assert [work.exercise.id for work in plan.works[LAB08]] == ["ex1-protocol", "ex2-hosts", "ex3-stateless"]
        assert plan.elsewhere[LAB08].startswith(
            "ex4-table, ex5-order, ex6-no-state, ex7-limit: the exercise is measured on a DUT with freebsd"
        )
        assert plan_grading(PROJECT, GradingOptions(labs=["lab03-ipset"])).elsewhere == {}

    def test_a_students_exercise_of_the_other_system_is_inconclusive(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        folder = tmp_path / "class" / "student-a" / "ex4-table"
        folder.mkdir(parents=True)
        (folder / "pf.conf").write_text("pass\n")
        plan = self.plan(monkeypatch, submissions=tmp_path / "class")
        assert len(plan.works[LAB08]) == 7
        work = next(work for work in plan.works[LAB08] if work.exercise.id == "ex4-table")
        engine = Engine(plan, lambda _line: None)
        engine.begin(plan.works)
        assert "ex4-table is measured on a DUT with freebsd" in str(engine.mark(LAB08, work).missing)
        (row,) = [line for line in engine.marks(LAB08).splitlines() if ",ex4-table," in line]
        assert row.startswith("student-a,ex4-table,inconclusive,0,4,ex4-table is measured on a DUT with freebsd")
