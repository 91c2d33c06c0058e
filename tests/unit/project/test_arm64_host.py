# SPDX-License-Identifier: GPL-2.0-or-later
"""The runner of the DUT on QEMU for arm64, without starting it: the script, the comparison, refusals."""

from __future__ import annotations

import json
import platform
import subprocess
from pathlib import Path

import pytest

from fwlab.checkout.project import Project
from fwlab.measure.labs import load_lab
from fwlab.measure.saved_runs import published_runs
from fwlab.model.errors import CannotMeasure
from fwlab.model.results import Run
from tests import ROOT
from tests.arm64_host import __main__ as runner
from tests.arm64_host.arm64_qemu import AARCH64, PROGRAM, Arm64Qemu, arm64_qemu, elf_machine
from tests.arm64_host.compare import MOST_APART, agreement
from tests.arm64_host.libvirt import arguments, differences
from tests.arm64_host.steps import LAB, LAB_NUMBER, Shell, continued, environment, only_the_dut, refuse_machines
from tests.nested_host.record import Record

PROJECT = Project(ROOT)
CASES = runner.CASES


def programs(folder: Path, **texts: str) -> None:
    for name, text in texts.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)


def unpacked(folder: Path, machine: int = AARCH64) -> Arm64Qemu:
    """Both programs, of which the emulator prints its arguments one a line, or a version."""
    qemu = Arm64Qemu(folder)
    qemu.program.parent.mkdir(parents=True)
    qemu.program.write_bytes(b"\x7fELF".ljust(18, b"\0") + machine.to_bytes(2, "little"))
    qemu.emulator.parent.mkdir(parents=True)
    text = 'case "$*" in *--version) echo QEMU emulator version 7;; *) printf "%s\\n" "$@";; esac'
    programs(qemu.emulator.parent, **{qemu.emulator.name: text})
    return qemu


def test_the_script_leaves_out_what_a_user_mode_emulator_cannot_do(tmp_path: Path) -> None:
    qemu = unpacked(tmp_path / "it has blanks")
    assert arm64_qemu(ROOT, qemu.folder, tmp_path / "log") == qemu, "nothing is unpacked again"
    given = ["-name", "guest=a b", "-sandbox", "on,obsolete=deny", "-S", "-append", "", "-sandbox", "on"]
    said = subprocess.run([str(qemu.script), *given], capture_output=True, text=True, check=True).stdout.splitlines()
    assert said[:3] == ["-L", str(qemu.folder / "arm64"), str(qemu.program)]
    assert said[3:] == ["-name", "guest=a b", "-S", "-append", ""]


def test_a_qemu_for_another_architecture_is_refused(tmp_path: Path) -> None:
    unpacked(tmp_path / "x86", machine=62)
    with pytest.raises(CannotMeasure, match="is for ELF machine 62, not arm64"):
        arm64_qemu(ROOT, tmp_path / "x86", tmp_path / "log")
    (tmp_path / "text").write_text("no ELF file, but longer than its header")
    assert elf_machine(tmp_path / "text") == 0


def test_a_qemu_that_does_not_run_is_refused(tmp_path: Path) -> None:
    qemu = unpacked(tmp_path / "qemu")
    programs(qemu.emulator.parent, **{qemu.emulator.name: "echo Segmentation fault >&2; exit 139"})
    with pytest.raises(CannotMeasure, match="does not run: Segmentation fault"):
        arm64_qemu(ROOT, qemu.folder, tmp_path / "log")


def test_packages_that_cannot_be_had_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs(tmp_path, mmdebstrap='echo "$*"; echo "E: Unable to locate package qemu-system-x86" >&2; exit 25')
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin:/usr/sbin:/sbin")
    with pytest.raises(CannotMeasure, match="mmdebstrap: E: Unable to locate package qemu-system-x86"):
        arm64_qemu(ROOT, tmp_path / "cache", tmp_path / "log")
    assert "--architectures=arm64 --variant=extract --include=qemu-system-x86" in (tmp_path / "log").read_text()
    assert list((tmp_path / "cache").iterdir()) == []


@pytest.mark.parametrize(
    ("emulated", "word", "ok"),
    [(["dut"], PROGRAM, True), (["dut"], "sh", False), ([], PROGRAM, False), (["dut", "sink"], PROGRAM, False)],
    ids=["the DUT alone", "another program", "nothing", "the sink too"],
)
def test_only_the_dut_may_run_on_arm64_code(tmp_path: Path, emulated: list[str], word: str, ok: bool) -> None:
    qemu = unpacked(tmp_path / "qemu")
    own = Path("/usr/bin/qemu-system-x86_64")
    found = {role: qemu.emulator.resolve() if role in emulated else own for role in ("generator", "dut", "sink")}
    assert only_the_dut(found, ["-L", "x", str(qemu.folder / "arm64" / word), "-S"], qemu)[0] is ok


def published() -> Run:
    return published_runs(PROJECT, load_lab(PROJECT, LAB))[0]


def changed(run: Run, share: float, **more: object) -> Run:
    """The run with each packet count of its first wanted case changed by this share."""
    first = run.case(CASES[0])
    trials = [trial.model_copy(update={"processed": round(trial.processed * (1 + share))}) for trial in first.trials]
    case = first.model_copy(update={"trials": trials, **more})
    return run.model_copy(update={"cases": [case, *(one for one in run.cases if one.id != case.id)]})


def test_a_run_agrees_with_itself() -> None:
    steps = list(agreement(published(), published(), CASES))
    assert [step.ok for step in steps] == [True] * (1 + len(CASES))
    assert "+0.000%" in steps[1].says


@pytest.mark.parametrize("share", [MOST_APART * 1.2, -MOST_APART * 1.2])
def test_one_capacity_that_is_apart_is_found(share: float) -> None:
    found = [step.ok for step in agreement(changed(published(), share), published(), CASES)]
    assert found == [True, False, *[True] * (len(CASES) - 1)]
    assert all(step.ok for step in agreement(changed(published(), share / 2), published(), CASES))


def test_a_case_without_a_figure_and_another_kernel_do_not_agree() -> None:
    run = published()
    doubtful = changed(run, 0, problems=["DUT not saturated"])
    assert [step.says for step in agreement(doubtful, run, CASES)][1] == "raw-drop was not measured"
    none = run.model_copy(update={"cases": []})
    assert not any(step.ok for step in list(agreement(none, run, CASES))[1:])
    assert [step.says for step in agreement(run, none, CASES)][1] == "raw-drop is not published"
    other = run.model_copy(update={"dut": run.dut.model_copy(update={"kernel": "6.12.3-amd64"})})
    assert not next(agreement(other, run, CASES)).ok


def test_a_machine_that_boots_has_not_continued() -> None:
    assert continued(0, "Bringing machine up\nDomain created") == (True, "all machines continued from saved states")
    line = "    default: no saved state fits its box, NICs and this host's QEMU, so it boots, and is saved"
    assert continued(0, f"Bringing\n{line}") == (False, line.strip())
    assert not continued(1, "error")[0]


def test_steps_run_in_the_checkout_and_the_record_names_no_path(tmp_path: Path) -> None:
    record = Record(tmp_path / "log", "a note")
    hidden = {str(tmp_path): "."}
    shell = Shell(Project(tmp_path), record, environment(Arm64Qemu(tmp_path), saved=False), hidden)
    assert shell.step("where", ["sh", "-c", "pwd; echo $FWLAB_DUT_QEMU $FWLAB_SAVED", str(tmp_path / "given")])
    assert not shell.step("fails", ["sh", "-c", "echo why; exit 3"])
    assert [(step.ok, step.says) for step in record.steps] == [
        (True, "./qemu-system-x86_64 no"),
        (False, "exit 3: why"),
    ]
    assert str(tmp_path) not in record.log.read_text() + json.dumps(record.document())
    assert record.document()["note"] == "a note"
    assert "FWLAB_DUT_QEMU" not in environment(None, saved=True)


def test_machines_that_exist_are_not_measured(tmp_path: Path) -> None:
    project = Project(tmp_path)
    refuse_machines(project)
    (project.state / LAB).mkdir(parents=True)
    (project.state / LAB / "machines.json").write_text("{}")
    with pytest.raises(CannotMeasure, match="exist already"):
        refuse_machines(project)


def test_what_cannot_be_measured_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert runner.main(["--cases", "raw-drop,nonsense"]) == 2
    assert "lab03-ipset has no case nonsense" in capsys.readouterr().err
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    assert runner.main([]) == 3
    assert "this host is aarch64 itself" in capsys.readouterr().err


def test_the_number_of_the_lab() -> None:
    assert load_lab(PROJECT, LAB).number == LAB_NUMBER


def fake_virsh(folder: Path, line: str, status: int = 0) -> list[str]:
    """Prints a command line in which ROOT is the folder that the connection names."""
    programs(folder, virsh=f'root=${{3#*root=}}\necho "{line}" | sed "s|ROOT|${{root%/libvirt}}|g"\nexit {status}')
    return [str(folder / "virsh")]


def test_two_libvirts_are_compared_without_their_folders(tmp_path: Path) -> None:
    one = fake_virsh(tmp_path, "LC_ALL=C HOME=ROOT/x /usr/bin/qemu -name 'a b' -mon ROOT/m.sock")
    found = arguments(one, {}, "<domain/>")
    assert found == ["/usr/bin/qemu", "-name", "a b", "-mon", "ROOT/m.sock"]
    assert differences(found, arguments(one, {}, "<domain/>")) == []
    assert differences(found, ["/usr/bin/qemu", "-name", "a b", "-mon", "other"]) == ["ROOT/m.sock", "other"]
    assert differences(["-a", "-b"], ["-b", "-a"]) == ["their order"]


def test_a_libvirt_that_refuses_the_description_says_why(tmp_path: Path) -> None:
    line = "error: unsupported configuration: No emulator found for arch 'aarch64'"
    with pytest.raises(CannotMeasure, match="No emulator found for arch 'aarch64'"):
        arguments(["sh", "-c", f'echo "{line}" >&2; exit 1'], {}, "<domain/>")
