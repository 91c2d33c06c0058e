# SPDX-License-Identifier: GPL-2.0-or-later
"""Ordinary rulesets, one for each feature: each is loaded, is there, and is cleared away without a trace.

Each file of tests/corpus/ruleset-features (or folder, where several belong together) says what it brings: `# holds: N`
rules, entries and routes, or `# shows: TEXT` that the DUT's tools print then and not before. A few are tried by
default; with --whole-corpus all of them.

FWLAB_LIVE_CHECKOUT=FOLDER takes the machines of lab03-ipset that are up in that checkout, by its own FWLAB_PORT_OFFSET.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from fwlab.logic.render import ruleset_file
from fwlab.outside.dut import LinuxDut
from fwlab.outside.project import Project, load_topology
from fwlab.outside.ssh import Ssh, write_ssh_config
from fwlab.words.errors import CannotMeasure
from fwlab.words.ruleset import RulesetFile, in_loading_order

from .conftest import OFFSET, ROOT, STAND
from .snapshot import differences, held, snapshot

pytestmark = pytest.mark.live

CORPUS = ROOT / "tests" / "corpus" / "ruleset-features"
#: One of each kind, and those that need the most clearing up.
SAMPLE = (
    *("named-set.nft", "flowtable.nft", "netdev-egress.nft", "masquerade.nft", "bridge.nft", "synproxy.nft"),
    *("match-hashlimit.iptables", "ipv6-prefix-translation.ip6tables", "nft-old-match.iptables-nft"),
    *("list-of-sets.ipset", "gate.tc"),
    *("flower-ct.tc", "sample.tc", "shared-block.tc", "qdisc-htb.tc", "congestion-control.sysctl", "no-ipv6.sysctl"),
    *("route-replaced.routes", "both-links.ethtool", "source.xdp-filter", "every-kind"),
)
#: IPv6 addresses that come back are tried for a moment before they hold.
SETTLED_S = 8


def every_ruleset() -> list[str]:
    return sorted(path.name for path in CORPUS.iterdir())


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "ruleset" in metafunc.fixturenames:
        whole = metafunc.config.getoption("--whole-corpus")
        metafunc.parametrize("ruleset", every_ruleset() if whole else SAMPLE)


@dataclass
class Dut:
    """`state` is what the DUT was seen to be last: whatever differs after a ruleset is that one's doing."""

    ssh: Ssh
    agent: LinuxDut
    state: str


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
            agent.hello()
            agent.reset()
            yield Dut(ssh, agent, snapshot(ssh))
    finally:
        ssh.close()
        patch.undo()


def files_of(ruleset: str) -> list[RulesetFile]:
    path = CORPUS / ruleset
    paths = sorted(path.iterdir()) if path.is_dir() else [path]
    return in_loading_order([ruleset_file(one.name, one.read_text()) for one in paths])


def test_is_loaded_and_cleared_away(dut: Dut, ruleset: str) -> None:
    before, files = dut.state, files_of(ruleset)
    said = "\n".join(file.text for file in files)
    try:
        dut.agent.load(files)
        loaded = snapshot(dut.ssh)
    finally:
        left = dut.agent.reset()
        dut.state = _settled(dut.ssh, before)
    holds = sum(map(int, re.findall(r"^# holds: (\d+)$", said, re.MULTILINE)))
    if "# holds:" in said:
        assert held(loaded) == holds
    came = "\n".join(line for line in differences(before, loaded) if line[0] == "+")
    for text in re.findall(r"^# shows: (.*)$", said, re.MULTILINE):
        assert text in came, came[-3000:]
    assert left == []
    assert differences(before, dut.state) == []


def _settled(ssh: Ssh, before: str) -> str:
    """What the DUT is once it is as before, or will not be."""
    deadline = time.monotonic() + SETTLED_S
    while True:
        try:
            now = snapshot(ssh)
        except CannotMeasure as lost:
            pytest.exit(f"the DUT was lost: {lost}", returncode=3)
        if now == before or time.monotonic() > deadline:
            return now
        time.sleep(1)
