# SPDX-License-Identifier: GPL-2.0-or-later
"""Students' rulesets that cannot be measured, on real machines: each gets a message, and nothing of it stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import LAB, STAND, Checkout, document

pytestmark = pytest.mark.live

EXERCISE = "ex1-one-host"


def hand_in(lab: Checkout, name: str, text: str, of: str = LAB, exercise: str = EXERCISE) -> None:
    work = lab.top / "labs" / of / "work" / exercise
    work.mkdir(parents=True, exist_ok=True)
    for old in work.iterdir():
        old.unlink()
    (work / name).write_text(text)


def test_a_refused_ruleset_shows_the_tools_error_and_is_undone(lab: Checkout) -> None:
    hand_in(lab, "rules.iptables", "*raw\n-A PREROUTING -j NOSUCHTARGET\nCOMMIT\n")
    (lab.top / "labs" / LAB / "work" / EXERCISE / "a.ipset").write_text("create half hash:ip\n")
    done = lab.fwlab("check", LAB, EXERCISE, "--json")
    assert done.returncode == 1, done.stderr
    reasons = " ".join(check["text"] for exercise in document(done)["exercises"] for check in exercise["checks"])
    assert "rules.iptables: iptables-legacy-restore said" in reasons
    assert "NOSUCHTARGET" in reasons
    assert lab.run("dut", "sudo sh -c 'lsmod | grep -c ^ip_set || true'").strip() == "0"


def test_a_ruleset_that_cuts_off_management_is_removed(lab: Checkout) -> None:
    hand_in(lab, "rules.iptables", "*raw\n-A PREROUTING -j DROP\nCOMMIT\n")
    done = lab.fwlab("check", LAB, EXERCISE, "--json")
    assert done.returncode == 1, done.stderr
    assert "blocks the DUT's management" in done.stdout
    assert lab.run("dut", "hostname").strip() == "dut"


def test_a_ruleset_that_lets_no_new_login_in_is_refused(lab: Checkout) -> None:
    """The open connection works, so the DUT is not cut off. A check and `hold` say the same."""
    hand_in(lab, "rules.iptables", "*filter\n-A INPUT -p tcp --syn -j DROP\nCOMMIT\n")
    checked, held = lab.fwlab("check", LAB, EXERCISE, "--json"), lab.fwlab("hold", LAB, EXERCISE, "--", "true")
    for done, output in ((checked, checked.stdout), (held, held.stderr)):
        assert done.returncode == 1, done.stderr
        assert "the ruleset blocks new logins" in output
    assert lab.run("dut", "sudo nft list ruleset").strip() == ""


@pytest.mark.thorough
def test_a_limit_on_connections_is_no_way_to_stay_undecided(lab: Checkout) -> None:
    limited = """table ip t {
    chain c {
        type filter hook forward priority 0; policy accept;
        tcp flags syn ct state new limit rate 2/second accept
        tcp flags syn ct state new drop
    }
}
"""
    hand_in(lab, "rules.nft", limited, "lab02-conntrack", "ex7-ten-rules")
    done = lab.fwlab("check", "lab02-conntrack", "ex7-ten-rules", "--machines", STAND, "--json")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "it could not be measured with this ruleset, twice, and could in between without it" in done.stdout
    assert "a limit in the ruleset may be the cause" in done.stdout


def test_a_submission_is_not_executed(lab: Checkout) -> None:
    """A student's file reaches its tool unchanged: no template is rendered and no shell runs."""
    hand_in(lab, "rules.iptables", "*raw\n-A PREROUTING -s {{ 7*7 }} -j DROP $(touch /tmp/pwned)\nCOMMIT\n")
    done = lab.fwlab("check", LAB, EXERCISE, "--json")
    assert done.returncode == 1
    assert lab.run("dut", "ls /tmp").find("pwned") == -1
    assert not Path("/tmp/pwned").exists()
