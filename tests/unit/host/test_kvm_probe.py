# SPDX-License-Identifier: GPL-2.0-or-later
"""KVM is probed once. The answer is remembered until something changes, and QEMU never outlives the probe."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fwlab.cli.main import app
from fwlab.host import kvm_probe
from fwlab.host.environment import timeout_scale
from fwlab.host.kvm_probe import KvmAnswer, kvm_works
from tests import ROOT
from tests.fakes.programs import program

#: A fake QEMU. Counts its starts; the file `says` decides what else it does.
QEMU = """#!/bin/sh
cd {folder}
[ "$1" != --version ] || {{ cat version; exit 0; }}
[ "$2" != none ] || exit 1  # doctor wants to throttle a QEMU without a machine
echo x >>starts
. ./says
"""
SPEAKS = "echo 'Linux version 6'; echo 'Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0)'"
SILENT, REFUSES = "exec sleep 100", "echo 'no KVM today' >&2; exit 1"


class Host:
    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self._monkeypatch = monkeypatch
        self.kernel = folder / "cache/bases/dut-0/vmlinuz"
        self.kernel.parent.mkdir(parents=True)
        self.kernel.write_text("a kernel")
        qemu = folder / "qemu-system-x86_64"
        qemu.write_text(QEMU.format(folder=folder))
        qemu.chmod(0o755)
        self.version("7.2.22")

    def says(self, what: str) -> None:
        """Only silence is waited for briefly: what speaks may take long on a busy host."""
        self._monkeypatch.setattr(kvm_probe, "TIMEOUT_S", 1 if what == SILENT else 30)
        self._monkeypatch.setattr(kvm_probe, "SILENCE_S", 1 if what.endswith(SILENT) else 30)
        (self.folder / "says").write_text(what)

    def version(self, number: str) -> None:
        (self.folder / "version").write_text(f"QEMU emulator version {number} (Debian)\n")

    @property
    def starts(self) -> int:
        path = self.folder / "starts"
        return len(path.read_text().split()) if path.exists() else 0


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    made = Host(tmp_path, monkeypatch)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("FWLAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("FWLAB_BOOT_TIMEOUT", raising=False)
    monkeypatch.setattr(kvm_probe, "DEVICE", Path("/dev/null"))
    return made


@pytest.mark.parametrize(
    ("set_to", "times"), [("600", 2), ("300", 1), ("30", 1), ("", 1), ("soon", 1), ("-900", 1), ("²", 1)]
)
def test_only_a_number_of_seconds_above_the_usual_one_extends_the_wait(
    monkeypatch: pytest.MonkeyPatch, set_to: str, times: int
) -> None:
    monkeypatch.setenv("FWLAB_BOOT_TIMEOUT", set_to)
    assert timeout_scale() == times


@pytest.mark.parametrize(
    ("says", "variable", "answer"),
    [
        (SPEAKS, "", KvmAnswer(True, "KVM runs a kernel")),
        (SILENT, "", KvmAnswer(False, "a kernel under KVM prints nothing within 1 s")),
        (SILENT, "600", KvmAnswer(False, "a kernel under KVM prints nothing within 2 s")),
    ],
    ids=["boots", "silent", "silent on a slow host"],
)
def test_a_kernel_is_probed_once(
    host: Host, monkeypatch: pytest.MonkeyPatch, says: str, variable: str, answer: KvmAnswer
) -> None:
    host.says(says)
    monkeypatch.setenv("FWLAB_BOOT_TIMEOUT", variable)
    first, again = kvm_works(), kvm_works()
    assert first == answer
    assert (again.works, again.why, bool(again.remembered)) == (answer.works, answer.why, True)
    assert host.starts == 1


@pytest.mark.parametrize(
    "stops",
    ["exec sleep 100", "exit 1", "echo 'Kernel panic - not syncing: Attempted to kill init'; exit 0"],
    ids=["silent", "gone", "another panic"],
)
def test_a_kernel_that_stops_half_way_is_no_kvm(host: Host, stops: str) -> None:
    host.says(f"echo 'Linux version 6'; printf 'clocksource: tsc\\033[0m\\n'; {stops}")
    first, again = kvm_works(), kvm_works()
    last = "Kernel panic - not syncing: Attempted to kill init" if "panic" in stops else "clocksource: tsc\\x1b[0m"
    assert first == KvmAnswer(False, f"a kernel under KVM stops half-way, after: {last}")
    assert (again.why, bool(again.remembered), host.starts) == (first.why, True, 1)


def test_a_slow_kernel_that_keeps_printing_is_waited_for(host: Host) -> None:
    host.says(f"echo 'Linux version 6'; for n in 1 2 3 4; do sleep 0.5; echo $n; done; {SPEAKS}")
    assert kvm_works().works


def test_a_refusal_is_quick_and_not_remembered(host: Host) -> None:
    host.says(REFUSES)
    assert kvm_works() == KvmAnswer(False, "KVM does not start: no KVM today")
    host.says(SPEAKS)
    assert kvm_works().works


@pytest.mark.parametrize("change", ["kernel", "qemu", "device", "host", "place of the kernel"])
def test_a_change_causes_another_probe(host: Host, change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each image's base has a copy of the kernel, and each build probes with its own."""
    host.says(SPEAKS)
    kvm_works()
    match change:
        case "place of the kernel":
            host.kernel = host.kernel.rename(host.folder / "copy")
        case "kernel":
            host.kernel.write_text("another kernel")
        case "qemu":
            host.version("10.0.2")
        case "device":
            monkeypatch.setattr(kvm_probe, "DEVICE", Path("/dev/zero"))
        case "host":
            monkeypatch.setattr(kvm_probe.platform, "release", lambda: "6.99.0")
    other = not change.startswith("place")
    assert bool(kvm_works(host.kernel).remembered) != other
    assert host.starts == 1 + other


def test_without_a_kernel_a_build_tries_a_boot_sector(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kvm_probe, "_some_kernel", lambda: None)
    host.says(SPEAKS)
    assert kvm_works() == KvmAnswer(False, "there is no kernel to try KVM with yet")
    assert kvm_works(boot_sector=True) == KvmAnswer(True, "KVM runs a boot sector")
    host.says(SILENT)
    assert not kvm_works(boot_sector=True).works
    assert host.starts == 2


def test_the_boot_sector_prints_its_greeting(tmp_path: Path) -> None:
    """Under emulation, which needs no KVM."""
    program("qemu-system-x86_64")
    (tmp_path / "sector").write_bytes(kvm_probe._boot_sector())
    argv = ["qemu-system-x86_64", "-accel", "tcg", "-m", "16", "-display", "none", "-nodefaults", "-serial", "stdio"]
    argv += ["-drive", f"file={tmp_path}/sector,format=raw,if=ide,snapshot=on"]
    with kvm_probe._started(argv) as process:
        assert kvm_probe.GREETING in kvm_probe._hear(process, kvm_probe.GREETING, 60)


def test_it_is_probed_again_on_request(host: Host) -> None:
    host.says(SILENT)
    kvm_works()
    host.says(SPEAKS)
    assert kvm_works(again=True).works
    assert kvm_works().works


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", "[" * 100_000, '{"key": 1, "answer": 2, "when": 3}'])
def test_a_damaged_memory_is_ignored(host: Host, text: str) -> None:
    host.says(SPEAKS)
    (host.folder / "cache" / kvm_probe.MEMORY).write_text(text)
    assert kvm_works() == KvmAnswer(True, "KVM runs a kernel")


def test_a_full_disk_remembers_nothing(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("fwlab.checkout.atomic_write.tempfile.mkstemp", full)
    host.says(SPEAKS)
    assert kvm_works().works
    assert not kvm_works().remembered


def test_a_killed_probe_leaves_no_qemu(host: Host) -> None:
    host.says(SILENT)
    script = """
from pathlib import Path
from fwlab.host import kvm_probe
kvm_probe.DEVICE, kvm_probe.TIMEOUT_S = Path("/dev/null"), 3
kvm_probe.kvm_works()
"""
    process = subprocess.Popen([sys.executable, "-c", script], env={**os.environ, "PYTHONPATH": str(ROOT)})
    deadline = time.monotonic() + 60
    while not host.starts:
        assert time.monotonic() < deadline, "nothing was probed"
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    while _running(host):
        assert time.monotonic() < deadline, "the probe's QEMU runs on"
        time.sleep(0.1)


def _running(host: Host) -> list[Path]:
    """Running processes whose program is below the folder, which contains the fake QEMU."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if (folder / "cwd").resolve() == host.folder:
                found.append(folder)
        except OSError:
            continue
    return found


def test_doctor_says_that_it_remembers_and_how_to_try_again(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    host.says(SPEAKS)
    assert "is not tried each time" not in CliRunner().invoke(app, ["doctor"]).output
    assert "KVM was tried at " in (said := CliRunner().invoke(app, ["doctor"]).output)
    assert "again: `fwlab doctor --probe`" in said
    assert json.loads(CliRunner().invoke(app, ["doctor", "--json"]).output)["kvm"]["remembered"]
    assert "is not tried each time" not in CliRunner().invoke(app, ["doctor", "--probe"]).output
    assert host.starts == 2
