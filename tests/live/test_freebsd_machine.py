# SPDX-License-Identifier: GPL-2.0-or-later
"""The machines of a lab whose DUT runs FreeBSD, as Vagrant creates them. Skipped where its box is not built."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from .conftest import ROOT, TOPOLOGY, Checkout, new_checkout

pytestmark = pytest.mark.live

LAB = "lab98-freebsd"
FREEBSD = TOPOLOGY.with_dut("freebsd")
ENDS = [link.ends["dut"] for link in FREEBSD.links.values()]
MANAGEMENT = f"vtnet{len(ENDS)}"


class FreeBsdCheckout(Checkout):
    """A checkout with one more lab, which has nothing but its needs."""

    name = LAB

    def fill(self) -> None:
        super().fill()
        (self.top / "labs" / LAB).mkdir()
        (self.top / "labs" / LAB / "lab.yml").write_text("needs: {systems: [freebsd]}\n")


@pytest.fixture(scope="module")
def machines() -> Iterator[Checkout]:
    images = ROOT / ".fwlab" / "images.json"
    if not images.exists() or "dut-freebsd" not in json.loads(images.read_text()):
        pytest.skip("the box dut-freebsd is not built: packer/build dut-freebsd")
    with new_checkout(FreeBsdCheckout) as checkout:
        checkout.vagrant("up", LAB)
        yield checkout


def test_ssh_of_the_lab_is_its_dut_with_freebsd(machines: Checkout) -> None:
    assert machines.run("dut", "hostname; uname -s; id -un; sudo id -un").split() == [
        "dut",
        "FreeBSD",
        "vagrant",
        "root",
    ]


def test_manifest_names_the_kernel_that_runs(machines: Checkout) -> None:
    manifest = json.loads(machines.run("dut", "cat /etc/fwlab/image.json"))
    assert manifest["image"] == "dut-freebsd"
    assert manifest["kernel"] == machines.run("dut", "uname -r").strip()
    assert manifest["kernel_sha256"] == machines.run("dut", "sha256 -q /boot/kernel/kernel").strip()
    record = json.loads(Path(machines.top, ".fwlab", LAB, "machines.json").read_text())
    assert record["machines"]["dut"]["box"].startswith("fwlab-dut-freebsd-")
    assert record["machines"]["dut"]["icount_shift"] == TOPOLOGY.clock.icount_shift


def test_links_have_their_addresses_routes_and_permanent_neighbours(machines: Checkout) -> None:
    neighbours = machines.run("dut", "arp -an; ndp -an")
    routes = machines.run("dut", "netstat -rnW")
    for link in FREEBSD.links.values():
        near, (far_role, far) = link.ends["dut"], next(pair for pair in link.ends.items() if pair[0] != "dut")
        shown = machines.run("dut", f"ifconfig -f inet:cidr,inet6:cidr {near.dev}")
        assert near.mac in shown
        assert f"inet {near.ipv4} " in shown
        assert re.search(rf"inet6 {re.escape(near.ipv6)}\s", shown)
        assert f"mtu {link.mtu}\n" in shown
        assert "fe80:" not in shown
        options = re.search(r"options=\w+<([^>]*)>", shown)
        offloads = {"RXCSUM", "TXCSUM", "RXCSUM_IPV6", "TXCSUM_IPV6", "TSO4", "TSO6", "LRO"}
        assert not offloads & set(options[1].split(",") if options else [])
        for address in (far.ipv4, far.ipv6):
            assert re.search(rf"{re.escape(address.split('/')[0])}\b.*{far.mac}.*{near.dev} +permanent", neighbours)
        for prefix in link.behind[far_role]:
            gateway = (far.ipv6 if ":" in prefix else far.ipv4).split("/")[0]
            assert re.search(rf"^{re.escape(prefix)} +{re.escape(gateway)} .*{near.dev}\b", routes, re.MULTILINE)


def test_the_dut_routes_and_pf_is_loaded_and_off(machines: Checkout) -> None:
    names = "net.inet.ip.forwarding net.inet6.ip6.forwarding net.inet.ip.redirect net.inet6.ip6.redirect"
    assert machines.run("dut", f"sysctl -n {names}").split() == ["1", "1", "0", "0"]
    assert machines.run("dut", "sudo pfctl -s info 2>/dev/null").startswith("Status: Disabled")
    assert machines.run("dut", "sudo pfctl -s rules 2>/dev/null").strip() == ""
    assert "pflog0" in machines.run("dut", "ifconfig -l").split()
    tunables = "hw.vtnet.csum_disable hw.vtnet.tso_disable hw.vtnet.lro_disable hw.vtnet.altq_disable"
    assert machines.run("dut", f"sysctl -n {tunables}").split() == ["1"] * 4


def test_nothing_reads_packets_from_a_link(machines: Checkout) -> None:
    assert machines.run("dut", "sudo netstat -B").splitlines()[1:] == []


def test_frames_cross_the_dut(machines: Checkout) -> None:
    assert " 0% packet loss" in machines.run("generator", "ping -c 3 -W 20 sink")
    address = TOPOLOGY.end("generator-dut", "dut").ipv6.split("/")[0]
    assert " 0% packet loss" in machines.run("generator", f"ping -c 3 -W 20 {address}")


def test_a_changed_topology_is_applied_at_the_next_start(machines: Checkout) -> None:
    topology = machines.top / "topology.yml"
    before = topology.read_text()
    topology.write_text(before.replace("mtu: 1500", "mtu: 1400"))
    try:
        said = machines.vagrant("reload", LAB)
        assert "switching it off" not in said
        assert "mtu 1400\n" in machines.run("dut", f"ifconfig {ENDS[0].dev}")
    finally:
        topology.write_text(before)
