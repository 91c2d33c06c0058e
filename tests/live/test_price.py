# SPDX-License-Identifier: GPL-2.0-or-later
"""`fwlab price` and `fwlab compare` on the DUT's kernel."""

from __future__ import annotations

import itertools
import json
import subprocess
from pathlib import Path

import pytest

from tests.unit.own.pairs import DIFFERENT, EQUAL, Rules

from .conftest import LAB, Checkout, document

pytestmark = pytest.mark.live

#: One of each: a border, a state, NAT, a limit.
PLANTED = ("upper border of a port range", "a missing state", "order of NAT", "another burst")
SAME = ("iptables translated to nft", "masquerade in two tools")
LIST = "table ip f {{\nchain c {{\ntype filter hook forward priority 0; policy accept;\n{}}}\n}}\n"


def compare(lab: Checkout, folder: Path, old: Rules, new: Rules, *words: str) -> subprocess.CompletedProcess[str]:
    for name, given in (("old", old), ("new", new)):
        (folder / name).write_text(given.text)
    files = (str(folder / "old"), str(folder / "new"))
    return lab.fwlab("compare", *files, "--machines", lab.name, "--json", *words)


def price(lab: Checkout, path: Path, text: str, *words: str) -> dict:
    path.write_text(text)
    return document(lab.fwlab("price", str(path), "--machines", lab.name, "--json", *words))


def linear(count: int) -> str:
    return LIST.format("".join(f"ip saddr 10.0.{n >> 8}.{n & 255} drop\n" for n in range(count)))


def policy(found: dict) -> dict:
    [one] = [one for one in found["classes"] if one["decided_by"].startswith("policy")]
    return one


@pytest.mark.parametrize("name", SAME)
def test_equal_rulesets_do_not_differ(lab: Checkout, tmp_path: Path, name: str) -> None:
    done = compare(lab, tmp_path, *EQUAL[name], "--at-most", "1000%")
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert found["old"]["reached"] == found["old"]["rules"]
    assert found["prices"]["classes"]


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_difference_is_found(lab: Checkout, tmp_path: Path, name: str) -> None:
    planted = DIFFERENT[name]
    done = compare(lab, tmp_path, planted.old, planted.new, "--no-price")
    assert done.returncode == 1, done.stdout + done.stderr
    sides = [(json.dumps(one["old"]), json.dumps(one["new"])) for one in json.loads(done.stdout)["differences"]]
    assert any(planted.explained_old in old and planted.explained_new in new for old, new in sides)


def test_prices_repeat(lab: Checkout, tmp_path: Path) -> None:
    first, second = (price(lab, tmp_path / "rules", linear(100)) for _ in range(2))
    for one, other in zip(first["classes"], second["classes"], strict=True):
        assert one["decided_by"] == other["decided_by"]
        assert one["instructions"] == pytest.approx(other["instructions"], rel=0.003), one["decided_by"]
    rules = [one["instructions"] for one in first["classes"] if not one["decided_by"].startswith("policy")]
    assert all(60 < later - earlier < 80 for earlier, later in itertools.pairwise(rules)), rules
    # The dearest class is the policy's: its packet is compared with all rules, and stretches divide these evenly.
    whole = [one for one in policy(first)["stretches"] if one["from"].startswith("c ")]
    assert sum(one["rules"] for one in whole) == 100
    assert all(60 < one["instructions"] / one["rules"] < 80 for one in whole[1:]), whole


def test_other_forms_changes_and_the_page(lab: Checkout, tmp_path: Path) -> None:
    sources = "".join(f"[{n}:0] -A FORWARD -s 10.0.0.{n}/32 -j DROP\n" for n in range(1, 41))
    text = f"*filter\n:FORWARD ACCEPT [0:0]\n{sources}[900:0] -A FORWARD -p udp -j ACCEPT\nCOMMIT\n"
    html = tmp_path / "page.html"
    found = price(lab, tmp_path / "rules", text, "--forms", "--changes", "--html", str(html))
    forms = {one["form"]: one for one in found["forms"]}
    assert not [one for one in forms.values() if one.get("reason") or one.get("other_classes")], forms
    # Forty rules of nft become one that looks into a set.
    assert forms["nft --optimize"]["mean"] < 0.85 * forms["the same without the counters that it adds"]["mean"]
    changes = {one["change"]: one for one in found["changes"]}
    assert changes["runs of rules as sets (ipset)"]["dearer"] < -0.1
    assert not changes["runs of rules as sets (ipset)"]["differences"]
    assert "tun_get_user" in html.read_text()


def test_a_rule_costs_what_capacity_says(lab: Checkout, tmp_path: Path) -> None:
    """The slope of a list, by single packets here and under overload in lab03."""
    cheap, dear = (policy(price(lab, tmp_path / "rules", linear(count))) for count in (100, 1000))
    each = (dear["instructions"] - cheap["instructions"]) / 900
    cases = document(lab.fwlab("run", LAB, "nft-rules-64", "nft-rules-1024", "--machines", lab.name, "--json"))["cases"]
    costs = {case["id"]: 1e9 / case["median"] for case in cases}
    assert each == pytest.approx((costs["nft-rules-1024"] - costs["nft-rules-64"]) / 960, rel=0.03)


def test_the_dut_is_in_its_start_state_afterwards(lab: Checkout) -> None:
    assert "nft_chain" not in lab.run("dut", "lsmod")
    assert not lab.run("dut", "sudo nft list ruleset").strip()
    case = document(lab.fwlab("run", LAB, "raw-drop", "--machines", lab.name, "--json"))["cases"][0]
    assert case["verdict"] == "pass", case
