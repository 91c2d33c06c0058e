# SPDX-License-Identifier: GPL-2.0-or-later
"""The steps on the emulated host, without starting it: what is run, how it is judged, the record."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

from fwlab.checkout.project import find_project
from fwlab.measure.labs import load_lab
from fwlab.model.results import Run
from fwlab.report.model import build_model
from fwlab.report.registry import RENDERERS
from tests import ROOT
from tests.nested_host.record import MARK, Record, Step
from tests.nested_host.steps import (
    Shell,
    check_host,
    check_link,
    delivers,
    environment,
    finds_kvm,
    measured,
    of_document,
    runs_under_kvm,
)


def doctor(testbed: str, works: bool, **finding: object) -> str:
    optional = {"item": "huge pages", "ok": False, "says": "0", "required": False}
    found = [optional, {"item": "boxes", "ok": True, "says": "three", "required": True, **finding}]
    document = {"testbed": testbed, "kvm": {"works": works, "says": "KVM runs a kernel"}, "findings": found}
    return json.dumps(document, indent=1)


doctor_finds_kvm = of_document(finds_kvm)


def test_doctor_is_right_if_it_found_kvm_and_lacks_nothing() -> None:
    assert doctor_finds_kvm(0, f"a warning\n{doctor('real', True)}") == (True, "testbed real: KVM runs a kernel")
    assert not doctor_finds_kvm(0, doctor("virtual", False))[0]
    found = doctor_finds_kvm(3, doctor("real", True, ok=False, says="none"))
    assert found == (False, "testbed real: KVM runs a kernel; boxes: none")
    assert doctor_finds_kvm(127, "fwlab: not found") == (False, "exit 127: ValueError no document")


def test_all_three_machines_must_run_under_kvm() -> None:
    kvm, tcg = "<domain type='kvm' id='1'>\n", "<domain type='qemu' id='1'>\n"
    assert runs_under_kvm(0, kvm * 3)[0]
    assert not runs_under_kvm(0, kvm * 2 + tcg)[0]
    assert not runs_under_kvm(0, "")[0]


PUBLISHED = Path("results/lab03-ipset/2026-11-26-graded-variants.json")


def run_of(link: str = "socket", accelerator: str = "kvm", median: float | None = 1000.0) -> str:
    """The parts of `fwlab run --json` that are read; test_documents_have_what_is_read holds them against a real one."""
    testbed = {"name": "real", "accelerator": accelerator, "link": link}
    return json.dumps({"testbed": testbed, "cases": [{"id": "raw-drop", "median": median}]}, indent=1)


def test_a_run_is_measured_under_kvm_on_the_link_that_was_asked_for() -> None:
    judge = of_document(partial(measured, "socket"))
    assert judge(3, f"measuring\n{run_of()}") == (True, "real, kvm, socket: raw-drop 1000 pps")
    assert judge(0, run_of(median=None)) == (False, "real, kvm, socket: raw-drop no figure")
    assert not judge(0, run_of(accelerator="tcg"))[0]
    assert not judge(0, run_of(link="virtio"))[0]
    assert not judge(3, "no answer from: dut")[0]


def check_of(*outcomes: str) -> str:
    checks = [{"metric": "delivered", "outcome": outcome} for outcome in outcomes]
    speed = {"metric": "capacity", "outcome": "fail"}
    return json.dumps({"exercises": [{"checks": [*checks, speed]}], "verdict": "fail"}, indent=1)


def test_delivery_decides_whether_an_exercise_is_judged_rightly() -> None:
    reference, mistake = (of_document(partial(delivers, wanted)) for wanted in ({"pass"}, {"fail", "pass"}))
    assert reference(1, check_of("pass", "pass")) == (True, "delivery: pass; in all: fail")
    assert not reference(1, check_of("fail", "pass"))[0]
    assert mistake(1, check_of("fail", "pass"))[0]
    assert not mistake(0, check_of("pass", "pass"))[0]
    assert not reference(3, check_of())[0]
    assert not reference(3, check_of("inconclusive"))[0]


def test_documents_have_what_is_read() -> None:
    """The judges read the documents that this version prints of a published run."""
    run = Run.model_validate_json((ROOT / PUBLISHED).read_text())
    lab = load_lab(find_project(ROOT), run.lab)
    model = build_model(lab, run)
    assert "capacity" not in measured("socket", json.loads(RENDERERS["json"].render(model)))[1]
    assert delivers(set(), json.loads(RENDERERS["check-json"].render(model)))[1].startswith("delivery: fail, pass")


class FakeHost:
    """Answers each command by the first word of `answers` that it contains."""

    def __init__(self, **answers: tuple[int, str]) -> None:
        self.answers, self.commands = answers, []

    def run(self, command: str, tell: Callable[[str], None], **_: object) -> tuple[int, str]:
        self.commands.append(command)
        return next((answer for word, answer in self.answers.items() if word in command), (0, "done"))


def shell(tmp_path: Path, host: FakeHost, link: str | None = None) -> Shell:
    return Shell(host, Record(tmp_path / "log"), environment(link))


def test_each_link_is_asked_for_and_destroyed_at_the_end(tmp_path: Path) -> None:
    host = FakeHost(
        **{
            "dumpxml": (0, "<domain type='kvm'>" * 3),
            "fwlab run": (3, run_of()),
            "reference/. ": (1, check_of("pass", "pass")),
            "mistake/. ": (1, check_of("fail", "pass")),
            "cat reports/socket/run.json": (0, '{"cases": []}'),
        }
    )
    on = shell(tmp_path, host, "socket")
    check_link(on, "socket", ["raw-drop"])
    on.record.complete = True
    assert on.record.ok, on.record.steps
    assert on.record.runs == {"socket": {"cases": []}}
    asked = [command for command in host.commands if "vagrant" in command or "fwlab run" in command]
    assert all("FWLAB_LINK=socket" in command and "FWLAB_TESTBED=real" in command for command in asked)
    assert "VAGRANT_NO_PARALLEL=1" in asked[0]
    assert "vagrant up lab03-ipset" in asked[0]
    assert "vagrant destroy -f lab03-ipset" in asked[-1]


def test_virtual_functions_have_their_host_file_and_kernel(tmp_path: Path) -> None:
    host = FakeHost(**{"vagrant up": (1, "no")})
    check_link(shell(tmp_path, host, "sriov"), "sriov", ["raw-drop"])
    words = ["--draft-host-file", "FWLAB_KERNEL=full make boxes", "vagrant up", "vagrant destroy", "&& make boxes"]
    assert len(host.commands) == len(words)
    assert all(word in command for word, command in zip(words, host.commands, strict=True)), host.commands


def test_machines_that_do_not_start_are_not_measured_but_destroyed(tmp_path: Path) -> None:
    host = FakeHost(**{"vagrant up": (1, "timed out")})
    on = shell(tmp_path, host, "socket")
    check_link(on, "socket", ["raw-drop"])
    assert not on.record.ok
    assert [step.name for step in on.record.steps] == ["socket: vagrant up", "socket: vagrant destroy"]
    assert on.record.steps[0].says == "exit 1: timed out"


def test_a_host_without_kvm_fails_the_check(tmp_path: Path) -> None:
    on = shell(tmp_path, FakeHost(doctor=(3, doctor("virtual", False))))
    assert not check_host(on)
    assert not on.record.ok


def test_the_document_is_marked_and_keeps_every_step(tmp_path: Path) -> None:
    record = Record(tmp_path / "log")
    assert not record.ok
    record.add(Step("one", "true", 1.0, True, "done"))
    assert not record.ok  # it may have been interrupted
    record.complete = True
    assert record.ok
    record.add(Step("two", "false", 1.0, False, "exit 1"))
    record.runs["socket"] = {"testbed": {}}
    record.write(tmp_path / "results/day.json")
    assert json.loads((tmp_path / "results/day-socket.json").read_text()) == {"testbed": {}}
    document = json.loads((tmp_path / "results/day.json").read_text())
    assert document["note"] == MARK
    assert document["ok"] is False
    assert [step["name"] for step in document["steps"]] == ["one", "two"]
    assert "FAILED two" in (tmp_path / "results/day.log").read_text()
    assert "testbed" not in document  # it is no run: guides/where-run.md reads those
