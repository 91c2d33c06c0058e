# SPDX-License-Identifier: GPL-2.0-or-later
"""`fwlab hold` on real machines: counters go up, and the DUT is in its start state afterwards, however it ends."""

from __future__ import annotations

import re
import signal

import pytest

from .conftest import LAB, STAND, Checkout

pytestmark = pytest.mark.live

#: What is loaded on the DUT: tables, sets, and modules of rulesets. Asking loads the modules nf_tables and ip_set.
STATE = (
    "sudo sh -c 'nft list tables; ipset list -n; "
    'grep -oE "^(iptable_[a-z]+|xt_[a-z]+|ip_set_[a-z_]+|nf_conntrack) " /proc/modules || true\''
)
LOOK = "sudo iptables-legacy -t raw -vnxL PREROUTING"
#: A rule of its own, with a counter, in the student's folder.
COUNTED = "table ip f {\n chain c {\n  type filter hook prerouting priority -300;\n  iif eth0 counter drop\n }\n}\n"


def dropped(listing: str) -> list[int]:
    """The packets of the rule that drops the flood, in each of the listings."""
    return [int(found) for found in re.findall(r"^\s*(\d+)\s.*DROP +(?:17|udp) ", listing, re.MULTILINE)]


def test_counters_of_a_case_go_up_and_the_dut_is_reset(lab: Checkout) -> None:
    done = lab.fwlab("hold", LAB, "raw-drop", "--machines", STAND, "--", f"{LOOK}; sleep 3; {LOOK}")
    assert done.returncode == 0, done.stderr
    before, after = dropped(done.stdout)
    assert before > 0, done.stdout
    assert 0 < after - before <= 3000, "a trickle, and not a flood; on a busy host it is thinner"
    assert lab.run("dut", STATE).strip() == ""


@pytest.mark.thorough
def test_counters_of_an_exercise_go_up(lab: Checkout) -> None:
    work = lab.top / "labs" / LAB / "work" / "ex1-one-host"
    work.mkdir(parents=True, exist_ok=True)
    for old in work.iterdir():
        old.unlink()
    (work / "rules.nft").write_text(COUNTED)
    look = "sudo nft -a list ruleset"
    done = lab.fwlab("hold", LAB, "ex1-one-host", "--machines", STAND, "--", f"{look}; sleep 2; {look}")
    before, after = (int(found) for found in re.findall(r"counter packets (\d+)", done.stdout))
    assert 0 < before < after, done.stdout
    assert lab.run("dut", STATE).strip() == ""


@pytest.mark.thorough
def test_what_is_added_by_hand_is_removed(lab: Checkout) -> None:
    done = lab.fwlab("hold", LAB, "raw-drop", "--machines", STAND, "--", "sudo nft add table ip mine; exit 5")
    assert done.returncode == 5, done.stderr
    assert lab.run("dut", STATE).strip() == ""


@pytest.mark.thorough
def test_a_refused_ruleset_leaves_nothing_behind(lab: Checkout) -> None:
    work = lab.top / "labs" / LAB / "work" / "ex1-one-host"
    work.mkdir(parents=True, exist_ok=True)
    (work / "rules.nft").write_text("table ip f {\n chain c {\n  no such rule\n }\n}\n")
    done = lab.fwlab("hold", LAB, "ex1-one-host", "--machines", STAND, "--", "echo held")
    assert (done.returncode, done.stdout) == (1, "")
    assert "nft said" in done.stderr
    assert "next: correct the file" in done.stderr
    assert lab.run("dut", STATE).strip() == ""


@pytest.mark.parametrize(
    "number", [pytest.param(signal.SIGINT, marks=pytest.mark.thorough), signal.SIGTERM], ids=lambda n: n.name
)
def test_an_interrupt_resets_the_dut_and_leaves_machines_that_were_up(lab: Checkout, number: signal.Signals) -> None:
    command = ("hold", LAB, "ipset-1000", "--machines", STAND, "--", "echo held; sleep 6000")
    process = lab.start(*lab.fwlab_command(*command))
    try:
        assert process.stdout.readline() == "held\n", process.communicate()
        assert "blacklist" in lab.run("dut", STATE)
        process.send_signal(number)
        out, errors = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 130, out + errors
    assert "Traceback" not in errors
    assert lab.run("dut", f"{STATE}; pgrep sleep || true").strip() == ""
    assert set(lab.states().values()) == {"running"}
