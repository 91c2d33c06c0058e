# SPDX-License-Identifier: GPL-2.0-or-later
"""What the planner makes of topology.yml, the labs and the environment."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from fwlab.machines.plan import Plan
from fwlab.machines.seed import Seed
from fwlab.model.errors import BadInput, CannotMeasure
from fwlab.testbed.choices import link_kinds, requested_kinds
from fwlab.testbed.hardware import device_name
from fwlab.testbed.link_kinds import LINKS
from tests.fakes.machines_checkout import (
    LAB,
    MACHINES,
    TOPOLOGY,
    declare,
    environment,
    made,
    planned,
    settings,
    small_checkout,
)

NAMES = list(TOPOLOGY.links)
OTHER = "lab11-sriov"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    return small_checkout(tmp_path / "checkout")


def refused(checkout: Path, **extra: str) -> BadInput:
    with pytest.raises(BadInput) as error:
        planned(checkout, **extra)
    return error.value


# ---- settings ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("TESTBED", "hot", "unknown testbed; there are: real, virtual"),
        ("ACCEL", "hvf", "must be tcg or kvm"),
        ("SAVED", "perhaps", "must be yes or no"),
        ("LINK", "wire", "unknown link kind; there are: macvtap, socket, sriov, virtio"),
        ("DUT", "plan9", "no DUT runs that; there are: linux, freebsd"),
        ("PORT_OFFSET", "ten", "is not a whole number"),
        ("BOOT_TIMEOUT", "5m", "is not a number of seconds"),
        ("BOOT_TIMEOUT", "0", "is not a number of seconds"),
        ("DUT_CPUS", "0", "is not a number of CPUs from 1 to 64"),
        ("DUT_CPUS", "65", "is not a number of CPUs from 1 to 64"),
        ("DUT_QEMU", "/etc/passwd", "not the absolute path of a program"),
        ("DUT_QEMU", "sh", "not the absolute path of a program"),
    ],
)
def test_a_wrong_setting_is_named(checkout: Path, name: str, value: str, message: str) -> None:
    error = refused(checkout, **{f"FWLAB_{name}": value})
    assert error.message.startswith(f"FWLAB_{name}={value}")
    assert message in error.message
    assert error.hint.split()[0] in ("export", "unset")


def test_an_empty_setting_counts_as_unset(checkout: Path) -> None:
    names = ("TESTBED", "ACCEL", "SAVED", "LINK", "DUT", "BOOT_TIMEOUT", "DUT_CPUS", "DUT_QEMU", "LIBVIRT_URI")
    assert planned(checkout, **{f"FWLAB_{name}": "" for name in names}) == planned(checkout)


@pytest.mark.parametrize(("value", "boots", "answers"), [("", 300, 5), ("3600", 3600, 60), ("60", 60, 5)])
def test_a_slow_host_waits_longer(checkout: Path, value: str, boots: int, answers: int) -> None:
    plan = planned(checkout, FWLAB_BOOT_TIMEOUT=value)
    assert (plan["boot_timeout"], plan["connect_timeout"]) == (boots, answers)


@pytest.mark.parametrize(
    ("testbed", "value", "cpus"), [("real", "", 1), ("real", "4", 4), ("virtual", "4", 1), ("real", "64", 64)]
)
def test_only_the_real_testbeds_dut_gets_more_cpus(checkout: Path, testbed: str, value: str, cpus: int) -> None:
    extra = {"FWLAB_TESTBED": testbed, "FWLAB_DUT_CPUS": value, "FWLAB_LINK": "virtio"}
    machines = planned(checkout, **extra)["machines"]
    assert [machines[name]["libvirt"]["cpus"] for name in MACHINES.values()] == [1, cpus, 1]
    queues = {options["libvirt__driver_queues"] for _, options in machines[LAB]["networks"]}
    assert queues == {cpus}


@pytest.mark.parametrize("testbed", ["virtual", "real"])
@pytest.mark.parametrize("accel", ["tcg", "kvm"])
def test_only_the_virtual_dut_counts_instructions(checkout: Path, testbed: str, accel: str) -> None:
    machines = planned(checkout, FWLAB_TESTBED=testbed, FWLAB_ACCEL=accel)["machines"]
    for name in MACHINES.values():
        virtual = testbed == "virtual" and name == LAB
        assert (f"shift={TOPOLOGY.clock.icount_shift},sleep=on" in machines[name]["qemu_arguments"]) == virtual
        assert machines[name]["libvirt"]["driver"] == ("kvm" if accel == "kvm" and not virtual else "qemu")


@pytest.mark.parametrize(
    ("extra", "savable"),
    [
        ({}, True),
        ({"FWLAB_SAVED": "no"}, False),
        ({"FWLAB_TESTBED": "real"}, False),
        ({"FWLAB_ACCEL": "kvm"}, False),
        ({"FWLAB_LINK": "virtio"}, False),
        ({"FWLAB_DUT": "freebsd"}, False),
    ],
)
def test_some_machines_always_boot(checkout: Path, extra: dict[str, str], savable: bool) -> None:
    declare(checkout, LAB, systems=["linux", "freebsd"])
    assert planned(checkout, **extra)["machines"][LAB]["savable"] is savable


@pytest.mark.parametrize("own", [{}, {"XDG_CACHE_HOME": "xdg"}, {"FWLAB_CACHE": "cache", "XDG_CACHE_HOME": "xdg"}])
@pytest.mark.parametrize("user", [0, 1000])
def test_the_seeds_are_in_the_cache(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, own: dict[str, str], user: int
) -> None:
    chosen = {"FWLAB_CACHE": "", "XDG_CACHE_HOME": "", "HOME": str(checkout)}
    chosen |= {name: str(checkout / folder) for name, folder in own.items()}
    monkeypatch.setattr(os, "getuid", lambda: user)
    usual = Path("/var/cache/fwlab") if user == 0 else checkout / ("xdg" if own else ".cache") / "fwlab"
    wanted = checkout / "cache" if "FWLAB_CACHE" in own else usual
    plan = planned(checkout, **chosen)
    assert Path(plan["machines"][LAB]["seed"]).is_relative_to(wanted / "seeds")
    assert plan["libvirt_uri"] == f"qemu:///{'session' if user else 'system'}"
    # Root throttles any process; another user only a QEMU that allows it.
    emulators = {role: plan["machines"][name]["libvirt"].get("emulator_path") for role, name in MACHINES.items()}
    assert emulators.pop("dut") == (str(checkout / "provision" / "host" / "qemu-traceable") if user else None)
    assert set(emulators.values()) == {None}


# ---- machines ----------------------------------------------------------------------------------------------------


def test_a_machine_listens_on_the_topologys_ports_alone(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FWLAB_PORT_OFFSET", "300")
    with settings(checkout, FWLAB_PORT_OFFSET="300") as plan:
        for machine in plan.machines(LAB):
            links = [("udp", TOPOLOGY.link_port(3, end.name, machine.role), f"link {end.name}") for end in machine.ends]
            assert machine.ports == [("tcp", TOPOLOGY.ssh_port(3, machine.role), "SSH"), *links]


def test_management_is_on_loopback_only(checkout: Path) -> None:
    for machine in planned(checkout)["machines"].values():
        netdev = machine["qemu_arguments"][1]
        assert f"hostfwd=tcp:127.0.0.1:{machine['ssh_port']}-" in netdev
        assert "restrict=on" in netdev


def test_only_a_generator_with_trex_needs_more(checkout: Path) -> None:
    usual = {role: (node.memory_mib, TOPOLOGY.machine.cpu_model) for role, node in TOPOLOGY.nodes.items()}
    more = TOPOLOGY.nodes["generator"].with_trex
    assert more is not None
    (checkout / ".fwlab").mkdir()
    for trex, generator in (({}, usual["generator"]), ({"version": "v9.99"}, (more.memory_mib, more.cpu_model))):
        images = {"generator": {"box": "g", "trex": trex}, "dut-linux": {"box": "d"}, "sink": {"box": "s"}}
        (checkout / ".fwlab" / "images.json").write_text(json.dumps(images))
        machines = planned(checkout)["machines"]
        found = {role: machines[name]["libvirt"] for role, name in MACHINES.items()}
        wanted = {**usual, "generator": generator}
        assert {role: (one["memory"], one["cpu_model"]) for role, one in found.items()} == wanted


@pytest.mark.parametrize("accelerator", ["tcg", "kvm"])
def test_of_the_duts_only_freebsd_has_no_event_indexes(checkout: Path, accelerator: str) -> None:
    """With them, its receive queue stalled for good in a throttled flood. Linux was measured with them.

    Under TCG, the generator's transmit queue stalled for good with them.
    """
    declare(checkout, OTHER, systems=["freebsd"])
    found = planned(checkout, FWLAB_ACCEL=accelerator)["machines"]
    without = {name for name, one in found.items() if "virtio-net-pci.event_idx=off" in one["qemu_arguments"]}
    others = {name for name in found if name.endswith(("-generator", "-sink"))}
    assert len(others) == 4
    assert without == ({OTHER} | others if accelerator == "tcg" else {OTHER})


def test_only_the_dut_of_a_freebsd_lab_runs_freebsd(checkout: Path) -> None:
    declare(checkout, OTHER, systems=["freebsd"])
    found = planned(checkout)["machines"]
    assert [found[name]["guest"] for name in (OTHER, f"{OTHER}-generator", LAB)] == ["freebsd", "debian", "debian"]
    with settings(checkout) as plan:
        dut = plan.machine(OTHER)
        assert (dut.node["image"], dut.management_device) == ("dut-freebsd", "vtnet2")
        assert [end.near["dev"] for end in dut.ends] == ["vtnet0", "vtnet1"]


def test_a_lab_names_its_nics_in_lab_yml(checkout: Path) -> None:
    for text, nics in (
        ("needs: {nics: [e1000e, 'x y']}\n", ("e1000e",)),
        ("one: &one [vmxnet3]\nneeds: {nics: *one}\n", ("vmxnet3",)),
        ("needs:\n  nics:\n    - vmxnet3\n\n  # more\n  systems: [linux]\ncases: []\n", ("vmxnet3",)),
        ("needs: 1\n", ()),
        ("{", ()),
        ("", ()),
    ):
        (checkout / "labs" / LAB / "lab.yml").write_text(text)
        with settings(checkout) as plan:
            assert [end.nics for end in plan.machine(LAB).ends] == [nics, nics]
            assert plan.machine(f"{LAB}-sink").ends[0].nics == ()


def test_planning_imports_little(checkout: Path) -> None:
    """`vagrant` starts it at each command: pydantic alone would double its time."""
    code = "import sys, runpy; sys.argv[1:] = ['plan']\ntry: runpy.run_module('fwlab.machines', run_name='__main__')\n"
    code += "finally: print(sorted({'pydantic', 'jinja2', 'psutil'} & sys.modules.keys()), file=sys.stderr)"
    argv = [sys.executable, "-c", code]
    done = subprocess.run(argv, cwd=checkout, env=environment(checkout), capture_output=True, text=True)
    assert done.stderr == "[]\n"
    assert set(json.loads(done.stdout)["machines"]) >= set(MACHINES.values())


def test_a_wrong_topology_is_explained(checkout: Path) -> None:
    topology = checkout / "topology.yml"
    text = topology.read_text()
    for old, said in (("per_lab: 10\n", "ports.per_lab: this field"), ("    cpus: 1\n", "cpus: this field")):
        topology.write_text(text.replace(old, "", 1))
        assert said in refused(checkout).message
    topology.write_text("7\n")
    assert "topology.yml" in refused(checkout).message


# ---- choices -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("forced", ["", *LINKS])
def test_the_variable_overrides_every_link(checkout: Path, forced: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FWLAB_LINK", forced)
    assert requested_kinds(dict.fromkeys(NAMES, "virtio")) == dict.fromkeys(NAMES, forced or "virtio")
    assert [kind.name for kind in link_kinds(TOPOLOGY)] == [forced or "socket"]


def test_machines_keep_their_links(checkout: Path) -> None:
    own = {"generator-dut": "virtio", "dut-sink": "macvtap"}
    unknown_here = {"generator-dut": "pigeon", "wan": "virtio"}
    for recorded, kept in ((own, own), (unknown_here, dict.fromkeys(NAMES, "socket"))):
        made(checkout, LAB, recorded)
        with settings(checkout) as plan:
            assert plan.kinds(plan.lab(LAB)) == kept


def test_other_links_than_asked_for_are_refused(checkout: Path) -> None:
    made(checkout, LAB, dict.fromkeys(NAMES, "socket"))
    with settings(checkout, FWLAB_LINK="virtio") as plan, pytest.raises(CannotMeasure) as error:
        plan.reject_other_choices(LAB)
    assert error.value.message == f"the links of {LAB} are socket; FWLAB_LINK asks for virtio"
    assert error.value.hint == f"vagrant destroy -f {LAB}, then the same command again (or unset FWLAB_LINK)"
    for link in ("", "socket"):
        with settings(checkout, FWLAB_LINK=link) as plan:
            plan.reject_other_choices(LAB)


def test_the_projects_nics_on_the_host_have_short_names(checkout: Path) -> None:
    with settings(checkout) as plan:
        devices = {machine.role: [end.device for end in machine.ends] for machine in plan.machines(LAB)}
        first, second = (device_name(plan.key, LAB, index) for index in (0, 1))
    assert devices == {"generator": [first], "dut": [first, second], "sink": [second]}
    assert len(first) <= 15, "the kernel takes no longer name"


@pytest.mark.parametrize("text", ["", "[", "7", "sriov: 7", "sriov: { generator-dut: { ends: [] } }"])
def test_a_wrong_host_file_stops_no_command(checkout: Path, text: str) -> None:
    """It is read for every command, also for those that destroy machines; what prepares the links names the fault."""
    (checkout / "host.yml").write_text(text)
    assert planned(checkout, FWLAB_LINK="sriov")["machines"][LAB]["pci"] == []


# ---- every setting of topology.yml has an effect -----------------------------------------------------------------


def settings_of(data: object, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """The paths of all values."""
    if isinstance(data, dict):
        return [leaf for key, value in data.items() for leaf in settings_of(value, (*path, key))]
    return [path]


def changed(data: dict[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    """A copy with one value replaced by another of the same type."""
    copied = json.loads(json.dumps(data))
    *parents, last = path
    place = functools.reduce(dict.__getitem__, parents, copied)
    value = place[last]
    place[last] = {int: lambda n: n + 1, str: lambda s: f"{s}9", list: lambda items: items[1:]}[type(value)](value)
    return copied


#: What test_only_a_generator_with_trex_needs_more tests, and names of modules, which a changed one would not be.
EXCEPTED = {("nodes", "generator", "with_trex", field) for field in ("memory_mib", "cpu_model")}
EXCEPTED |= {("links", name, "kind") for name in NAMES}


def test_every_setting_changes_a_machine_or_its_seed(tmp_path: Path) -> None:
    """Otherwise the setting would have no effect, as once `queues` and `forwards`."""
    root = small_checkout(tmp_path / "checkout", "lab03-x", "lab08-x", "lab11-x")
    declare(root, "lab08-x", systems=["freebsd", "linux"])
    declare(root, "lab11-x", nics=["e1000e"])
    data = yaml.safe_load((root / "topology.yml").read_text())

    def described(topology: dict[str, Any]) -> str:
        (root / "topology.yml").write_text(json.dumps(topology))
        with settings(root) as plan:
            machines = [machine for lab in plan.labs for machine in plan.machines(lab)]
            seeds = [Seed(machine, "KEY").files() for machine in machines]
            return json.dumps([plan.planned([]), [machine.ports for machine in machines], seeds])

    plain = described(data)
    paths = [path for path in settings_of(data) if path not in EXCEPTED]
    assert [".".join(path) for path in paths if described(changed(data, path)) == plain] == []
    assert len(paths) > 50


def test_a_machine_is_found_by_its_name(checkout: Path) -> None:
    (checkout / "labs" / f"{LAB}-more").mkdir()
    with settings(checkout) as plan:
        names = [*MACHINES.values(), f"{LAB}-more", f"{LAB}-more-sink"]
        assert [plan.machine(name).name for name in names] == names
        with pytest.raises(BadInput, match="there is no machine lab99-x"):
            plan.machine("lab99-x")


def test_checkouts_have_machines_of_their_own(checkout: Path, tmp_path: Path) -> None:
    other = small_checkout(tmp_path / "other")
    assert Plan(checkout).prefix != Plan(other).prefix
