# SPDX-License-Identifier: GPL-2.0-or-later
"""Other forms and changes of rules: what is made of their text, and how both are tried on this machine's kernel."""

from __future__ import annotations

import pytest

from fwlab.model.ruleset import RulesetFile
from fwlab.own.bench_client import here
from fwlab.own.changes import OPTIMIZED, SETS, STATE_FIRST, STATE_MOVED, WEIGHT, changes, made_of
from fwlab.own.forms import GIVEN, LEGACY, PLAIN, TRANSLATED, Form, forms
from fwlab.own.forms import OPTIMIZED as NFT_OPTIMIZED
from fwlab.own.layout import layout_of
from fwlab.own.prices import classes, price
from fwlab.own.reach import reach
from fwlab.own.showing import change_lines

from .kernel import bench, lacks

needs_kernel = pytest.mark.skipif(bool(lacks()), reason=lacks())

STATE = "-A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT"
SOURCES = [f"[{n}:0] -A FORWARD -s 10.0.0.{n}/32 -j DROP" for n in range(1, 7)]


def made(*rules: str) -> dict[str, list[RulesetFile]]:
    text = "\n".join(["*filter", ":FORWARD DROP [0:0]", *rules, "COMMIT", ""])
    return {title: files for title, files, _ in made_of([RulesetFile("r", "iptables", text)], "")}


def rules_in(files: list[RulesetFile]) -> list[str]:
    return [line for line in files[-1].text.splitlines() if "-A " in line]


def test_the_rule_for_established_connections_comes_first() -> None:
    assert rules_in(made(*SOURCES, STATE)[STATE_MOVED]) == [STATE, *SOURCES]
    assert STATE_MOVED not in made(STATE, *SOURCES)
    first, *others = rules_in(made(*SOURCES)[STATE_FIRST])
    assert (first, others) == ("-A FORWARD -m conntrack --ctstate ESTABLISHED -j ACCEPT", SOURCES)


def test_rules_of_one_verdict_are_ordered_by_their_counters() -> None:
    ordered = rules_in(made(*SOURCES[:3], STATE, *SOURCES[3:])[WEIGHT])
    assert ordered == [*SOURCES[2::-1], STATE, *SOURCES[:2:-1]]
    assert WEIGHT not in made(STATE, *SOURCES[::-1])


def test_a_run_of_rules_becomes_a_set() -> None:
    sets, rules = made(STATE, *SOURCES)[SETS]
    assert sets.text.splitlines()[1:] == [f"add fwlab0 10.0.0.{n}/32" for n in range(1, 7)]
    assert rules_in([rules]) == [STATE, "-A FORWARD -m set --match-set fwlab0 src -j DROP"]
    ports = [f"-A FORWARD -p tcp -m tcp --dport {n} -j ACCEPT" for n in range(4)]
    sets, rules = made(STATE, *ports)[SETS]
    assert "create fwlab0 bitmap:port range 0-65535" in sets.text
    assert rules_in([rules]) == [STATE, "-A FORWARD -p tcp -m set --match-set fwlab0 dst -j ACCEPT"]
    assert SETS not in made(STATE, *ports[:3])


LISTED = """table inet f { # handle 1
\tset bad { # handle 2
\t\ttype ipv4_addr
\t\telements = { 10.0.0.1,
\t\t\t     10.0.0.2 }
\t}

\tchain c { # handle 1
\t\ttype filter hook forward priority filter; policy drop;
\t\tip saddr { 10.0.0.3,
\t\t\t   10.0.0.4 } counter packets 3 bytes 9 drop # handle 4
\t\tip saddr @bad counter packets 5 bytes 9 drop # handle 5
\t\tct state established accept # handle 6
\t}
}
"""


def test_rules_of_nft_are_changed_in_what_nft_lists() -> None:
    given = [RulesetFile("r", "nft", "")]
    found = {title: files[0].text for title, files, _ in made_of(given, LISTED)}
    assert set(found) == {STATE_MOVED, WEIGHT, OPTIMIZED}
    plain = "\n".join(line.split(" # handle")[0] for line in LISTED.splitlines()) + "\n"
    *before, three, more, five, state, end, last = plain.splitlines()
    assert found[STATE_MOVED].splitlines() == [*before, state, three, more, five, end, last]
    assert found[WEIGHT].splitlines() == [*before, five, three, more, state, end, last]


SAVED = """*filter
:FORWARD DROP [0:0]
[5:0] -A FORWARD -p tcp -m tcp --dport 80 -j ACCEPT
[9:0] -A FORWARD -p tcp -m tcp --dport 81 -j ACCEPT
{}COMMIT
"""


def on_this_kernel(*more: str) -> list[Form]:
    files = [RulesetFile("r", "iptables", SAVED.format("".join(f"{line}\n" for line in more)))]
    with bench("r") as one, bench("bare") as bare:
        rules, layout = one.load(files), layout_of([one.load(files)])
        for each in (one, bare):
            each.prepare(layout)
        reached = reach(one, rules, layout, None, lambda _: None)
        prices = price(one, bare, rules, classes(reached), 1, lambda _: None)
        return forms(here, (one, bare), files, layout, prices, 1, lambda _: None)


@needs_kernel
def test_the_same_rules_are_priced_in_each_form_that_the_tools_make() -> None:
    found = on_this_kernel()
    assert [one.name for one in found] == [GIVEN, LEGACY, TRANSLATED, PLAIN, NFT_OPTIMIZED]
    for one in found:
        assert one.reason or (one.other, all(one.total)) == (0, True), one
    assert not [one for one in found if one.reason and one.name != LEGACY]  # a host may lack iptables-legacy


@needs_kernel
def test_a_form_that_a_tool_cannot_make_says_why() -> None:
    found = {one.name: one for one in on_this_kernel("-A FORWARD -m recent --name x --set")}
    assert "-m recent" in found[TRANSLATED].reason
    assert not found[GIVEN].reason


@needs_kernel
def test_a_change_is_measured_and_offered_unless_a_packet_becomes_something_else() -> None:
    files = [RulesetFile("r", "iptables", SAVED.format(""))]
    found = {one.title: one for one in changes(here, files, "", (), 1, 1, lambda _: None)}
    ordered, state = found[WEIGHT], found[STATE_FIRST]
    assert ordered.found is not None
    assert not ordered.found.differences
    assert ordered.more is not None
    assert state.found is not None
    assert state.found.differences
    assert state.more is None
    lines = list(change_lines(list(found.values())))
    assert any("not offered" in line and "SYN" in line for line in lines)
