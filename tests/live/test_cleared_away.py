# SPDX-License-Identifier: GPL-2.0-or-later
"""Load rulesets, one per feature, check that each takes effect, and that a reset removes it completely.

The rulesets of tests/corpus state their effects. By default a sample is tested, with --whole-corpus all of them.

FWLAB_LIVE_CHECKOUT=FOLDER uses the running machines of lab03-ipset in that checkout, with its FWLAB_PORT_OFFSET.
"""

from __future__ import annotations

import datetime
import json
import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from fwlab.checkout.project import Project, load_topology
from fwlab.dut.linux.client import LinuxDut
from fwlab.host.ssh import Ssh, write_ssh_config
from fwlab.model.errors import CannotMeasure, Refused
from fwlab.model.ruleset import RulesetFile
from fwlab.rulesets.files import ruleset_file
from fwlab.rulesets.registry import in_loading_order
from tests.corpus import linux_rulesets

from .conftest import OFFSET, ROOT, STAND
from .snapshot import SEEN_IN, differences, held, snapshot

pytestmark = pytest.mark.live

CORPUS = linux_rulesets()
#: One of each kind, and those that are hardest to undo.
SAMPLE = (
    *("named-set.nft", "flowtable.nft", "netdev-egress.nft", "masquerade.nft", "bridge.nft", "synproxy.nft"),
    *("match-hashlimit.iptables", "ipv6-prefix-translation.ip6tables", "nft-old-match.iptables-nft"),
    *("list-of-sets.ipset", "gate.tc"),
    *("flower-ct.tc", "sample.tc", "shared-block.tc", "qdisc-htb.tc", "congestion-control.sysctl", "no-ipv6.sysctl"),
    *("route-replaced.routes", "both-links.ethtool", "source.xdp-filter", "every-structure.xdp-table", "every-kind"),
)
#: So many rulesets are loaded in turn before the DUT's full state is compared: of the sample, and of the whole corpus.
TOGETHER, TOGETHER_OF_ALL = 11, 10
#: Seconds. Restored IPv6 addresses first go through duplicate address detection.
SETTLED_S = 8


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "rulesets" in metafunc.fixturenames:
        whole = metafunc.config.getoption("--whole-corpus")
        names, size = (tuple(CORPUS), TOGETHER_OF_ALL) if whole else (SAMPLE, TOGETHER)
        groups = [tuple(names[place : place + size]) for place in range(0, len(names), size)]
        metafunc.parametrize("rulesets", groups, ids=lambda group: f"{group[0]}-{group[-1]}")


@dataclass
class Dut:
    """The DUT under test.

    `state` is its last known state, against which the next ruleset is compared; `wrong` lists each ruleset's faults.
    """

    ssh: Ssh
    agent: LinuxDut
    state: dict[str, str]
    wrong: dict[str, list[str]] = field(default_factory=dict)


@pytest.fixture(scope="module")
def dut(request: pytest.FixtureRequest) -> Iterator[Dut]:
    patch = pytest.MonkeyPatch()
    stands = os.environ.get("FWLAB_LIVE_CHECKOUT")
    top = Path(stands) if stands else request.getfixturevalue("lab").top
    if not stands:
        patch.setenv("FWLAB_PORT_OFFSET", str(OFFSET))
    project = Project(top)
    ssh = Ssh(write_ssh_config(project, load_topology(project), int(STAND[3:5]), STAND), "dut")
    try:
        with LinuxDut(ssh, ["eth0", "eth1"]) as agent:
            facts = agent.facts()
            agent.reset()
            made = Dut(ssh, agent, snapshot(ssh))
            yield made
            if request.config.getoption("--whole-corpus"):
                keep(made.wrong, facts["kernel"])
    finally:
        ssh.close()
        patch.undo()


def keep(wrong: dict[str, list[str]], kernel: str) -> None:
    """Write reports/corpus/cleared-away.json, in the form of the file in results/."""
    kept = {"date": datetime.date.today().isoformat(), "kernel": kernel, "rulesets": len(wrong), "wrong": wrong}
    path = ROOT / "reports" / "corpus" / "cleared-away.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(kept, indent=1) + "\n")


def files_of(ruleset: str) -> list[RulesetFile]:
    return in_loading_order([ruleset_file(name, text) for name, text in CORPUS[ruleset].items()])


def test_is_loaded_and_removed(dut: Dut, rulesets: tuple[str, ...]) -> None:
    for ruleset in rulesets:
        dut.wrong[ruleset] = tried(dut, ruleset)
    before, dut.state = dut.state, settled(dut.ssh, dut.state)
    left = differences(before, dut.state)
    if left and len(rulesets) == 1:
        dut.wrong[rulesets[0]] += [f"leaves {line}" for line in left]
    for ruleset in rulesets if left and len(rulesets) > 1 else ():
        dut.wrong[ruleset] += [f"leaves {line}" for line in left_by(dut, ruleset)]
    assert left == []
    assert not any(dut.wrong[ruleset] for ruleset in rulesets), dut.wrong


def tried(dut: Dut, ruleset: str) -> list[str]:
    """Load a ruleset, check its effect and remove it. Returns its faults."""
    wrong, files = [], files_of(ruleset)
    said = "\n".join(file.text for file in files)
    try:
        dut.agent.load(files)
        loaded = snapshot(dut.ssh, dict.fromkeys(part for file in files for part in SEEN_IN[file.kind]))
    except Refused as refused:
        return [f"refused: {refused.message}"]
    finally:
        wrong += [f"left: {name}" for name in dut.agent.reset()]
    holds = sum(map(int, re.findall(r"^# holds: (\d+)$", said, re.MULTILINE)))
    if held(loaded) != holds:
        wrong.append(f"held {held(loaded)}, not {holds}")
    came = "\n".join(line for line in differences(dut.state, loaded) if line[0] == "+")
    shows = re.findall(r"^# shows: (.*)$", said, re.MULTILINE)
    wrong += [f"does not show {text!r} but {came[-600:]}" for text in shows if text not in came]
    return wrong


def left_by(dut: Dut, ruleset: str) -> list[str]:
    """What this ruleset leaves behind, rather than another one of its group."""
    before = dut.state
    tried(dut, ruleset)
    dut.state = settled(dut.ssh, before)
    return differences(before, dut.state)


def settled(ssh: Ssh, before: dict[str, str]) -> dict[str, str]:
    """The DUT's state once it equals `before`, or after SETTLED_S."""
    deadline = time.monotonic() + SETTLED_S
    while True:
        try:
            now = snapshot(ssh)
        except CannotMeasure as lost:
            pytest.exit(f"lost the DUT: {lost}", returncode=3)
        if now == before or time.monotonic() > deadline:
            return now
        time.sleep(1)
