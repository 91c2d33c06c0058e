# SPDX-License-Identifier: GPL-2.0-or-later
"""What links change on the host, on a host made of files: done once, and undone whatever happens."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fwlab.model.errors import BadInput, CannotMeasure
from fwlab.testbed.hardware import checkout_key
from fwlab.testbed.host_links.__main__ import main
from tests import ROOT
from tests.fakes.fake_host import NO_MAC
from tests.fakes.host_setting import LAB, MACVTAP, SRIOV, TOPOLOGY, Setting


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Setting:
    return Setting(tmp_path, monkeypatch)


# ---- what each kind does ---------------------------------------------------------------------------------------------


def test_virtio_makes_a_bridge_for_each_link_that_leads_nowhere_else(here: Setting) -> None:
    here.up("virtio")
    start = f"fwl-{checkout_key(here.project.root)[:6]}-03"
    assert [f"{start}0" in here.host.devices.nics(), f"{start}1" in here.host.devices.nics()] == [True, True]
    assert here.host.calls[:3] == [
        f"link add name {start}0 type bridge stp_state 0 forward_delay 0 mcast_snooping 0",
        f"link set dev {start}0 alias fwlab {LAB} generator-dut mtu 1500 addrgenmode none arp off",
        f"link set dev {start}0 up",
    ]
    assert not [call for call in here.host.calls if "master" in call or "address add" in call]


def test_macvtap_makes_a_nic_only_where_host_yml_says_dummy(here: Setting) -> None:
    before = here.host.nics()
    here.file(MACVTAP)
    here.up("macvtap")
    made = set(here.host.devices.nics()) - set(before["nics"])
    assert made == {f"fwl-{checkout_key(here.project.root)[:6]}-030"}
    here.host.nic("enp9s0", state="down")
    assert here.links.lost(LAB).message == f"this host lost a link of {LAB}: the NIC enp9s0 is down"
    shutil.rmtree(here.host.root / "sys/class/net/enp9s0")
    assert here.links.lost(LAB).message == f"this host lost a link of {LAB}: the NIC enp9s0 is gone"


def test_a_vf_gets_mac_vlan_trust_and_spoof_check_and_gets_the_old_ones_back(here: Setting) -> None:
    here.host.sriov()
    here.host.vfs[2] |= {"mac": "02:00:00:00:00:02", "vlan": 7, "trust": True}
    before = here.host.nics()
    here.file(SRIOV)
    here.up("sriov")
    macs = [TOPOLOGY.end(link, role).mac for link in TOPOLOGY.links for role in TOPOLOGY.links[link].ends]
    first = {"vlan": 101, "trust": True, "spoofchk": False}
    second = {"vlan": 102, "trust": False, "spoofchk": True}
    wanted = [{"mac": mac, **rest} for mac, rest in zip(macs, (first, first, second, second), strict=True)]
    assert list(here.host.vfs.values()) == wanted
    assert here.links.restore(LAB)
    assert here.host.nics() == before
    assert here.host.vfs[0]["mac"] == NO_MAC


def test_settings_that_the_driver_lacks_are_left_alone(here: Setting) -> None:
    here.host.sriov()
    for vf in here.host.vfs.values():
        del vf["trust"], vf["spoofchk"]
    here.file(SRIOV)
    here.up("sriov")
    assert not [call for call in here.host.calls if "trust" in call or "spoofchk" in call]


# ---- once, and undone ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["virtio", "macvtap", "sriov"])
def test_up_and_restore_can_be_repeated(here: Setting, kind: str) -> None:
    here.host.sriov()
    here.file(MACVTAP + SRIOV)
    before = here.host.nics()
    here.up(kind)
    changed, calls = here.host.nics(), len(here.host.calls)
    assert changed != before
    here.up(kind)
    assert (here.host.nics(), len(here.host.calls)) == (changed, calls)
    assert [here.links.restore(LAB), here.links.restore(LAB)] == [True, False]
    assert here.host.nics() == before


#: For virtio every call changes something. For sriov the first eight only ask.
FAILING = [("virtio", call) for call in (0, 1, 3, 5)] + [("sriov", call) for call in (0, 7, 8, 10, 11)]


@pytest.mark.parametrize(("kind", "call"), FAILING)
def test_a_change_that_fails_undoes_those_before_it(here: Setting, kind: str, call: int) -> None:
    here.host.sriov()
    here.file(SRIOV)
    here.host.fail_at = call
    assert "Operation not permitted" in here.refused(kind).message


@pytest.mark.parametrize("call", [1, 2, 4, 6])
def test_a_killed_program_leaves_a_record_from_which_the_next_one_restores(here: Setting, call: int) -> None:
    """In a process of its own, which is killed in the middle of its changes."""
    before = here.host.nics()
    child = os.fork()
    if child == 0:
        run = here.host.run

        def killed(arguments: list[str]) -> str:
            if len(here.host.calls) == call:
                os.kill(os.getpid(), signal.SIGKILL)
            return run(arguments)

        here.host.run = killed  # type: ignore[method-assign]
        here.up("virtio")
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    assert os.WTERMSIG(status) == signal.SIGKILL or call == 6
    assert here.links.labs() == [LAB]
    assert here.links.restore(LAB)
    assert here.host.nics() == before


def test_a_killed_program_does_not_stop_the_next_up(here: Setting) -> None:
    here.up("virtio")
    name = f"fwl-{checkout_key(here.project.root)[:6]}-031"
    here.host.run(["link", "delete", "dev", name, "type", "bridge"])  # as if killed before the second bridge
    here.up("virtio")
    assert here.host.devices.has_nic(name)


def test_other_links_than_before_replace_them(here: Setting) -> None:
    here.host.sriov()
    here.file(SRIOV)
    before = here.host.nics()
    here.up("virtio")
    here.up("sriov")
    assert here.host.devices.nics() == before["nics"]
    here.up("socket")
    assert here.host.nics() == before
    assert here.records == []
    calls = len(here.host.calls)
    here.up("socket")
    assert len(here.host.calls) == calls, "socket links change nothing"


def test_after_a_boot_nothing_is_undone(here: Setting) -> None:
    """The kernel has forgotten the changes, and the same VF may serve somebody else now."""
    here.host.sriov()
    here.file(SRIOV)
    here.up("sriov")
    here.host.write("proc/sys/kernel/random/boot_id", "boot-2")
    here.host.vfs[0]["mac"] = "02:00:00:00:00:09"
    calls = len(here.host.calls)
    assert here.links.restore(LAB)
    assert len(here.host.calls) == calls
    assert here.host.vfs[0]["mac"] == "02:00:00:00:00:09"


def test_one_undo_that_fails_does_not_stop_the_others(here: Setting) -> None:
    here.up("virtio")
    here.host.fail_at = len(here.host.calls)
    with pytest.raises(CannotMeasure) as error:
        here.links.restore(LAB)
    assert error.value.hint == f"provision/host/links restore {LAB}"
    assert len([name for name in here.host.devices.nics() if name.startswith("fwl-")]) == 1
    assert here.links.restore(LAB)
    assert not [name for name in here.host.devices.nics() if name.startswith("fwl-")]


def test_links_of_running_machines_are_not_taken_away(here: Setting) -> None:
    here.up("virtio")
    here.host.machine(71, f"{here.machine}-sink")
    with pytest.raises(CannotMeasure, match=f"the machines of {LAB} run") as error:
        here.links.restore(LAB)
    assert error.value.hint == f"vagrant destroy -f {LAB}"
    (here.host.root / "proc/71/cmdline").unlink()
    assert here.links.restore(LAB)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": "fwlab-host-links/2"}'])
def test_a_damaged_record_is_named(here: Setting, text: str) -> None:
    here.up("virtio")
    path = here.links.path(LAB)
    path.write_text(text)
    with pytest.raises(CannotMeasure, match="not a record of what was changed on this host") as error:
        here.links.restore(LAB)
    assert error.value.hint.endswith(f"rm {path}")


# ---- the program -----------------------------------------------------------------------------------------------------


def test_the_program_does_and_undoes(here: Setting, capsys: pytest.CaptureFixture[str]) -> None:
    before = here.host.nics()
    assert main(["up", LAB, "generator-dut=virtio"], here.links) == 0
    assert len(here.host.devices.nics()) == len(before["nics"]) + 1
    assert main(["status"], here.links) == 0
    assert main(["restore"], here.links) == 0
    assert capsys.readouterr().out == f"{LAB}: this host carries its links\n{LAB}: this host is as it was\n"
    assert here.host.nics() == before
    assert main([], here.links) == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["up", "lab99-x"], f"unknown lab lab99-x; there are: {LAB}, lab04-nftables"),
        (["up", LAB, "wan=virtio"], "wan=virtio: must be LINK=KIND"),
        (["up", LAB, "dut-sink=wire"], "dut-sink=wire: must be LINK=KIND"),
        (["restore", "../x"], "unknown lab ../x"),
    ],
)
def test_wrong_arguments_are_named(here: Setting, words: list[str], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        main(words, here.links)


def test_the_script_prints_usage_and_errors_without_a_traceback(tmp_path: Path) -> None:
    script = [sys.executable, "-m", "fwlab.testbed.host_links"]
    done = subprocess.run(script, cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr.splitlines()[0][:6]) == (2, "usage:")
    done = subprocess.run([*script, "up", "lab99-x"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2
    assert "next: fwlab list" in done.stderr
    assert "Traceback" not in done.stderr
