# SPDX-License-Identifier: GPL-2.0-or-later
"""Which kinds of files, and which of their settings, an exercise accepts."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from fwlab.checkout.project import Project
from fwlab.measure.labs import load_lab
from fwlab.measure.plan import reject_settings
from fwlab.model.errors import BadInput
from fwlab.rulesets.files import ruleset_file
from tests import ROOT
from tests.checkout import lab_named


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("qdisc replace dev eth1 root noqueue\n", "qdisc replace dev eth1 root noqueue"),
        ("qdisc replace dev eth1 \\\n  parent ffff:ffff noqueue\n", "qdisc replace dev eth1 parent ffff:ffff noqueue"),
        ("# qdisc add dev eth1 root noqueue\nqdisc add dev eth0 clsact\n", None),
        ("qdisc add dev eth0 handle ffff: ingress\nfilter add dev eth0 ingress matchall action drop\n", None),
    ],
)
def test_a_queue_is_a_setting_and_a_filter_is_a_rule(text: str, line: str | None) -> None:
    """Without a queue, each packet costs less, whatever else a ruleset does."""
    exercises = {exercise.id: exercise for exercise in lab_named("lab01-forwarding").exercises}
    files = [ruleset_file("a.tc", text)]
    reject_settings(exercises["ex6-budget"], files)
    if line is None:
        reject_settings(exercises["ex5-download"], files)
        said = "a.tc: ex3-tuning is about *.routes and *.sysctl files and accepts no rules"
        with pytest.raises(BadInput, match=re.escape(said)):
            reject_settings(exercises["ex3-tuning"], files)
    else:
        with pytest.raises(BadInput, match=re.escape(f"a.tc: ex5-download does not allow `{line}`: such settings")):
            reject_settings(exercises["ex5-download"], files)


@pytest.mark.parametrize(
    "line", ["net.ipv4.ip_early_demux = 0", "-net/ipv4/ip_early_demux=0", "net.core.bpf_jit_enable = 1"]
)
def test_an_exercise_may_accept_only_some_settings(line: str) -> None:
    """In lab02's ex5, cheaper packets would make up for a hash that is too small."""
    exercises = {exercise.id: exercise for exercise in lab_named("lab02-conntrack").exercises}
    allowed = "# one\n-net.netfilter.nf_conntrack_max = 1\nnet/netfilter/nf_conntrack_buckets=2\n"
    reject_settings(exercises["ex5-table"], [ruleset_file("a.sysctl", allowed)])
    with pytest.raises(BadInput, match=re.escape("a.sysctl: ex5-table allows net.netfilter.*, not net.")):
        reject_settings(exercises["ex5-table"], [ruleset_file("a.sysctl", f"{allowed}{line}\n")])


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("a.nft", "add rule netdev x y ip saddr @z fwd ip to 198.19.0.2 device eth1\n", "add rule netdev x y"),
        ("a.nft", "table netdev x {\n chain y {\n  fwd \\\n to eth1\n }\n}\n", "fwd \\"),
        ("a.nft", 'add rule ip x fwd jump dup comment "fwd to eth1"\n', None),
        (
            "a.tc",
            "filter add dev eth0 ingress matchall action mirred egress redirect dev eth1\n",
            "filter add dev eth0",
        ),
        ("a.tc", "actions add action mirred \\\n egress redirect dev eth1 index 1\n", "actions add action mirred"),
    ],
)
def test_no_exercise_accepts_what_sends_packets_past_routing(name: str, text: str, line: str | None) -> None:
    """Packets that must pass would cost less, whatever else a ruleset does."""
    exercises = {exercise.id: exercise for exercise in lab_named("lab01-forwarding").exercises}
    files = [ruleset_file(name, text)]
    if line is None:
        reject_settings(exercises["ex6-budget"], files)
    else:
        with pytest.raises(BadInput, match=re.escape(f"{name}: ex6-budget does not allow `{line}")):
            reject_settings(exercises["ex6-budget"], files)


def test_an_exercise_may_accept_only_some_kinds_of_rules() -> None:
    """A set would answer what a thousand rules are asked."""
    exercises = {exercise.id: exercise for exercise in lab_named("lab03-ipset").exercises}
    reject_settings(exercises["ex2-thousand-rules"], [ruleset_file("a.iptables", "*raw\nCOMMIT\n")])
    said = "a.ipset: ex2-thousand-rules is about *.iptables files and accepts no other rules"
    with pytest.raises(BadInput, match=re.escape(said)):
        reject_settings(exercises["ex2-thousand-rules"], [ruleset_file("a.ipset", "create a hash:ip\n")])


def test_an_exercise_accepts_kinds_of_settings_that_are_registered(tmp_path: Path) -> None:
    root = ROOT
    lab = tmp_path / "labs" / "lab01-forwarding"
    shutil.copytree(root / "labs" / lab.name, lab, ignore=shutil.ignore_patterns("work"))
    text = (lab / "lab.yml").read_text()
    assert "settings: [ethtool" in text
    assert any(exercise.settings for exercise in load_lab(Project(tmp_path), lab.name).exercises)
    (lab / "lab.yml").write_text(text.replace("settings: [ethtool", "settings: [nft"))
    known = "ethtool, nic, routes, rps, sysctl, tc"
    with pytest.raises(BadInput, match=f"unknown kind of settings 'nft'; known kinds: {known}"):
        load_lab(Project(tmp_path), lab.name)
