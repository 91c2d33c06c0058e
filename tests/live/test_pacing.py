# SPDX-License-Identifier: GPL-2.0-or-later
"""Loads in the DUT's own time: exact, whatever else the host does, and nothing is left attached afterwards."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import yaml

from fwlab.generator.pacing import wires
from fwlab.generator.pacing.wires import Monitor
from fwlab.testbed.qemu_process import domain_of, qemu_of

from .conftest import STAND, TOPOLOGY, Checkout, document, ssh_port

pytestmark = pytest.mark.live

ID = "lab98-pacing"
#: Packets per second of the DUT's clock that the ruleset lets through.
LIMIT = 500
LAB_YML = {
    "id": ID,
    "title": "How exact is a load?",
    "minutes": 10,
    "classes": {"flood": {"src": "198.18.0.0/16"}},
    "traffic": {"flood": {"profile": "../common/flood.py"}},
    "defaults": {"traffic": "flood"},
    "baseline": "plain",
    "cases": [
        {"id": "plain", "title": "Plain", "ruleset": "plain", "trials": 3},
        *(
            {
                "id": name,
                "title": f"Limited by {name}",
                "ruleset": name,
                "metric": "survival",
                "victim_class": "flood",
                "total_load": 0.05,
                "trials": {"count": 3, "seconds": 0.5, "settle": 0.1},
            }
            for name in ("limited", "meter", "hashlimit", "police")
        ),
        {
            "id": "nothing-passes",
            "title": "Dropped where frames come in",
            "ruleset": "ingress",
            "metric": "survival",
            "victim_class": "flood",
            "total_load": 0.05,
            "trials": {"count": 3, "seconds": 0.1},
        },
        {"id": "throughput", "title": "Throughput", "ruleset": "plain", "metric": "throughput"},
    ],
    "exercises": [],
}
LIMITED = f"""table ip limited {{
  chain forward {{
    type filter hook forward priority 0; policy accept;
    limit rate {LIMIT}/second burst 5 packets accept
    drop
  }}
}}
"""
METER = f"""table ip limited {{
  set seen {{
    type ipv4_addr
    size 16
    flags dynamic,timeout
    timeout 60s
  }}
  chain forward {{
    type filter hook forward priority 0; policy accept;
    update @seen {{ ip saddr & 0.0.0.0 limit rate {LIMIT}/second burst 5 packets }} accept
    drop
  }}
}}
"""
HASHLIMIT = f"""*filter
:FORWARD ACCEPT [0:0]
-A FORWARD -m hashlimit --hashlimit-name limited --hashlimit-above {LIMIT}/sec --hashlimit-burst 5 -j DROP
COMMIT
"""
POLICE = f"""qdisc add dev eth0 clsact
filter add dev eth0 ingress protocol ip matchall action police pkts_rate {LIMIT} pkts_burst 5 conform-exceed drop
"""
#: Every tool that limits a rate, by the name of its case: the file of its ruleset.
TOOLS = {
    "limited": ("a.nft", LIMITED),
    "meter": ("a.nft", METER),
    "hashlimit": ("a.iptables", HASHLIMIT),
    "police": ("a.tc", POLICE),
}
INGRESS = """table netdev early {
  chain arriving {
    type filter hook ingress device "eth0" priority 0; policy accept;
    drop
  }
}
"""


@pytest.fixture(scope="module")
def folder(lab: Checkout) -> Path:
    top = lab.top / "labs" / ID
    limits = {name: dict([file]) for name, file in TOOLS.items()}
    for name, files in {"plain": {}, "ingress": {"a.nft": INGRESS}, **limits}.items():
        (top / "rulesets" / name).mkdir(parents=True)
        for file, text in files.items():
            (top / "rulesets" / name / file).write_text(text)
    (top / "rulesets" / "plain" / "README.md").write_text("Nothing is loaded.\n")
    (top / "lab.yml").write_text(yaml.safe_dump(LAB_YML))
    return top


def measured(lab: Checkout, *cases: str) -> dict[str, dict]:
    """These cases and the baseline, as the run keeps them."""
    document(lab.fwlab("run", ID, "plain", *cases, "--machines", STAND, "--json"))
    run = json.loads(Path(lab.top / "reports" / ID / "run.json").read_text())
    return {case["id"]: case for case in run["cases"]}


def passed(case: dict) -> list[int]:
    """Frames that left the DUT in each trial of the limited case, which is as it should be."""
    [play] = case["paced"]
    assert (case["problems"], play["problems"]) == ([], [])
    assert play["received"] == play["offered"] == play["taken"]
    return [trial["forwarded"]["flood"] for trial in play["trials"]]


@contextlib.contextmanager
def busy() -> Iterator[None]:
    """One more busy loop than the host has cores."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range((os.cpu_count() or 1) + 1)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def the_player(deadline_s: float = 300.0) -> psutil.Process:
    """The player of the machines of these tests, once it runs."""
    qemu = qemu_of(TOPOLOGY.ports.address, ssh_port("dut"))
    until = time.monotonic() + deadline_s
    while time.monotonic() < until:
        for process in psutil.process_iter(["cmdline"]):
            if any(word.endswith("pacing/player.py") for word in process.info["cmdline"] or []):
                with contextlib.suppress(psutil.Error, OSError):
                    status = Path(f"/proc/{qemu}/task").iterdir()
                    traced = [line for task in status for line in (task / "status").read_text().splitlines()]
                    if f"TracerPid:\t{process.pid}" in traced:
                        return process
        time.sleep(0.05)
    raise AssertionError("no player")


@pytest.mark.usefixtures("folder")
def test_a_limit_lets_its_rate_through_on_an_idle_host_and_on_a_busy_one(lab: Checkout) -> None:
    idle = passed(measured(lab, "limited")["limited"])
    with busy():
        again = passed(measured(lab, "limited")["limited"])
    print(idle, again)
    for count in idle + again:
        assert count == pytest.approx(LIMIT * 0.5, abs=2)


@pytest.mark.usefixtures("folder")
def test_the_limits_of_all_tools_let_their_rate_through(lab: Checkout) -> None:
    found = measured(lab, "meter", "hashlimit", "police")
    counts = {name: passed(found[name]) for name in ("meter", "hashlimit", "police")}
    print(counts)
    for each in counts.values():
        for count in each:
            assert count == pytest.approx(LIMIT * 0.5, abs=2)


@pytest.mark.usefixtures("folder")
def test_a_host_that_sleeps_in_the_middle_changes_nothing(lab: Checkout) -> None:
    running = lab.start(*lab.fwlab_command("run", ID, "plain", "limited", "--machines", STAND, "--json"))
    player = the_player()
    time.sleep(0.3)
    player.send_signal(signal.SIGSTOP)
    time.sleep(3)
    player.send_signal(signal.SIGCONT)
    assert running.wait(timeout=600) == 0
    run = json.loads(Path(lab.top / "reports" / ID / "run.json").read_text())
    for count in passed(next(case for case in run["cases"] if case["id"] == "limited")):
        assert count == pytest.approx(LIMIT * 0.5, abs=2)


@pytest.mark.usefixtures("folder")
def test_a_player_that_dies_gives_no_figure_and_leaves_the_dut_running(lab: Checkout) -> None:
    running = lab.start(*lab.fwlab_command("run", ID, "plain", "limited", "--machines", STAND, "--json"))
    the_player().kill()
    running.wait(timeout=600)
    run = json.loads(Path(lab.top / "reports" / ID / "run.json").read_text())
    limited = next(case for case in run["cases"] if case["id"] == "limited")
    assert limited["remeasured_because"] or limited["problems"], "the first play has no figure"
    assert passed(measured(lab, "limited")["limited"])


@pytest.mark.usefixtures("folder")
def test_nothing_passes_a_drop_and_throughput_is_nearly_the_capacity(lab: Checkout) -> None:
    found = measured(lab, "nothing-passes", "throughput")
    assert passed(found["nothing-passes"]) == [0, 0, 0]
    capacity = sorted(trial["processed"] / trial["busy_s"] * 4 for trial in found["plain"]["trials"])[1]
    [search] = found["throughput"]["benchmarks"]["searches"]
    lower = next(goal["lower"] for goal in search["goals"] if goal["loss_ratio"] == 0)
    print(capacity, lower)
    assert 0.99 * capacity < lower < 1.01 * capacity


@pytest.mark.usefixtures("folder")
def test_nothing_is_left_attached(lab: Checkout) -> None:
    measured(lab, "limited")
    monitor = Monitor(domain_of(qemu_of(TOPOLOGY.ports.address, ssh_port("dut"))))
    names = [wires.HOLD, wires.HOLD_TICK, wires.TICKS, *wires.RECORDERS]
    gone = monitor.commands(*(("object-del", {"id": name}) for name in names))
    assert len(gone) == len(names), gone
    assert lab.run("dut", "ps -eo cls,comm | grep -c IDL || true").strip() == "0"
