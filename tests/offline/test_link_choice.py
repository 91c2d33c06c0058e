# SPDX-License-Identifier: GPL-2.0-or-later
"""Each link has the kind of the machines that exist, else FWLAB_LINK's, else topology.yml's. Ruby and Python agree."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from fwlab.host.project import Project, load_topology
from fwlab.model.errors import BadInput, CannotMeasure
from fwlab.testbed import machine_record
from fwlab.testbed.host_links.link_on_host import device_name
from fwlab.testbed.host_links.state import FOLDER, checkout_key
from fwlab.testbed.link_choice import link_kinds, refuse_other_links, requested_kinds
from fwlab.testbed.link_kinds import LINKS, as_qemu_shows, link_of
from fwlab.testbed.machine_record import from_command_line, machines_made, record_path
from tests.offline.programs import needs

ROOT = Path(__file__).resolve().parents[2]
TOPOLOGY = load_topology(Project(ROOT))
LAB = "lab03-ipset"
NAMES = list(TOPOLOGY.links)

needs_ruby = needs("ruby")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    root = tmp_path / "checkout"
    (root / "labs" / LAB).mkdir(parents=True)
    shutil.copy(ROOT / "topology.yml", root)
    shutil.copytree(ROOT / "provision" / "vagrant", root / "provision" / "vagrant")
    (root / "provision" / "host").mkdir()
    return root


def ruby(checkout: Path, script: str, **extra: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("FWLAB_")}
    head = "require './provision/vagrant/lab_machines'; require 'json';"
    head += "def tried; yield; rescue FirewallLab::Problem => e; puts e.message, e.status_code; end;"
    argv = ["ruby", "-e", f"{head} tried {{ project = FirewallLab::Project.new(Dir.pwd); {script} }}"]
    return subprocess.run(argv, cwd=checkout, env={**kept, **extra}, capture_output=True, text=True, timeout=60)


def kinds_in_ruby(checkout: Path, **extra: str) -> dict[str, str]:
    done = ruby(checkout, f"puts JSON.generate(project.link_choice.of('{LAB}'))", **extra)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def made(checkout: Path, links: dict[str, str] | None, link: str = "socket") -> None:
    machine = {"domain": "d", "box": "fwlab-dut-linux-0", "accelerator": "tcg", "icount_shift": 2, "link": link}
    if links is not None:
        machine["links"] = links
    path = record_path(Project(checkout), LAB)
    path.parent.mkdir(parents=True, exist_ok=True)
    document = {"format": "fwlab-machines/1", "lab": LAB, "testbed": "virtual", "machines": {"dut": machine}}
    path.write_text(json.dumps(document))


@needs_ruby
@pytest.mark.parametrize("forced", ["", *LINKS])
def test_the_variable_overrides_every_link(checkout: Path, forced: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FWLAB_LINK", forced)
    wanted = dict.fromkeys(NAMES, forced or "socket")
    assert requested_kinds(TOPOLOGY) == wanted
    assert kinds_in_ruby(checkout, FWLAB_LINK=forced) == wanted
    assert [kind.name for kind in link_kinds(TOPOLOGY)] == [forced or "socket"]


@needs_ruby
def test_an_unknown_kind_is_named(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FWLAB_LINK", "wire")
    said = "FWLAB_LINK=wire: unknown link kind; there are: macvtap, socket, sriov, virtio"
    with pytest.raises(BadInput, match=said) as error:
        requested_kinds(TOPOLOGY)
    assert error.value.hint == "export FWLAB_LINK=socket"
    assert ruby(checkout, "", FWLAB_LINK="wire").stdout == f"{said}\n  next: export FWLAB_LINK=socket\n2\n"


@needs_ruby
def test_machines_keep_their_links(checkout: Path) -> None:
    made(checkout, {"generator-dut": "virtio", "dut-sink": "macvtap"})
    wanted = {"generator-dut": "virtio", "dut-sink": "macvtap"}
    assert kinds_in_ruby(checkout) == wanted
    assert kinds_in_ruby(checkout, FWLAB_LINK="sriov") == wanted
    made(checkout, None, link="virtio")  # a record from before it named each link
    assert kinds_in_ruby(checkout) == dict.fromkeys(NAMES, "virtio")
    made(checkout, {"generator-dut": "pigeon", "wan": "virtio"})  # what is not known here does not count
    assert kinds_in_ruby(checkout) == dict.fromkeys(NAMES, "socket")


@needs_ruby
def test_other_links_than_asked_for_are_refused(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made(checkout, dict.fromkeys(NAMES, "socket"))
    said = f"the links of {LAB} are socket; FWLAB_LINK asks for virtio"
    hint = f"vagrant destroy -f {LAB}, then the same command again (or unset FWLAB_LINK)"
    check = f"project.link_choice.check('{LAB}')"
    assert ruby(checkout, check, FWLAB_LINK="virtio").stdout == f"{said}\n  next: {hint}\n2\n"
    assert [ruby(checkout, check, FWLAB_LINK=kind).stdout for kind in ("", "socket")] == ["", ""]
    monkeypatch.setenv("FWLAB_LINK", "virtio")
    with pytest.raises(CannotMeasure) as error:
        refuse_other_links("socket", LAB)
    assert (error.value.message, error.value.hint) == (said, hint)
    refuse_other_links("virtio", LAB)
    monkeypatch.delenv("FWLAB_LINK")
    refuse_other_links("socket", LAB)


@needs_ruby
def test_ruby_and_python_name_the_same_nics_and_files(checkout: Path) -> None:
    script = "puts JSON.generate([project.key, FirewallLab::HostLinks::STATES, project.machines.to_h { |m|"
    script += "[m.role, m.links.map(&:device)] }])"
    key, states, devices = json.loads(ruby(checkout, script).stdout)
    assert (key, states) == (checkout_key(Project(checkout)), str(FOLDER))
    first, second = (device_name(key, LAB, index) for index in (0, 1))
    assert devices == {"generator": [first], "dut": [first, second], "sink": [second]}
    assert len(first) <= 15, "the kernel takes no longer name"


# ---- the host's part, called by Vagrant --------------------------------------------------------------------------


def script(checkout: Path, text: str) -> None:
    path = checkout / "provision/host/links"
    path.write_text(f'#!/bin/sh\necho "$*" >>{checkout}/calls\n{text}\n')
    path.chmod(0o755)


def calls(checkout: Path) -> list[str]:
    path = checkout / "calls"
    return path.read_text().splitlines() if path.exists() else []


PREPARE = "FirewallLab::HostLinks.prepare(project, project.machines)"


@needs_ruby
def test_vagrant_prepares_the_host_once_a_lab_and_only_where_a_link_needs_it(checkout: Path) -> None:
    script(checkout, "")
    assert ruby(checkout, PREPARE).stdout == ""
    assert calls(checkout) == []
    assert ruby(checkout, PREPARE, FWLAB_LINK="virtio").stdout == ""
    assert calls(checkout) == [f"up {LAB} generator-dut=virtio dut-sink=virtio"]


@needs_ruby
@pytest.mark.parametrize("code", [2, 3])
def test_vagrant_repeats_the_reason_and_the_exit_code(checkout: Path, code: int) -> None:
    script(checkout, f"printf 'no IOMMU\\n  next: reboot\\n' >&2; exit {code}")
    assert ruby(checkout, PREPARE, FWLAB_LINK="sriov").stdout == f"no IOMMU\n  next: reboot\n{code}\n"


@needs_ruby
def test_vagrant_restores_only_what_was_changed(checkout: Path, tmp_path: Path) -> None:
    script(checkout, "")
    restore = f"FirewallLab::HostLinks.restore(project, '{LAB}')"
    ruby(checkout, restore)
    assert calls(checkout) == []
    folder = tmp_path / "states"
    folder.mkdir()
    (folder / f"{checkout_key(Project(checkout))}-{LAB}.json").write_text("")
    ruby(checkout, f"FirewallLab::HostLinks.const_set(:STATES, '{folder}'); {restore}")
    assert calls(checkout) == [f"restore {LAB}"]


@needs_ruby
@pytest.mark.parametrize("text", ["", "[", "7", "sriov: 7", "sriov: { generator-dut: { ends: [] } }"])
def test_vagrant_leaves_a_wrong_host_file_to_the_script(checkout: Path, text: str) -> None:
    """It reads the file for every command, also for those that destroy machines."""
    (checkout / "host.yml").write_text(text)
    told = "given = []; box = Object.new; box.define_singleton_method(:pci) { |**words| given << words };"
    told += "project.machines.flat_map(&:links).each { |link| link.kind.hand_over(box, link) }; p given"
    done = ruby(checkout, told, FWLAB_LINK="sriov")
    assert (done.returncode, done.stdout) == (0, "[]\n")


# ---- the record, and QEMU's arguments ----------------------------------------------------------------------------


def test_a_tap_device_may_carry_two_kinds() -> None:
    assert [link_of(word) for word in ("dgram", "tap", "vfio-pci")] == ["socket", "tap", "sriov"]
    assert [as_qemu_shows(kinds) for kinds in ("virtio", "macvtap", "macvtap+virtio")] == ["tap", "tap", "tap"]
    assert as_qemu_shows("socket+virtio") == "socket+tap"


NETDEVS = {
    "virtio": ["-netdev", '{"type":"tap","fd":"25","vhost":true,"vhostfd":"27","id":"hostua-net-0"}'],
    "macvtap": ["-netdev", "tap,fds=25:26,vhost=on,vhostfds=27:28,id=hostua-net-0"],
    "sriov": ["-device", '{"driver":"vfio-pci","host":"0000:01:10.2","id":"hostdev0"}'],
    "socket": ["-netdev", '{"type":"dgram","id":"hostua-net-0"}'],
}


@pytest.mark.parametrize("kind", NETDEVS)
@pytest.mark.parametrize("running", NETDEVS)
def test_a_record_is_believed_unless_qemu_shows_other_links(
    checkout: Path, kind: str, running: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = ["qemu-system-x86_64", "-accel", "tcg", "-icount", "shift=2", *NETDEVS[running]]
    monkeypatch.setattr(machine_record, "_running", lambda *_: from_command_line(line))
    made(checkout, dict.fromkeys(NAMES, kind), link=kind)
    if {kind, running} <= {"virtio", "macvtap"} or kind == running:
        assert machines_made(Project(checkout), TOPOLOGY, 3, LAB).link == kind
    else:
        with pytest.raises(CannotMeasure, match=f"link {kind}, the DUT's QEMU"):
            machines_made(Project(checkout), TOPOLOGY, 3, LAB)


@needs_ruby
def test_the_record_names_the_kind_of_each_link(checkout: Path) -> None:
    xml = f"""<domain type='kvm'><name>x</name><devices>
      <interface type='bridge'><mac address='{TOPOLOGY.end("dut-sink", "dut").mac}'/></interface>
      <hostdev mode='subsystem' type='pci' managed='yes'><source/></hostdev></devices></domain>"""
    told = "require './provision/vagrant/record'; dut = project.machines.find { |one| one.role == 'dut' };"
    told += f"puts JSON.generate(FirewallLab::Record.describe(project, dut, {json.dumps(xml)}, 'box'))"
    record = json.loads(ruby(checkout, told).stdout)
    assert record["links"] == {"generator-dut": "sriov", "dut-sink": "virtio"}
    assert record["link"] == "sriov+virtio"
