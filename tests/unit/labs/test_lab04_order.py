# SPDX-License-Identifier: GPL-2.0-or-later
"""lab04's ex1: the rulesets of the lab do to each packet what variants.yml says, for whatever a student has drawn.

Lists of rules are walked through here, so that a dependency which the traffic does not show is found without machines.
What they cost is measured.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import pytest

from fwlab.generator.traffic_store import TrafficStore
from fwlab.grading.lab_rulesets import load_variants
from fwlab.measure.individual_tasks import individual_lab, of_students
from fwlab.model.lab import Exercise, Lab
from fwlab.model.ruleset import RulesetFile
from fwlab.rulesets.files import lab_ruleset
from fwlab.traffic.classes import classify
from fwlab.traffic.headers import ipv4_numbers, read_headers
from tests.checkout import PROJECT, TOPOLOGY, lab_named

WHOLE = lab_named("lab04-nftables")
EXERCISE = "ex1-order"
CLASSES = ["blocked", "neighbours", "legitimate"]
#: Folded into sets, which are no list.
FOLDED = {"folded"}
#: A rule as these rulesets write it.
IPTABLES = (
    r"-A (?P<chain>\S+)( -i \S+)?( -s (?P<source>\S+))?( -p tcp --dport (?P<ports>\S+))?"
    r" -(?P<how>[jg]) (?P<target>\S+)"
)
NFT = (
    r"add rule \S+ lab (?P<chain>\S+)( ip saddr (?P<source>[0-9]\S+))?( tcp dport (?P<ports>[0-9]\S*))?( counter)?"
    r"(?P<how>) (?P<target>accept|drop)"
)
#: The page's own numbers, which are the lowest, and others that a student may draw.
DRAWN = ["page", "middle", "highest"]


@cache
def lab(drawn: str) -> Lab:
    if drawn == "page":
        return WHOLE
    values = {name: one.values for name, one in of_students(WHOLE).items()}
    return individual_lab(
        PROJECT, WHOLE, {name: of[len(of) // 2 if drawn == "middle" else -1] for name, of in values.items()}
    )


def exercise(drawn: str) -> Exercise:
    found = lab(drawn).exercise(EXERCISE)
    assert found is not None
    return found


@cache
def flows(drawn: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(class, source address, destination port) of each frame."""
    frames = TrafficStore(PROJECT, TOPOLOGY, lab(drawn)).table(exercise(drawn).traffic).frames
    headers = read_headers(frames)
    return classify(frames, lab(drawn).classes), ipv4_numbers(headers.src), headers.dport


@dataclass
class Rule:
    """A rule of iptables or nft, as far as the rulesets of this exercise use them."""

    target: str
    goto: bool = False
    source: ipaddress.IPv4Network = field(default=ipaddress.IPv4Network("0.0.0.0/0"))
    low: int = 0
    high: int = 65535

    def matches(self, sources: np.ndarray, ports: np.ndarray) -> np.ndarray:
        inside = (sources >= int(self.source.network_address)) & (sources <= int(self.source.broadcast_address))
        return np.asarray(inside & (ports >= self.low) & (ports <= self.high))


def chains_of(file: RulesetFile) -> dict[str, list[Rule]]:
    """By chain, its rules in order. A rule that only packets of other links match is left out."""
    found: dict[str, list[Rule]] = {}
    pattern = IPTABLES if file.kind == "iptables" else NFT
    for line in file.text.splitlines():
        if not line.startswith(("-A", "add rule")) or "iifname !=" in line:
            continue
        rule = re.fullmatch(pattern, line)
        assert rule, line
        ports = re.split("[:-]", rule["ports"] or "0-65535")
        network = ipaddress.IPv4Network(rule["source"] or "0.0.0.0/0")
        one = Rule(rule["target"].lower(), rule["how"] == "g", network, int(ports[0]), int(ports[-1]))
        found.setdefault(rule["chain"].lower(), []).append(one)
    return found


def walked(files: list[RulesetFile], sources: np.ndarray, ports: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of each packet, whether the ruleset drops it, and how many rules it meets."""
    (file,) = files
    chains = chains_of(file)
    dropped, met = np.full(len(sources), fill_value=False), np.zeros(len(sources), dtype=int)

    def walk(chain: str, here: np.ndarray) -> np.ndarray:
        """Those of the packets `here` on which the chain does not decide."""
        for rule in chains[chain]:
            met[here] += 1
            hit = here & rule.matches(sources, ports)
            here = here & ~hit
            if rule.target == "drop":
                dropped[hit] = True
            elif rule.target != "accept":
                undecided = walk(rule.target, hit)
                here = here if rule.goto else here | undecided
        return here

    walk("prerouting", np.full(len(sources), fill_value=True))
    return dropped, met


def ruleset(drawn: str, name: str) -> list[RulesetFile]:
    return lab_ruleset(lab(drawn).folder / "rulesets" / EXERCISE / name, exercise(drawn).parameters, TOPOLOGY)


def failing(drawn: str, name: str) -> set[str]:
    """The checks of delivery that this ruleset fails."""
    found, sources, ports = flows(drawn)
    dropped, _ = walked(ruleset(drawn, name), sources, ports)
    wrong = dropped != (found == CLASSES.index("blocked"))
    return {f"delivered-{one}" for place, one in enumerate(CLASSES) if wrong[found == place].any()}


def lists() -> Iterator[tuple[str, set[str]]]:
    """Each ruleset of the exercise that is a list, and the checks of delivery that it is to fail."""
    declared = load_variants(PROJECT, WHOLE, exercise("page"))
    yield from (("start", set()), ("reference", set()), ("mistake", {"delivered-neighbours"}))
    yield from ((f"variants/{name}", set()) for name in declared.right if name not in FOLDED)
    yield from ((f"variants/{name}", set(one.fails) - {"capacity"}) for name, one in declared.wrong.items())


@pytest.mark.parametrize("drawn", DRAWN)
@pytest.mark.parametrize(("name", "fails"), list(lists()), ids=lambda value: value if isinstance(value, str) else "")
def test_each_order_does_to_packets_what_is_said_of_it(name: str, fails: set[str], drawn: str) -> None:
    assert failing(drawn, name) == fails


def hits(drawn: str) -> list[int]:
    """How many packets each rule of the start decides, in its order."""
    _, sources, ports = flows(drawn)
    (file,) = ruleset(drawn, "start")
    left, counts = np.full(len(sources), fill_value=True), []
    for rule in chains_of(file)["prerouting"]:
        hit = left & rule.matches(sources, ports)
        left &= ~hit
        counts.append(int(hit.sum()))
    return counts


@pytest.mark.parametrize("drawn", DRAWN)
def test_no_rule_of_the_start_is_without_a_packet(drawn: str) -> None:
    """Else it could be left out, and nobody would notice."""
    counts = hits(drawn)
    assert len(counts) == 201
    assert min(counts) > 0


@pytest.mark.parametrize("drawn", DRAWN)
def test_hits_follow_zipf_s_law(drawn: str) -> None:
    """The hits of a closed port fall with its rank to the power of 1.5. The web's rule is apart from that."""
    counts = sorted(hits(drawn)[:200], reverse=True)[:8]
    assert np.divide(counts, counts[0]) == pytest.approx([rank**-1.5 for rank in range(1, 9)], rel=0.1)


@pytest.mark.parametrize("drawn", DRAWN)
def test_the_order_by_hits_spares_packets_most_rules(drawn: str) -> None:
    """Whatever is drawn: the exercise is about the same difference for everybody."""
    _, sources, ports = flows(drawn)
    start, reference = (walked(ruleset(drawn, name), sources, ports)[1].mean() for name in ("start", "reference"))
    assert reference < start / 3
