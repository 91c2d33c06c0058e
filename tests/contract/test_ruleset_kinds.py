# SPDX-License-Identifier: GPL-2.0-or-later
"""The registry of ruleset kinds fails closed: no kind without validation, a loader or a check of the kernel's state."""

from __future__ import annotations

import re
import shutil
import zipfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fwlab.host.project import Project
from fwlab.measure.labs import load_lab
from fwlab.measure.plan import reject_settings
from fwlab.model.errors import BadInput
from fwlab.model.registry import IncompleteKind, Registry, discover, required_by
from fwlab.model.ruleset import RulesetFile
from fwlab.rulesets.kind import RulesetKind
from fwlab.rulesets.kinds.nft import KIND as NFT
from fwlab.rulesets.registry import KINDS, with_distinct_suffixes
from fwlab.rulesets.render import ruleset_file
from fwlab.rulesets.validation import validate
from tests import ROOT

#: A line of each kind that must not be loaded.
REFUSED = {
    "nic": "ne2k_pci",
    "ethtool": "eth2 -K gro off",
    "rps": "eth2 rx-0 rps_cpus 1",
    "routes": "route add default dev eth0",
    "ipset": "save -f /etc/passwd",
    "iptables": "-A INPUT -M /bin/sh",
    "ip6tables": "-A INPUT -M /bin/sh",
    "iptables-nft": "-A INPUT -M /bin/sh",
    "nft": 'include "/etc/shadow"',
    "tc": "exec bpf import /tmp/x",
    "xdp-filter": "unload --all",
    "xdp-table": "table eth0 pinned /sys/fs/bpf/x drop",
    "pf": 'include "/etc/shadow"',
    "sysctl": "kernel.core_pattern = |/bin/sh",
}


def test_every_kind_is_validated() -> None:
    assert set(REFUSED) == set(KINDS)
    for name, line in REFUSED.items():
        suffix = KINDS[name].suffix
        with pytest.raises(BadInput, match=":1: "):
            ruleset_file(f"rules{suffix}" if suffix.startswith(".") else suffix, line + "\n")


def test_a_file_of_an_unknown_kind_is_not_passed_unchecked() -> None:
    with pytest.raises(KeyError):
        validate(RulesetFile("rules.x", "no-such-kind", "anything\n"))


@pytest.mark.parametrize("lacking", required_by(RulesetKind))
def test_a_kind_that_lacks_anything_is_refused(lacking: str) -> None:
    half = SimpleNamespace(**{name: getattr(NFT, name) for name in required_by(RulesetKind) if name != lacking})
    with pytest.raises(IncompleteKind, match=f"ruleset kind in some.module: {lacking} missing"):
        Registry("ruleset kind", [("some.module", half)], required_by(RulesetKind))


def test_a_file_belongs_to_one_kind() -> None:
    other: RulesetKind = replace(NFT, name="other", suffix=".my.nft")
    with pytest.raises(IncompleteKind, match=r"ruleset kinds other and nft both claim \*\.my\.nft"):
        with_distinct_suffixes(Registry("ruleset kind", [("a", NFT), ("b", other)], required_by(RulesetKind)))


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Make a package of modules, in a folder or in a zip file."""

    def make(name: str, zipped: bool, **modules: str) -> str:
        texts = {f"{name}/__init__.py": "", **{f"{name}/{module}.py": text for module, text in modules.items()}}
        if zipped:
            with zipfile.ZipFile(tmp_path / f"{name}.zip", "w") as archive:
                for path, text in texts.items():
                    archive.writestr(path, text)
            monkeypatch.syspath_prepend(tmp_path / f"{name}.zip")
        else:
            (tmp_path / name).mkdir()
            for path, text in texts.items():
                (tmp_path / path).write_text(text)
            monkeypatch.syspath_prepend(tmp_path)
        return name

    return make


@pytest.mark.parametrize("zipped", [False, True])
def test_kinds_are_found_in_a_folder_and_in_a_zip_file(package: Any, zipped: bool) -> None:
    kind = "from types import SimpleNamespace\nKIND = SimpleNamespace(name={!r}, position={})\n"
    name = f"found_{'zipped' if zipped else 'plain'}"
    package(name, zipped, late=kind.format("late", 2), early=kind.format("early", 1), helper="")
    found: Registry[Any] = discover("kind", name, "KIND", None, object)
    assert list(found) == ["early", "late"]
    assert dict(found.origins) == {"early": f"{name}.early", "late": f"{name}.late"}


def test_settings_of_the_machine_are_loaded_first_or_last() -> None:
    """A link that is set up loses its filters, and only a rule creates the settings of connection tracking."""
    settings = [name for name, kind in KINDS.items() if kind.machine_setting]
    first, last = [name for name in settings if name != "sysctl"], ["sysctl"]
    assert list(KINDS)[: len(first)] == first
    assert list(KINDS)[-1:] == last


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
    """With half of lab01's ex3 and no queue, each packet cost less than in the whole task."""
    exercises = {exercise.id: exercise for exercise in load_lab(Project(ROOT), "lab01-forwarding").exercises}
    files = [ruleset_file("a.tc", text)]
    reject_settings(exercises["ex6-budget"], files)
    if line is None:
        reject_settings(exercises["ex5-download"], files)
        with pytest.raises(BadInput, match=re.escape("a.tc: ex3-tuning is about *.sysctl files and accepts no rules")):
            reject_settings(exercises["ex3-tuning"], files)
    else:
        with pytest.raises(BadInput, match=re.escape(f"a.tc: ex5-download does not allow `{line}`: such settings")):
            reject_settings(exercises["ex5-download"], files)


@pytest.mark.parametrize(
    "line", ["net.ipv4.ip_early_demux = 0", "-net/ipv4/ip_early_demux=0", "net.core.bpf_jit_enable = 1"]
)
def test_an_exercise_may_accept_only_some_settings(line: str) -> None:
    """In lab02's ex5, cheaper packets would make up for a hash that is too small."""
    exercises = {exercise.id: exercise for exercise in load_lab(Project(ROOT), "lab02-conntrack").exercises}
    allowed = "# one\n-net.netfilter.nf_conntrack_max = 1\nnet/netfilter/nf_conntrack_buckets=2\n"
    reject_settings(exercises["ex5-table"], [ruleset_file("a.sysctl", allowed)])
    with pytest.raises(BadInput, match=re.escape("a.sysctl: ex5-table allows net.netfilter.*, not net.")):
        reject_settings(exercises["ex5-table"], [ruleset_file("a.sysctl", f"{allowed}{line}\n")])


def test_an_exercise_may_accept_only_some_kinds_of_rules() -> None:
    """A set would answer what a thousand rules are asked."""
    exercises = {exercise.id: exercise for exercise in load_lab(Project(ROOT), "lab03-ipset").exercises}
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
