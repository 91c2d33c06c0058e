# SPDX-License-Identifier: GPL-2.0-or-later
"""Which kinds of files, and which of their settings, an exercise accepts."""

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

NO_QUEUE = "qdisc replace dev eth1 root noqueue"
DROPS = "qdisc add dev eth0 handle ffff: ingress\nfilter add dev eth0 ingress matchall action drop\n"
REDIRECT = "filter add dev eth0 ingress matchall action mirred egress redirect dev eth1"
#: In lab02's ex5, cheaper packets would make up for a hash that is too small.
TABLE = "# one\n-net.netfilter.nf_conntrack_max = 1\nnet/netfilter/nf_conntrack_buckets=2\n"


@pytest.mark.parametrize(
    ("lab", "exercise", "name", "text", "said"),
    [
        # Without a queue each packet costs less, whatever else a ruleset does: a queue is a setting, a filter a rule.
        ("lab01-forwarding", "ex6-budget", "a.tc", f"{NO_QUEUE}\n", None),
        ("lab01-forwarding", "ex5-download", "a.tc", f"{NO_QUEUE}\n", f"does not allow `{NO_QUEUE}`: such settings"),
        (
            "lab01-forwarding",
            "ex5-download",
            "a.tc",
            "qdisc replace dev eth1 \\\n  parent ffff:ffff noqueue\n",
            "does not allow `qdisc replace dev eth1 parent ffff:ffff noqueue`: such settings",
        ),
        ("lab01-forwarding", "ex5-download", "a.tc", f"# {NO_QUEUE}\nqdisc add dev eth0 clsact\n", None),
        ("lab01-forwarding", "ex5-download", "a.tc", DROPS, None),
        ("lab01-forwarding", "ex3-tuning", "a.tc", DROPS, "is about *.routes and *.sysctl files and accepts no rules"),
        # Packets that must pass would cost less if they went past routing.
        ("lab01-forwarding", "ex6-budget", "a.nft", "add rule netdev x y fwd to eth1\n", "does not allow `add rule"),
        ("lab01-forwarding", "ex6-budget", "a.nft", "table netdev x {\n fwd \\\n to eth1\n}\n", "allow `fwd \\"),
        ("lab01-forwarding", "ex6-budget", "a.nft", 'add rule ip x fwd jump dup comment "fwd to eth1"\n', None),
        ("lab01-forwarding", "ex6-budget", "a.tc", f"{REDIRECT}\n", "does not allow `filter add dev eth0"),
        (
            "lab01-forwarding",
            "ex6-budget",
            "a.tc",
            "actions add action mirred \\\n egress redirect dev eth1 index 1\n",
            "does not allow `actions add action mirred",
        ),
        ("lab02-conntrack", "ex5-table", "a.sysctl", TABLE, None),
        *(
            ("lab02-conntrack", "ex5-table", "a.sysctl", TABLE + line, "allows net.netfilter.*, not net.")
            for line in ("net.ipv4.ip_early_demux = 0\n", "-net/ipv4/ip_early_demux=0\n")
        ),
        # A set would answer what a thousand rules are asked.
        ("lab03-ipset", "ex2-thousand-rules", "a.iptables", "*raw\nCOMMIT\n", None),
        (
            "lab03-ipset",
            "ex2-thousand-rules",
            "a.ipset",
            "create a hash:ip\n",
            "is about *.iptables files and accepts no other rules",
        ),
    ],
)
def test_what_an_exercise_accepts(lab: str, exercise: str, name: str, text: str, said: str | None) -> None:
    files = [ruleset_file(name, text)]
    if said is None:
        reject_settings(lab_named(lab).exercise(exercise), files)
        return
    with pytest.raises(BadInput) as refused:
        reject_settings(lab_named(lab).exercise(exercise), files)
    assert refused.value.message.startswith(f"{name}: {exercise} ")
    assert said in refused.value.message


def test_an_exercise_accepts_kinds_of_settings_that_are_registered(tmp_path: Path) -> None:
    lab = tmp_path / "labs" / "lab01-forwarding"
    shutil.copytree(ROOT / "labs" / lab.name, lab, ignore=shutil.ignore_patterns("work"))
    text = (lab / "lab.yml").read_text()
    assert "settings: [ethtool" in text
    assert any(exercise.settings for exercise in load_lab(Project(tmp_path), lab.name).exercises)
    (lab / "lab.yml").write_text(text.replace("settings: [ethtool", "settings: [nft"))
    known = "ethtool, nic, routes, rps, sysctl, tc"
    with pytest.raises(BadInput, match=f"unknown kind of settings 'nft'; known kinds: {known}"):
        load_lab(Project(tmp_path), lab.name)
