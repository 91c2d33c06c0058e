# SPDX-License-Identifier: GPL-2.0-or-later
"""Several NICs of a DUT on each link: QEMU's arguments for them, how the DUT changes from one to another, and which
cases are left out without them."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from fwlab.measure.plan import case_spec
from fwlab.measure.session import Session
from fwlab.metrics.measurement import MeasurementSpec
from fwlab.model.errors import CannotMeasure
from fwlab.rulesets.kind import Refusal
from fwlab.rulesets.kinds.nic import MODELS, NicLoader, models_there
from fwlab.testbed.hardware import LinkEnd, hub_arguments, links_on_hubs
from fwlab.testbed.machine_record import from_command_line
from tests.fakes.factories import a_lab, a_run
from tests.fakes.fake_kernel import FakeKernel

ENDS = (("generator-dut", "52:54:00:12:00:01", 7), ("dut-sink", "52:54:00:13:00:01", 8))
GOLDEN = """
-netdev socket,id=generator-dut,udp=127.0.0.1:17,localaddr=127.0.0.1:7
-netdev hubport,id=generator-dut-wire,hubid=0,netdev=generator-dut
-netdev hubport,id=generator-dut-0,hubid=0
-device virtio-net-pci,netdev=generator-dut-0,mac=52:54:00:12:00:01,addr=0x10
-netdev hubport,id=generator-dut-1,hubid=0
-device vmxnet3,netdev=generator-dut-1,mac=52:54:01:12:00:01,addr=0x12
-netdev socket,id=dut-sink,udp=127.0.0.1:18,localaddr=127.0.0.1:8
-netdev hubport,id=dut-sink-wire,hubid=1,netdev=dut-sink
-netdev hubport,id=dut-sink-0,hubid=1
-device virtio-net-pci,netdev=dut-sink-0,mac=52:54:00:13:00:01,addr=0x11
-netdev hubport,id=dut-sink-1,hubid=1
-device vmxnet3,netdev=dut-sink-1,mac=52:54:01:13:00:01,addr=0x13
"""


def end(name: str, mac: str, port: int) -> LinkEnd:
    fields = {"kind": "socket", "mtu": 1500, "far": {}, "behind_far": [], "role": "dut", "queues": 1, "device": ""}
    fields |= {"accelerator": "tcg", "host": {}, "address": "127.0.0.1", "local_port": port, "remote_port": port + 10}
    return LinkEnd(name=name, near={"mac": mac}, nics=("vmxnet3",), **fields)


def test_qemus_arguments_join_all_nics_of_a_link_to_one_hub() -> None:
    words = hub_arguments({"nic_model": "virtio", "link_pci_slot": 0x10}, [end(*fields) for fields in ENDS])
    assert words == GOLDEN.split()
    assert links_on_hubs(words) == ["generator-dut", "dut-sink"]
    made = from_command_line(["qemu", "-accel", "tcg", "-icount", "shift=2", *words])
    assert made is not None
    assert made.link == "socket", "a hub is no link of its own"


# ---- on the DUT -----------------------------------------------------------------------------------------------


def nic(name: str, mac: str, bus: str, place: str) -> dict[str, str]:
    return {"ifname": name, "address": mac, "link_type": "ether", "parentbus": bus, "parentdev": place}


def a_dut(others: str = "eth3 eth4", usual: str = "eth0 eth1") -> FakeKernel:
    """A DUT with two virtio NICs and two more. A management NIC has a MAC address of another form."""
    kernel = FakeKernel()
    first, second = usual.split()
    nics = [nic(first, "52:54:00:12:00:01", "virtio", "virtio1"), nic(second, "52:54:00:13:00:01", "virtio", "virtio2")]
    nics.append(nic("eth2", "52:54:00:12:34:56", "virtio", "virtio3"))
    for number, name in enumerate(others.split()):
        nics.append(nic(name, f"52:54:01:1{number + 2}:00:01", "pci", f"0000:00:1{number + 2}.0"))
    kernel.answers["ip -j -d link show"] = json.dumps([{"ifname": "lo", "link_type": "loopback"}, *nics])
    for device, net in (("eth0", 18), ("eth1", 19)):
        held = [
            {"family": "inet", "local": f"198.{net}.0.1", "prefixlen": 30},
            {"family": "inet6", "local": f"2001:2:0:{net}::1", "prefixlen": 64},
        ]
        kernel.answers[f"ip -j address show dev {device}"] = json.dumps([{"addr_info": held}])
        routes = f"198.{net}.0.0/30 proto kernel scope link\n198.{net}.0.0/16 via 198.{net}.0.2 proto static linkdown\n"
        kernel.answers[f"ip -4 route show dev {device}"] = routes
        neighbours = f"198.{net}.0.2 lladdr 52:54:00:{net - 6}:00:02 PERMANENT\n"
        kernel.answers[f"ip -4 neighbour show dev {device} nud permanent"] = neighbours
    return kernel


def test_another_nic_takes_the_name_and_all_that_was_set_up() -> None:
    kernel = a_dut()
    [(argv, text)] = NicLoader(kernel).calls("links.nic", "vmxnet3\n", each=False)
    assert argv == ["ip", "-batch", "-"]
    assert text.splitlines()[:11] == [
        "link set dev eth0 down",
        "link set dev eth3 down",
        "address flush dev eth0",
        "link set dev eth0 name usual0",
        "link set dev eth3 name eth0",
        "link set dev eth0 up",
        "link set dev eth0 address 52:54:00:12:00:01",
        "address add 198.18.0.1/30 dev eth0",
        "address add 2001:2:0:18::1/64 dev eth0 nodad",
        "route replace 198.18.0.0/16 dev eth0 via 198.18.0.2 proto static",
        "neighbour replace 198.18.0.2 lladdr 52:54:00:12:00:02 dev eth0 nud permanent",
    ]
    assert "link set dev eth4 name eth1" in text
    wanted = ["modprobe vmxnet3", "ethtool -G eth3 rx 1024", "ethtool -G eth4 rx 1024"]
    assert [line for line in kernel.called if line in wanted] == wanted


def test_a_dut_without_the_driver_or_the_nic_refuses() -> None:
    kernel = a_dut()
    kernel.failing.add("modprobe e1000e")
    with pytest.raises(Refusal, match="no driver e1000e"):
        NicLoader(kernel).calls("links.nic", "e1000e\n", each=False)
    with pytest.raises(Refusal, match="no vmxnet3 on eth0"):
        NicLoader(a_dut(others="")).calls("links.nic", "vmxnet3\n", each=False)


def test_the_usual_nics_come_back() -> None:
    kernel = a_dut()
    kernel.files |= {f"/sys/class/net/usual{n}": "" for n in (0, 1)}
    kernel.files |= {f"/sys/class/net/eth{n}": "" for n in (0, 1)}
    kernel.files |= {f"/sys/class/net/eth{n}/statistics/rx_packets": "7\n" for n in (0, 1)}
    NicLoader(kernel).undo(loaded=True)
    fed = kernel.fed["ip -force -batch -"].splitlines()  # of the second link
    assert fed[3:5] == ["link set dev eth1 name othereth1", "link set dev usual1 name eth1"]
    assert "address add 198.19.0.1/30 dev eth1" in fed
    assert f"rmmod {' '.join(model.driver for model in MODELS.values())}" in kernel.called
    assert kernel.called.count("sleep 0.05") == 2, "the ring was not drained"


def test_a_nic_that_an_agent_left_half_way_comes_back() -> None:
    """The second link's name was free when the agent was killed, and the first one was done."""
    kernel = a_dut()
    kernel.files |= {"/sys/class/net/usual1": "", "/sys/class/net/eth0": ""}
    kernel.files |= {f"/sys/class/net/eth{n}/statistics/rx_packets": "7\n" for n in (0, 1)}
    NicLoader(kernel).undo(loaded=True)
    assert kernel.fed["ip -force -batch -"] == "link set dev eth1 up\n"
    assert kernel.called.count("ip -force -batch -") == 2


@pytest.mark.parametrize("loaded", [True, False])
def test_nothing_is_undone_where_the_usual_nics_are_in_use(loaded: bool) -> None:
    kernel = a_dut()
    NicLoader(kernel).undo(loaded)
    assert kernel.called == []


def test_the_start_state_has_the_usual_nics_only() -> None:
    kernel = a_dut()
    NicLoader(kernel).prepare()
    assert kernel.called[1].startswith("rmmod vmxnet3 ")
    assert "ip -force -batch -" not in kernel.called, "nothing has to be renamed"
    wrong = a_dut(others="eth0 eth1", usual="eth3 eth4")
    NicLoader(wrong).prepare()
    assert wrong.fed["ip -force -batch -"].splitlines() == ["link set dev eth0 up", "link set dev eth1 up"]
    assert "systemctl restart systemd-networkd.service" in wrong.called


def test_a_dut_with_one_nic_on_each_link_is_left_alone() -> None:
    kernel = a_dut(others="")
    NicLoader(kernel).prepare()
    assert kernel.called == ["ip -j -d link show"]


def test_the_models_that_a_dut_has() -> None:
    kernel = FakeKernel()
    files = " ".join(f"/sys/bus/pci/devices/0000:00:{slot:02x}.0/modalias" for slot in range(32))
    kernel.answers[f"grep -hs  {files}"] = "pci:v000015ADd000007B0sv\npci:v00008086d000010D3sv\n"
    kernel.failing.add("modinfo e1000e")
    assert models_there(kernel) == ["vmxnet3"]


# ---- in a lab -------------------------------------------------------------------------------------------------


def test_the_nic_is_loaded_before_the_ruleset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fwlab.measure.plan.lab_ruleset", lambda *_: ["the ruleset"])
    lab = a_lab()
    case = lab.cases["rules-16"].model_copy(update={"nic": "vmxnet3"})
    spec = case_spec(SimpleNamespace(lab=lab, topology=None), case, None)
    assert spec.nic == "vmxnet3"
    assert [getattr(file, "text", file) for file in spec.files] == ["vmxnet3\n", "the ruleset"]


def test_a_case_is_left_out_without_its_nic() -> None:
    told: list[object] = []
    run = a_run([])
    run.dut = run.dut.model_copy(update={"nics": ["vmxnet3"]})
    session = Session(SimpleNamespace(machines_lab=a_lab()), None, None, run, Path(), told.append)
    dear = MeasurementSpec("dear", "Dear", "x", [], ["capacity"], traffic="flood", nic="e1000e")
    there = MeasurementSpec("there", "There", "x", [], ["capacity"], traffic="flood", nic="vmxnet3")
    assert session.measurable([dear, there]) == [there]
    why = "it needs the NIC e1000e; apart from the usual NIC, this DUT and its kernel have vmxnet3"
    assert [(event.item, event.why) for event in told] == [("dear", why)]
    with pytest.raises(CannotMeasure, match="dear: it needs the NIC e1000e"):
        session.require([], [there, dear])
