# SPDX-License-Identifier: GPL-2.0-or-later
"""The record of what `vagrant up` made: written from libvirt's XML, and compared with QEMU."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fwlab.checkout.project import Project
from fwlab.host.kvm_probe import KvmAnswer
from fwlab.machines.__main__ import main
from fwlab.machines.plan import Plan
from fwlab.machines.record import update
from fwlab.model.errors import BadInput, CannotMeasure
from fwlab.testbed import machine_record, selection
from fwlab.testbed.machine_record import Made, from_command_line, machines_made, record_path
from fwlab.testbed.selection import TestbedRequest, settle
from tests.fakes.machines_checkout import LAB, TOPOLOGY, small_checkout

VIRTUAL, REAL, EMULATED = Made("tcg", 2, "socket"), Made("kvm", None, "socket"), Made("tcg", None, "socket")

XML = """<domain type='{kind}' id='4' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>
  <name>{name}</name>
  <devices>
    <interface type='{link}'><mac address='52:54:00:12:00:01'/></interface>
    <interface type='{link}'><mac address='52:54:00:13:00:01'/></interface>
  </devices>
  <qemu:commandline>
    <qemu:arg value='-netdev'/><qemu:arg value='user,id=management'/>{clock}
  </qemu:commandline>
</domain>
"""
CLOCK = "<qemu:arg value='-icount'/><qemu:arg value='shift=2,sleep=on'/>"


# ---- written ------------------------------------------------------------------------------------


class Checkout:
    """One lab, and a fake libvirt that defines what is in the folder `defined`."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = small_checkout(root, LAB)
        self.plan = Plan(root)
        self.defined = root / "defined"
        self.defined.mkdir()
        virsh = root / "bin" / "virsh"
        virsh.parent.mkdir()
        prefix = self.plan.prefix
        virsh.write_text(f'#!/bin/sh\nfor name; do :; done\nexec cat "{self.defined}/${{name#{prefix}}}"\n')
        virsh.chmod(0o755)
        monkeypatch.setenv("PATH", f"{root}/bin:{os.environ['PATH']}")
        monkeypatch.setenv("FWLAB_CACHE", str(root / "cache"))

    def update(self, *roles: str) -> None:
        for role in roles:
            update(self.plan.machine(LAB if role == "dut" else f"{LAB}-{role}"), f"box-of-{role}")

    def define(self, name: str, kind: str = "qemu", clock: str = "", link: str = "udp") -> None:
        (self.defined / name).write_text(XML.format(name=name, kind=kind, clock=clock, link=link))

    @property
    def path(self) -> Path:
        return record_path(Project(self.root), LAB)


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Checkout:
    return Checkout(tmp_path / "checkout", monkeypatch)


def test_the_record_matches_libvirt(checkout: Checkout, nothing_runs: None) -> None:
    checkout.define(LAB, clock=CLOCK)
    checkout.define(f"{LAB}-generator", kind="kvm")
    checkout.update("dut", "generator")
    assert machines_made(Project(checkout.root), TOPOLOGY, 3, LAB) == Made(
        "tcg", 2, "socket", {"dut": "box-of-dut", "generator": "box-of-generator"}
    )
    record = json.loads(checkout.path.read_text())
    assert (record["testbed"], record["lab"]) == ("virtual", LAB)
    assert record["machines"]["generator"]["accelerator"] == "kvm"
    assert sorted(path.name for path in checkout.path.parent.iterdir()) == ["machines.json", "machines.json.lock"]


def test_a_dut_by_the_hosts_clock_is_the_real_testbed(checkout: Checkout, nothing_runs: None) -> None:
    checkout.define(LAB, kind="kvm", link="bridge")
    checkout.update("dut")
    made = machines_made(Project(checkout.root), TOPOLOGY, 3, LAB)
    assert (made.testbed, made.recorded, made.accelerator, made.link) == ("real", "real", "kvm", "virtio")


def test_destroyed_machines_leave_the_record_and_their_seeds_go(checkout: Checkout, nothing_runs: None) -> None:
    checkout.define(LAB, clock=CLOCK)
    checkout.define(f"{LAB}-generator")
    seeds = [checkout.plan.machine(name).seed for name in (LAB, f"{LAB}-generator")]
    seeds[0].parent.mkdir(parents=True)
    for seed in seeds:
        seed.touch()
        seed.with_suffix(".sha256").touch()
    checkout.update("dut", "generator")
    assert all(seed.exists() for seed in seeds)
    (checkout.defined / LAB).unlink()
    checkout.update("dut")
    assert sorted(path.stem for path in seeds[0].parent.iterdir()) == [f"{LAB}-generator"] * 2
    assert list(json.loads(checkout.path.read_text())["machines"]) == ["generator"]
    assert machines_made(Project(checkout.root), TOPOLOGY, 3, LAB) is None
    (checkout.defined / f"{LAB}-generator").unlink()
    checkout.update("generator")
    assert not checkout.path.exists()
    assert not seeds[0].parent.exists()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"machines": 7}'])
def test_a_damaged_record_is_replaced(checkout: Checkout, nothing_runs: None, text: str) -> None:
    checkout.path.parent.mkdir(parents=True)
    checkout.path.write_text(text)
    checkout.define(LAB, clock=CLOCK)
    checkout.update("dut")
    assert machines_made(Project(checkout.root), TOPOLOGY, 3, LAB).testbed == "virtual"


def test_machines_that_start_at_the_same_time_are_all_recorded(checkout: Checkout, nothing_runs: None) -> None:
    checkout.define(LAB, clock=CLOCK)
    checkout.define(f"{LAB}-generator")
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(checkout.update, ["dut", "generator"] * 4))
    made = machines_made(Project(checkout.root), TOPOLOGY, 3, LAB)
    assert made is not None
    assert set(made.boxes) == {"dut", "generator"}


def test_a_new_machine_is_recorded_whether_it_continues_or_boots(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(checkout.root)
    checkout.define(LAB, clock=CLOCK)
    assert main(["restore", LAB, "box-of-dut"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert not said["done"]
    assert "its description names no emulator" in said["warnings"][0]
    assert json.loads(checkout.path.read_text())["machines"]["dut"]["box"] == "box-of-dut"


def test_the_host_is_restored_with_the_last_machine(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    restored: list[str] = []
    monkeypatch.setattr("fwlab.machines.prepare.restore_links", lambda _plan, lab: restored.append(lab))
    monkeypatch.chdir(checkout.root)
    checkout.define(LAB, clock=CLOCK)
    assert main(["record", LAB, "box"]) == 0
    assert restored == []
    (checkout.defined / LAB).unlink()
    assert main(["record", LAB, "box"]) == 0
    assert restored == [LAB]


# ---- read ----------------------------------------------------------------------------------------


@pytest.fixture
def nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_record, "_running", lambda *_: None)


def record(root: Path, **dut: object) -> Project:
    machine = {"domain": "d", "box": "fwlab-dut-0", "accelerator": "tcg", "icount_shift": 2, "link": "socket", **dut}
    path = record_path(Project(root), LAB)
    path.parent.mkdir(parents=True, exist_ok=True)
    document = {"format": "fwlab-machines/1", "lab": LAB, "testbed": "virtual", "machines": {"dut": machine}}
    path.write_text(json.dumps(document))
    return Project(root)


#: As libvirt 7 to 11 start them; None: accelerator or clock is not understood.
LINES: list[tuple[str, Made | None]] = [
    ("-accel tcg,tb-size=128 -icount shift=2,sleep=on", VIRTUAL),
    ("-accel tcg -icount shift=10", Made("tcg", 10, "socket")),
    ("-machine pc-i440fx-7.2,accel=kvm,usb=off", REAL),
    ("-machine pc,usb=off -accel kvm", REAL),
    ("-accel tcg", EMULATED),
    ("", None),
    ("-accel kvm -accel tcg", None),
    ("-accel tcg -icount shift=auto", None),
    ("-accel tcg -icount shift=2 -icount shift=3", None),
]
NETDEVS = [
    '{"type":"socket","udp":"127.0.0.1:24030","localaddr":"127.0.0.1:24031","id":"hostua-net-0"}',
    '{"type":"dgram","id":"hostua-net-0"}',
    "socket,udp=127.0.0.1:24030,localaddr=127.0.0.1:24031,id=hostnet0",
]


@pytest.mark.parametrize(("words", "made"), LINES)
def test_machines_are_recognised_by_qemus_arguments(words: str, made: Made | None) -> None:
    for netdev in NETDEVS:
        links = ["-netdev", netdev, "-netdev", "user,id=management,hostfwd=tcp:127.0.0.1:22031-:22"]
        assert from_command_line(["qemu-system-x86_64", *words.split(), *links]) == made


def test_a_record_that_contradicts_qemu_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_record, "_running", lambda *_: VIRTUAL)
    assert machines_made(Project(tmp_path), TOPOLOGY, 3, LAB) == VIRTUAL, "without a record"
    project = record(tmp_path)
    assert machines_made(project, TOPOLOGY, 3, LAB).boxes == {"dut": "fwlab-dut-0"}
    monkeypatch.setattr(machine_record, "_running", lambda *_: REAL)
    with pytest.raises(CannotMeasure) as error:
        machines_made(project, TOPOLOGY, 3, LAB)
    said = f".fwlab/{LAB}/machines.json says tcg, -icount shift=2, link socket"
    assert error.value.message == f"{said}, the DUT's QEMU kvm, the host's clock, link socket"
    assert error.value.hint == f"vagrant destroy -f {LAB}; vagrant up {LAB}"


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", "[" * 100_000, '{"format": "fwlab-machines/2"}', "\xff", '{"machines": {"dut": {}}}']
)
def test_an_invalid_record_is_reported(tmp_path: Path, nothing_runs: None, text: str) -> None:
    project = record(tmp_path)
    record_path(project, LAB).write_text(text, encoding="latin-1")
    with pytest.raises(CannotMeasure, match=f".fwlab/{LAB}/machines.json: not a record of machines") as error:
        machines_made(project, TOPOLOGY, 3, LAB)
    assert error.value.hint == f"vagrant reload {LAB}"


# ---- the testbed of a session --------------------------------------------------------------------


@pytest.fixture
def no_probe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "kvm_works", lambda: pytest.fail("KVM was tried"))


@pytest.mark.parametrize("made", [VIRTUAL, REAL, EMULATED])
def test_without_a_request_the_machines_testbed_is_used(made: Made, no_probe: None) -> None:
    chosen = settle(TestbedRequest(), made, LAB)
    assert (chosen.name, chosen.accelerator, chosen.forced) == (made.testbed, made.accelerator, False)


@pytest.mark.parametrize(
    ("request_of", "made", "said"),
    [
        (TestbedRequest("real"), VIRTUAL, "the virtual testbed; you asked for real"),
        (TestbedRequest("virtual"), REAL, "the real testbed; you asked for virtual"),
        (TestbedRequest(grading=True), REAL, "the real testbed; grading measures on the virtual one"),
    ],
)
def test_machines_of_another_testbed_are_refused(
    request_of: TestbedRequest, made: Made, said: str, no_probe: None
) -> None:
    with pytest.raises(CannotMeasure) as error:
        settle(request_of, made, LAB)
    assert error.value.message == f"the machines of {LAB} were made for {said}"
    assert error.value.hint.startswith(f"vagrant destroy -f {LAB}, then ")


def test_grading_uses_the_virtual_testbed_by_default(no_probe: None) -> None:
    assert settle(TestbedRequest(grading=True), VIRTUAL, LAB).name == "virtual"
    assert settle(TestbedRequest("real", grading=True), REAL, LAB).forced
    assert settle(TestbedRequest(grading=True), None, LAB).name == "virtual"


def test_without_machines_the_virtual_testbed_is_used_and_kvm_is_not_tried(no_probe: None) -> None:
    chosen = settle(TestbedRequest(), None, LAB)
    assert (chosen.name, chosen.accelerator, chosen.forced) == ("virtual", "tcg", False)


def test_the_variable_asks_for_a_testbed_but_not_for_a_grading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "kvm_works", lambda: KvmAnswer(True, "a test"))
    monkeypatch.setenv("FWLAB_TESTBED", "real")
    chosen = settle(TestbedRequest(), None, LAB)
    assert (chosen.name, chosen.accelerator, chosen.forced) == ("real", "kvm", True)
    assert settle(TestbedRequest("virtual"), None, LAB).name == "virtual"
    assert settle(TestbedRequest(grading=True), None, LAB).name == "virtual"
    monkeypatch.setenv("FWLAB_TESTBED", "virtul")
    with pytest.raises(BadInput, match="FWLAB_TESTBED=virtul: unknown testbed"):
        settle(TestbedRequest(), None, LAB)


def test_results_have_the_facts_of_the_machines() -> None:
    made = Made("tcg", 3, "bridge", {"dut": "fwlab-dut-0"})
    facts = settle(TestbedRequest(), made, LAB).facts(made, "replay")
    assert (facts.name, facts.clock, facts.ns_per_instruction) == ("virtual", "instructions", 8)
    assert (facts.link, facts.boxes, facts.note) == ("bridge", {"dut": "fwlab-dut-0"}, "")
    facts = settle(TestbedRequest(), EMULATED, LAB).facts(EMULATED, "replay")
    assert (facts.clock, facts.ns_per_instruction) == ("host", None)
    assert facts.note.startswith("emulated by the wall clock")


def test_an_unknown_testbed_is_refused_at_once() -> None:
    with pytest.raises(BadInput, match="unknown testbed fast"):
        TestbedRequest("fast")
