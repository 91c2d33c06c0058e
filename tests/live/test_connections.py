# SPDX-License-Identifier: GPL-2.0-or-later
"""TCP connections through a real DUT: plain forwarding, with conntrack, and with a concurrent flood."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from fwlab.generator import syn_timeout

from .conftest import STAND, Checkout, document

pytestmark = pytest.mark.live

ID = "lab97-connections"
TRIALS = 2
LAB_YML: dict[str, Any] = {
    "id": ID,
    "title": "How many connections?",
    "minutes": 10,
    "classes": {"flood": {"src": "198.18.64.0/18"}},
    "traffic": {
        "web": {"connections": {}},
        "flood": {"profile": "../common/flood.py"},
        "attacked": {"connections": {"background": "flood", "background_pps": 1500}},
    },
    "baseline": "plain",
    "cases": [
        {"id": "plain", "title": "Plain", "ruleset": "plain", "traffic": "web"},
        {"id": "conntrack", "title": "With conntrack", "ruleset": "conntrack", "traffic": "web"},
        # The flood follows the host's clock and the DUT its own, so the flood's share varies between trials. Several
        # trials would spread too far and be repeated in vain.
        {"id": "attacked", "title": "With a concurrent flood", "ruleset": "plain", "traffic": "attacked", "trials": 1},
    ],
    "exercises": [],
}
CONNTRACK = """table ip track {
  chain forward {
    type filter hook forward priority 0; policy accept;
    ct state established,related accept
    ct state new accept
  }
}
"""
ROOM = "net.netfilter.nf_conntrack_max = 262144\nnet.netfilter.nf_conntrack_buckets = 262144\n"

#: Detaches the BPF program from a node's cgroups and prints the error number.
DETACH = Path(syn_timeout.__file__).read_text().split("if __name__")[0] + (
    "try:\n    bpf(PROG_DETACH, struct.pack('<IIII', os.open(CGROUP, os.O_RDONLY), 0, AT_SOCK_OPS, 0))\n"
    "except OSError as error:\n    print(error.errno)\n"
)


@pytest.fixture(scope="module")
def run(lab: Checkout) -> dict:
    """A full run of the lab above. Prints its figures for `pytest -s`."""
    top = lab.top / "labs" / ID
    for name, files in {"plain": {}, "conntrack": {"rules.nft": CONNTRACK, "room.sysctl": ROOM}}.items():
        (top / "rulesets" / name).mkdir(parents=True)
        for file, text in files.items():
            (top / "rulesets" / name / file).write_text(text)
    (top / "rulesets" / "plain" / "README.md").write_text("Nothing is loaded.\n")
    for case in LAB_YML["cases"]:
        case.update(metric="connections", also=["delivered"])
    (top / "lab.yml").write_text(yaml.safe_dump(LAB_YML))
    told = document(lab.fwlab("run", ID, "--machines", STAND, "--trials", str(TRIALS), "--json"))
    for case in told["cases"]:
        figure = f"{case['median']:,.0f} {case['unit']} from {case['trials']}" if case["median"] else "no figure"
        print(f"{case['id']}: {figure} {'; '.join(case['problems'])}")
    return json.loads(Path(lab.top / "reports" / ID / "run.json").read_text())


@pytest.fixture(scope="module")
def figures(run: dict) -> dict[str, list[float]]:
    """Connections per busy second of the DUT's clock, by trial."""
    return {case["id"]: [t["completed"] / t["busy_s"] for t in case["tcp"]] for case in run["cases"]}


def test_the_run_has_no_problems(run: dict) -> None:
    assert [case["problems"] for case in run["cases"]] == [[], [], []]


@pytest.mark.parametrize("case", ["plain", "conntrack"])
def test_trials_repeat_within_two_per_cent(figures: dict, case: str) -> None:
    assert len(figures[case]) == TRIALS
    assert max(figures[case]) / min(figures[case]) <= 1.02, figures[case]


def test_conntrack_costs(figures: dict) -> None:
    assert min(figures["plain"]) > 1.1 * max(figures["conntrack"]), figures


@pytest.mark.parametrize("place", [0, 1])
def test_a_connection_has_nine_packets_at_any_host_load(run: dict, place: int) -> None:
    """Three to open, request and response (with FIN), an acknowledgement for each, FIN and its acknowledgement."""
    for trial in run["cases"][place]["tcp"]:
        assert 8.95 <= trial["packets"] / trial["completed"] <= 9.05


@pytest.mark.parametrize("place", [0, 1])
def test_all_complete_at_a_light_rate(run: dict, place: int) -> None:
    light = [clients for clients in run["cases"][place]["clients"] if clients["intended_load"]]
    assert len(light) == 1
    assert light[0]["completed"] == light[0]["opened"] > 0
    assert light[0]["failed"] == 0


def test_flood_and_connections_are_counted_separately(run: dict, figures: dict) -> None:
    beside = run["cases"][2]["deliveries"][0]
    assert beside["sent"] == beside["offered"]["flood"] > 0
    assert 0 < beside["arrived"]["flood"] <= beside["sent"]
    assert beside["arrived"]["other"] == 0, "packets of connections are not counted"
    assert run["cases"][2]["clients"][0]["completed"] > 0
    assert figures["attacked"][0] < min(figures["plain"]), "the flood takes its share of the DUT"


def test_the_endpoints_are_restored(lab: Checkout, run: dict) -> None:
    assert "fwlab-clients" not in lab.run("generator", "sudo nft list tables")
    assert "32768\t60999" in lab.run("generator", "cat /proc/sys/net/ipv4/ip_local_port_range")
    assert "198.19.32" not in lab.run("sink", "ip route show table local")
    assert lab.run("sink", "pgrep nginx || true").strip() == ""
    for node in ("generator", "sink"):
        assert lab.run(node, f"sudo python3 -c {shlex.quote(DETACH)}").strip() == "2", "ENOENT: none was attached"
