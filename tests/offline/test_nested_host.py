# SPDX-License-Identifier: GPL-2.0-or-later
"""The runner of the emulated host, without starting it: arguments, staging, refusals, judging, the record."""

from __future__ import annotations

import itertools
import json
import re
import stat
from collections.abc import Callable
from functools import partial
from pathlib import Path

import psutil
import pytest
from filelock import FileLock

from fwlab.host.project import Project, find_project
from fwlab.images.build import LINUX_IMAGES, Builder
from fwlab.images.subprocesses import Subprocesses
from fwlab.measure.labs import load_lab
from fwlab.model.errors import BadInput, CannotMeasure
from fwlab.model.results import Run
from fwlab.report.model import build_model
from fwlab.report.registry import RENDERERS
from tests.nested_host import __main__ as runner
from tests.nested_host.image import boxes_disk, checkout_files, image_key, need_room, stage
from tests.nested_host.machine import PROGRESS, HostFiles, arguments, free_port, plain
from tests.nested_host.private_qemu import LOADER, PROGRAM, PrivateQemu, private_qemu, with_backports
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

ROOT = Path(__file__).resolve().parents[2]
FILES = HostFiles(*(Path("/x") / name for name in ("vmlinuz", "initrd", "disk", "boxes", "seed", "key")))
MIRROR = "deb [signed-by=/k.gpg] http://mirror.example/debian/ bookworm main"


def pairs(option: str) -> list[str]:
    words = arguments(FILES, 2222, Path("/x/console"))
    return [value for name, value in itertools.pairwise(words) if name == option]


def test_the_host_has_svm_an_iommu_and_two_joined_ports_with_virtual_functions() -> None:
    assert pairs("-accel") == ["tcg,thread=single"]
    assert pairs("-icount") == ["shift=0,sleep=on"]
    assert {"+svm", "+npt"} < set(pairs("-cpu")[0].split(","))
    devices = pairs("-device")
    assert any(device.startswith("intel-iommu,") for device in devices)
    ports = [device for device in devices if device.startswith("igb,")]
    hubs = [netdev for netdev in pairs("-netdev") if netdev.startswith("hubport,")]
    assert len(ports) == len(hubs) == 2
    assert {netdev.split("hubid=")[1] for netdev in hubs} == {"1"}


def test_nothing_leaves_the_hosts_user_mode_network() -> None:
    users = [netdev for netdev in pairs("-netdev") if not netdev.startswith("hubport,")]
    assert users == ["user,id=management,restrict=on,hostfwd=tcp:127.0.0.1:2222-:22"]


def test_only_its_own_disk_is_written() -> None:
    drives = {drive.split("file=")[1].split(",")[0]: drive for drive in pairs("-drive")}
    assert [path for path, drive in drives.items() if "readonly=on" not in drive] == ["/x/disk"]


def test_backports_come_from_the_same_mirror() -> None:
    lines = with_backports(f"{MIRROR}\n{MIRROR.replace('bookworm', 'bookworm-updates')}\n").splitlines()
    assert lines[2:] == [MIRROR.replace("bookworm", "bookworm-backports")]


def test_sources_without_the_suite_are_refused() -> None:
    with pytest.raises(CannotMeasure, match="no mirror of bookworm"):
        with_backports(MIRROR.replace("bookworm", "trixie"))


def fake_qemu(root: Path, says: str, status: int = 0) -> PrivateQemu:
    """A "loader" that prints a version, whatever it is to load."""
    for name in (LOADER, PROGRAM):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"#!/bin/sh\necho '{says}'\nexit {status}\n")
        (root / name).chmod(0o755)
    return PrivateQemu(root)


def test_version_of_the_newer_qemu(tmp_path: Path) -> None:
    assert fake_qemu(tmp_path, "QEMU emulator version 10.0.2 (Debian 1:10.0.2)").version() == "10.0.2"


@pytest.mark.parametrize(
    ("says", "why"), [("QEMU emulator version 7.2.22", "7.2.22, older than 10"), ("Segmentation fault", "does not run")]
)
def test_a_qemu_that_is_too_old_or_broken_is_refused(tmp_path: Path, says: str, why: str) -> None:
    fake_qemu(tmp_path / "qemu", says)
    with pytest.raises(CannotMeasure, match=why) as caught:
        private_qemu(ROOT, tmp_path, tmp_path / "log")
    assert caught.value.hint == f"rm -r {tmp_path}/qemu"


def programs(folder: Path, **texts: str) -> None:
    for name, text in texts.items():
        path = folder / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)


def test_a_mirror_without_backports_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bin_, project = tmp_path / "bin", tmp_path / "project"
    bin_.mkdir()
    (project / "packer/base").mkdir(parents=True)
    programs(
        bin_, mmdebstrap="echo \"E: Release 'bookworm-backports' for 'qemu-system-x86' was not found\" >&2; exit 25"
    )
    programs(project / "packer/base", mirrors=f"echo '{MIRROR}'")
    monkeypatch.setenv("PATH", f"{bin_}:/usr/bin:/bin")
    with pytest.raises(CannotMeasure, match="bookworm-backports' for 'qemu-system-x86' was not found") as caught:
        private_qemu(project, tmp_path, tmp_path / "log")
    assert str(tmp_path / "log") in caught.value.hint
    assert not (tmp_path / "qemu").exists()


def package_names(path: Path) -> set[str]:
    return {line for line in path.read_text().splitlines() if line and not line.startswith("#")}


def test_staged_role_has_every_package_of_a_host(tmp_path: Path) -> None:
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    (wheels / "some.whl").touch()
    staged = stage(ROOT, wheels, tmp_path)
    role = staged / "provision/nested-host"
    assert package_names(ROOT / "provision/host/packages.txt") < package_names(role / "packages.txt")
    assert "linux-image-amd64" in package_names(role / "packages.txt")
    assert "linux-image-cloud-amd64" not in package_names(staged / "provision/common/packages.txt")
    assert (role / "wheels/some.whl").exists()
    assert (role / "checkout/provision/host/venv").stat().st_mode & stat.S_IXUSR


def test_checkout_has_no_results() -> None:
    names = checkout_files(ROOT)
    assert "Vagrantfile" in names
    assert not [name for name in names if name.startswith("results/")]


@pytest.mark.parametrize(
    "changed", ["provision/host/packages.txt", "requirements.lock", "provision/common/packages.txt"]
)
def test_image_is_made_anew_if_its_parts_change(tmp_path: Path, changed: str) -> None:
    for path in ("packer/base", "provision/host", "provision/common", "provision/nested-host"):
        (tmp_path / path).mkdir(parents=True)
    for path in ("packer/base/build", "provision/run", "provision/nested-host/10-x.sh", "provision/host/venv"):
        (tmp_path / path).write_text("x")
    for path in ("provision/host/packages.txt", "provision/common/packages.txt", "requirements.lock", "pyproject.toml"):
        (tmp_path / path).write_text("x")
    before = image_key(tmp_path)
    assert image_key(tmp_path) == before
    (tmp_path / changed).write_text("y")
    assert image_key(tmp_path) != before


def test_a_full_disk_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CannotMeasure, match="GiB free, the emulated host needs 1048576") as caught:
        need_room(tmp_path, 1 << 50)
    assert "FWLAB_CACHE" in caught.value.hint


@pytest.mark.parametrize(("full", "next_"), [(False, "packer/build"), (True, "FWLAB_KERNEL=full packer/build")])
def test_boxes_that_are_not_built_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, full: bool, next_: str
) -> None:
    monkeypatch.setenv("FWLAB_CACHE", str(tmp_path))
    if full:  # the usual ones are there
        builder = Builder(Project(ROOT), tmp_path, Subprocesses(), print)
        (tmp_path / "boxes").mkdir()
        for image in LINUX_IMAGES:
            for end in ("", ".json"):
                (tmp_path / f"boxes/{image}-{builder.key(image)[:12]}.box{end}").touch()
    with pytest.raises(
        CannotMeasure, match=r"not built: generator-\w+.box, dut-linux-|not built: dut-linux-"
    ) as caught:
        boxes_disk(Project(ROOT), tmp_path, tmp_path / "log", full=full)
    assert caught.value.hint == f"{next_} --no-vagrant"


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--links", "socket,wire"], "unknown link kind wire; there are: .*socket"),
        (["--links", ","], "no link kind"),
        (["--cases", "raw-drop,nothing"], "lab03-ipset has no case nothing"),
    ],
)
def test_a_wrong_name_is_bad_usage(words: list[str], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert runner.main(words) == BadInput.exit_code
    said = capsys.readouterr().err
    assert re.search(why, said)
    assert "\n  next: " in said


def test_a_host_with_little_memory_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(runner, "PROGRAMS", ())
    little = psutil.virtual_memory()._replace(available=1 << 30)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: little)
    assert runner.main([]) == CannotMeasure.exit_code
    assert "1024 MiB of memory available" in capsys.readouterr().err


def test_a_missing_program_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(runner, "PROGRAMS", ("no-such-program",))
    assert runner.main([]) == CannotMeasure.exit_code
    assert "not installed: no-such-program\n  next: make setup" in capsys.readouterr().err


def test_two_runs_at_once_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FWLAB_CACHE", str(tmp_path))
    (tmp_path / "nested-host").mkdir()
    with FileLock(tmp_path / "nested-host/lock"), pytest.raises(CannotMeasure, match="another run"):
        runner.nested_host(Project(tmp_path), ["socket"], ["raw-drop"], keep=False)


def test_results_are_never_replaced(tmp_path: Path) -> None:
    assert runner.free_name(tmp_path, "2026-01-02").name == "2026-01-02.json"
    (tmp_path / "2026-01-02.json").touch()
    (tmp_path / "2026-01-02-2.json").touch()
    assert runner.free_name(tmp_path, "2026-01-02").name == "2026-01-02-3.json"


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


PUBLISHED = Path("results/lab03-ipset/2026-11-22-labs-exercises.json")


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


def test_ci_does_not_run_it() -> None:
    assert "nested" not in (ROOT / ".ci/run").read_text()
    rules = (ROOT / "Makefile").read_text()
    assert "\nnested-host: boxes\n" in rules
    assert not [line for line in rules.splitlines() if line.startswith("test") and "nested" in line]


def test_a_free_port_is_free() -> None:
    assert free_port() > 1023


def test_log_has_no_progress_of_vagrant() -> None:
    """Vagrant separates its progress by carriage returns, and text mode splits there."""
    lines = [plain(line) for line in ("Progress: 1%", "\x1b[KProgress: 2%\n", "\x1b[K==> sink: Starting domain.\n")]
    assert [line for line in lines if not PROGRESS.fullmatch(line)] == ["==> sink: Starting domain."]
