# SPDX-License-Identifier: GPL-2.0-or-later
"""The model beside a DUT: its file of counters, the description of the machine, the marks of the agent, its build."""

import ctypes
import os
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fwlab_coresim import attach, build
from fwlab_coresim.attach import attached, reject_other_qemu, with_model, without_model
from fwlab_coresim.cores import reference_cores
from fwlab_coresim.counters import BEGIN, END, CoreCounters, CorePlaces
from fwlab_coresim.counts import Modelled

from fwlab.checkout.project import find_project
from fwlab.dut.agent_client import AgentDut
from fwlab.dut.linux.agent import marks as marks_module
from fwlab.dut.linux.agent.marks import Marks, marks
from fwlab.dut.linux.client import LinuxDut
from fwlab.model.errors import BadInput, CannotMeasure
from tests.fakes.model_program import SMALL, needs_compiler, run

CORE = reference_cores()["xeon"]
WORDS = [f"{key}={value}" for key, value in SMALL.items()]
DOMAIN = """<domain type='qemu' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>
  <name>one</name><seclabel type='dynamic' model='apparmor' relabel='yes'><label>x</label></seclabel>
  <seclabel type='dynamic' model='dac' relabel='yes'/>
  <qemu:commandline><qemu:arg value='-icount'/><qemu:arg value='shift=2,sleep=on'/></qemu:commandline>
</domain>"""


# ---- counters


@needs_compiler
def test_windows_are_what_the_model_wrote(tmp_path: Path) -> None:
    """Written by the C program, read by Python: one layout for both, more windows than the file keeps included."""
    path = tmp_path / "counters"
    path.touch()
    counters = CoreCounters(path, tmp_path / "places")

    def counted(*commands: str) -> list[Modelled]:
        (tmp_path / "places").touch()
        commands = (f"file {path}", f"places {tmp_path / 'places'}", *commands)
        assert run(WORDS, commands).returncode == 0
        return [Modelled(**window) for window in counters.windows()]

    window = ["l 0", f"mark {BEGIN}", "l 10000", "b 7 1", f"mark {END}"]
    first, second = counted(*window, *window)
    assert (first.instructions, first.loads, first.locked, first.locked_wait) == (7, 1, 1, 15)
    assert (first.l1d_misses, first.load_wait) == (1, 196)
    assert (second.l1d_misses, second.load_wait, second.loads) == (0, 0, 1)
    assert [one.instructions for one in counted(*window * 3)] == [7, 7, 7]
    with pytest.raises(CannotMeasure, match="not in pairs"):
        counted(f"mark {BEGIN}", f"mark {BEGIN}")
    with pytest.raises(CannotMeasure, match="keeps 4096"):
        counted(*window * 2049)
    counters.begin()
    assert counters.windows() == []


@pytest.mark.parametrize(
    ("read", "what"),
    [
        (lambda path: CoreCounters(path, path).begin(), "no counters of this model"),
        (lambda path: CorePlaces(path).begin(), "no places of this model"),
    ],
    ids=["counters", "places"],
)
def test_another_file_is_refused(tmp_path: Path, read: Callable[[Path], None], what: str) -> None:
    with pytest.raises(CannotMeasure, match="cannot be read"):
        read(tmp_path / "none")
    (tmp_path / "zeros").write_bytes(bytes(4096))
    with pytest.raises(CannotMeasure, match=what):
        read(tmp_path / "zeros")


# ---- the machine


def words_of(xml: str) -> list[str]:
    line = ET.fromstring(xml).find("{http://libvirt.org/schemas/domain/qemu/1.0}commandline")
    return [word.get("value", "") for word in line] if line is not None else []


def test_the_plugin_joins_and_leaves_the_description() -> None:
    plugin = Path("/cache/model/fwlab-model-0123.so")
    files = Path("/tmp/a,b/counters"), Path("/tmp/a,b/places")
    joined = with_model(DOMAIN, plugin, files, ["l2=1:2:3"])
    usual = ["-icount", "shift=2,sleep=on"]
    both = "counters=/tmp/a,,b/counters,places=/tmp/a,,b/places"
    added = ["-plugin", f"/cache/model/fwlab-model-0123.so,{both},l2=1:2:3"]
    assert words_of(joined) == usual + added
    assert words_of(without_model(joined)) == usual
    again = words_of(with_model(joined, plugin, (Path("/c"), Path("/p")), []))
    assert again == [*usual, "-plugin", f"{plugin},counters=/c,places=/p"]
    labels = {label.get("model"): label.get("type") for label in ET.fromstring(joined).findall("seclabel")}
    assert labels == {"apparmor": "none", "dac": "dynamic"}


class Libvirt:
    """virsh, the machine's QEMU and its SSH connection in one. `done` lists what was asked of virsh; `fails` fails."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, version: str, fails: str = "-") -> None:
        self.done: list[str] = []
        self.closed = 0
        self.fails = fails
        self.restored: list[list[str]] = []
        monkeypatch.setattr(attach, "_virsh", self._virsh)
        monkeypatch.setattr(attach, "qemu_version", lambda: version)
        monkeypatch.setattr(attach, "qemu_of", lambda *_: 1)
        monkeypatch.setattr(attach, "domain_of", lambda _: "one")
        monkeypatch.setattr(attach, "built_model", lambda: tmp_path / "fwlab-model-1.so")

    def _virsh(self, *words: str) -> str:
        self.done.append(words[0])
        if words[0] == "save":
            Path(words[2]).write_text("state")
        if words[0] == "restore" and "--xml" in words:
            self.restored.append(words_of(Path(words[words.index("--xml") + 1]).read_text()))
        if " ".join(words).startswith(self.fails) and "--xml" in words:
            raise CannotMeasure("virsh: refused")
        return DOMAIN

    def attached(self) -> Any:
        ssh = SimpleNamespace(close=lambda: None, answers=lambda _patience: True)
        machines: Any = SimpleNamespace(ssh=lambda _role: ssh)
        return attached(machines, ("127.0.0.1", 1), CORE)


def test_the_machine_goes_on_with_the_plugin_and_later_without(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    libvirt = Libvirt(monkeypatch, tmp_path, version="7.2.22")
    with libvirt.attached():
        assert libvirt.done == ["save", "save-image-dumpxml", "restore"]
        assert libvirt.restored[0][2] == "-plugin"
        assert "llc=17301504:11:55" in libvirt.restored[0][3]
    assert libvirt.done[3:] == ["save", "save-image-dumpxml", "restore"]
    assert "-plugin" not in libvirt.restored[1]


@pytest.mark.parametrize(
    ("version", "fails", "says", "done"),
    [
        ("7.2.22", "restore", "refused", ["save", "save-image-dumpxml", "restore", "restore"]),
        ("10.0.13", "-", r"the model fits QEMU 7\.2.*this is 10\.0", []),
    ],
    ids=["it goes on as it was", "another QEMU"],
)
def test_a_machine_that_cannot_have_the_plugin_is_left_as_it_was(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str, fails: str, says: str, done: list[str]
) -> None:
    libvirt = Libvirt(monkeypatch, tmp_path, version=version, fails=fails)
    with pytest.raises(CannotMeasure, match=says), libvirt.attached():
        raise AssertionError("it was attached")
    assert libvirt.done == done


@pytest.mark.parametrize("version", ["10.0.13", "9.2.0", "8.2.1", "7.20.0"])
def test_another_qemu_is_refused(version: str) -> None:
    reject_other_qemu("7.2.22")
    with pytest.raises(CannotMeasure, match="the model fits QEMU 7.2"):
        reject_other_qemu(version)


# ---- the agent


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="a mark is an instruction of x86-64")
def test_marks_run_and_are_what_the_model_looks_for() -> None:
    with marks(True) as wanted:
        wanted.begin()  # a wrong instruction would end this process
        wanted.end()
        first, second = (ctypes.cast(one, ctypes.c_void_p).value or 0 for one in wanted._functions)
        found = [ctypes.string_at(address, 9).hex() for address in (first, second)]
    assert found == ["0f1f84000146574dc3", "0f1f84000246574dc3"]
    assert (marks_module.BEGIN, marks_module.END) == (BEGIN, END)
    Marks().begin()  # nothing


class Scripted(LinuxDut):
    """A DUT whose agent gives prepared answers."""

    def __init__(self, answer: dict[str, Any]) -> None:
        super().__init__(SimpleNamespace(), ["eth0"])  # type: ignore[arg-type]
        self.answer, self.sent = answer, []

    def send(self, operation: str, **fields: Any) -> None:
        self.sent.append(fields)

    def receive(self, wanted: Any, timeout: float) -> Any:
        return self.answer


def found(number: int) -> dict[str, Any]:
    counts = {"eth0.rx_packets": 64, "eth0.tx_packets": 0}
    return {"duration_ns": 1000, "idle_ns": 0, "number": number, "counts": counts}


def test_each_trial_has_the_window_that_was_marked_for_it() -> None:
    answer = {"valid": [found(0), found(2)], "unsaturated": [], "perturbed": [found(1)], "cpu_ns": {}}
    dut = Scripted(answer)
    terms: Any = {"windows": 2, "window_s": 0.1, "packets": 1, "idle_share": 0, "other_share": 0, "max_unsaturated": 0}
    dut.arm(**terms)
    assert "marked" not in dut.sent[0]
    assert "modelled" not in dut.collect(1).valid[0].model_dump()
    windows = [{"instructions": count} for count in (100, 200, 300)]
    begun: list[bool] = []
    dut.watched_by(SimpleNamespace(begin=lambda: begun.append(True), windows=lambda: windows))
    dut.arm(**terms)
    assert begun == [True]
    assert dut.sent[1]["marked"] is True
    collected = dut.collect(1)
    assert [trial.modelled for trial in collected.valid if trial.modelled] == [windows[0], windows[2]]
    assert [trial.modelled for trial in collected.perturbed if trial.modelled] == [windows[1]]
    by_link = dut.collect_by_link(1)
    assert [window.modelled for window in by_link.valid if window.modelled] == [windows[0], windows[2]]
    windows.pop()
    with pytest.raises(CannotMeasure, match="made 3 trials, the model saw 2"):
        dut.collect(1)


def test_an_agent_that_marks_nothing_is_refused() -> None:
    class Unmarked(Scripted):
        marks = False

    with pytest.raises(CannotMeasure, match="marks no trials"):
        Unmarked({}).watched_by(SimpleNamespace(begin=lambda: None, windows=list))
    assert AgentDut.marks is False


# ---- the build and the command


@needs_compiler
def test_the_plugin_is_built_once_for_its_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FWLAB_CACHE", str(tmp_path))
    path = build.built_model()
    assert path.parent == tmp_path / "model"
    made = path.stat().st_mtime_ns
    assert build.built_model() == path
    assert path.stat().st_mtime_ns == made
    wanted = subprocess.run(["nm", "-D", path], capture_output=True, text=True, check=True).stdout
    assert " T qemu_plugin_install" in wanted
    assert " D qemu_plugin_version" in wanted
    unknown = {line.split()[-1] for line in wanted.splitlines() if " U qemu_" in line}
    assert len(unknown) > 10


@needs_compiler
def test_a_model_that_does_not_compile_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FWLAB_CACHE", str(tmp_path / "cache"))
    (tmp_path / "Makefile").write_text("$(OUT):\n\t@echo cache.c is broken >&2; false\n")
    with pytest.raises(CannotMeasure, match=r"cache\.c is broken"):
        build.built_model(tmp_path)


def test_an_unknown_core_is_refused_before_anything_starts() -> None:
    from fwlab.measure.context import run_context

    with pytest.raises(BadInput, match="no core is called pentium; there are: opteron, xeon"):
        run_context(find_project(), "lab03-ipset", "virtual", core="pentium")
