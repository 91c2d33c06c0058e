# SPDX-License-Identifier: GPL-2.0-or-later
"""No field that an exercise is not about, and no two, tell packets that must be dropped from those that must pass.

Otherwise whoever reads the profile, or has looked at the traffic once, passes without the exercise's idea.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import pytest

from fwlab.generator.traffic_store import TrafficStore
from fwlab.metrics.measurement import Phase
from fwlab.model.lab import Exercise, Lab
from fwlab.traffic.frame_loop import TABLE_FRAMES
from tests.checkout import LAB_IDS, PROJECT, SEED, TOPOLOGY, lab_named, tables
from tests.fakes.separators import (
    ERRORS,
    ERRORS_OF_SURVIVAL,
    Sample,
    all_known,
    busy,
    judged,
    pairs,
    samples,
    shortcut,
)

LABS: dict[str, Lab] = {name: lab_named(name).whole for name in LAB_IDS}
#: The seeds that a rule is learnt from, and the one that it is tried on.
LEARNT, TRIED = (SEED, 3), 4
#: Traffics of seeds and plays in memory, some 30 MB each: more than the tests of one exercise share.
KEPT = 8
#: The play after the flood (Measurer).
AFTER_FLOOD = Phase.AFTER_FLOOD - Phase.FLOOD
#: Packets of that play, at most.
LATER = Phase.AFTER_FLOOD.max_packets
IPV6 = {"ip6.src", "ip6.dst"}
SOURCE, DESTINATION, PORT, PORTS = {"ip.src"}, {"ip.dst"}, {"dport"}, {"sport", "dport"}
#: A resolver asks from one port, port 53. Whatever is not from there is a stranger.
ASKED = {"strangers": PORTS, "forged": set()}
#: Where nobody is to send ICMP, it is told from all that pass.
ICMP = PORTS | {"ip.protocol", "udp", "icmp", "payload"}
ERROR = {"icmp.type", "icmp.rest"}  # of which the type decides what the rest means
PROTOCOL = {"ip.protocol", "udp", "tcp", "icmp"}
SIZE = {"length", "ip.length"}
#: lab07's web server. In ex5, large is what does not fit into the tunnel, and only strangers and liars send UDP.
TO_THE_SERVER = {
    "*": PORTS | {"tcp.flags"},
    "probes": PORT | DESTINATION | {"tcp.flags"},
    "strangers": PORTS | DESTINATION,
    "redirects": ERROR,
    "unreachables": ERROR,
    "others": ERROR | PROTOCOL,
}
#: By exercise and class, the fields that one may go by alone: those that are the idea, and those that the page gives.
IDEAS: Mapping[str, Mapping[str, Mapping[str, set[str]]]] = {
    "lab01-forwarding": {"*": {"*": DESTINATION}, "ex3-tuning": {"*": SOURCE}},
    "lab02-conntrack": {
        "*": ASKED,
        "ex2-established-first": ASKED
        | {"blocked": SOURCE, "blocked-hosts": SOURCE, "calls": SOURCE | DESTINATION | PORTS},
        # The name server's queries have one destination and one port, and the strangers are the resolver's.
        "ex4-reply": ASKED | {"icmp": ICMP},
        "ex5-table": {"strangers": PORTS | SOURCE | DESTINATION, "icmp": ICMP | SOURCE | DESTINATION},
        "ex7-ten-rules": {"*": DESTINATION | PORT},
    },
    "lab03-ipset": {"*": {"*": SOURCE}},
    "lab04-nftables": {"ex2-few": {"*": SOURCE}, "ex5-prefixes": {"*": SOURCE}},
    "lab05-drop-early": {"*": {"*": SOURCE}, "ex2-ingress": {"*": SOURCE, "strangers": ICMP}},
    "lab06-payload": {
        "ex1-names": {"asked": {"payload"}},
        "ex2-port": {"asked": PORT | {"payload"}},
        "ex3-place": {"*": {"payload"}},
        "ex6-many-names": {"*": {"payload"}},
    },
    "lab07-stateless": {
        "ex1-buckets": {},
        "ex2-assured": {},
        "ex5-mtu": TO_THE_SERVER
        | {"large": SIZE, "strangers": PORTS | DESTINATION | SIZE | PROTOCOL, "liars": PORTS | SIZE | PROTOCOL},
        "*": TO_THE_SERVER,
    },
    "lab08-pf": {"*": ASKED, "ex4-table": {"*": SOURCE}},
    "lab09-classifiers": {"ex1-tree": {"*": SOURCE}},
    "lab10-cores": {"ex1-toeplitz": {"*": SOURCE}, "ex2-ten-places": {"*": SOURCE}, "ex4-fields": {"*": {"sport"}}},
    "lab11-sriov": {"*": {"*": SOURCE}},
    "lab12-resolver": {"ex1-source": {"*": {"payload"}}},
    "lab13-synflood": {"ex1-sources": {"*": SOURCE}},
    # A fragment's later ones follow from its header: no field of theirs is that of a port.
    "lab16-ipv6": {"ex1-headers": {"*": PORT}, "ex2-prefix": {"*": {"ip6.src"}}, "ex3-fragments": {"*": PORT}},
}
#: Where no limit is the idea, not even one that counts by address.
UNCOUNTED = {"ex1-buckets"}
#: Who must pass is known here: ten hosts whose places are looked for, the hosts of a list, or twenty sessions.
KNOWN = {"lab10-cores"}


def exercises(*metrics: str) -> list[tuple[str, str]]:
    return [
        (name, exercise.id)
        for name, lab in LABS.items()
        for exercise in lab.exercises
        if judged(exercise)[0] and {check.metric for check in exercise.checks} & set(metrics)
    ]


def idea(name: str, exercise: str, dropped: str) -> set[str]:
    of_lab = IDEAS.get(name, {})
    of_exercise = of_lab.get(exercise, of_lab.get("*", {}))
    return of_exercise.get(dropped, of_exercise.get("*", set()))


@lru_cache(maxsize=KEPT)
def of_seed(name: str, traffic: str, seed: int, play: int = 0) -> dict[str, Sample]:
    store = tables(name) if seed == SEED else TrafficStore(PROJECT, TOPOLOGY, LABS[name], seed, first=TABLE_FRAMES)
    store = store.of_play(traffic, play, LATER if play else None)
    if seed == TRIED:
        store.known_frames(traffic)  # raises BadInput where two classes have the same packet
    return samples(store, traffic, LABS[name].classes)


@lru_cache(maxsize=2)
def learnt(name: str, traffic: str) -> dict[str, Sample]:
    first, second = (of_seed(name, traffic, seed) for seed in LEARNT)
    return {one: first[one].joined(second[one]) for one in first if one in second}


def sampled(name: str, exercise: str) -> tuple[dict[str, Sample], dict[str, Sample], set[str], set[str]]:
    """What a rule is learnt from, what it is tried on; the classes to drop, and to pass."""
    one: Exercise | None = LABS[name].exercise(exercise)
    assert one is not None
    connections = LABS[name].traffic[one.traffic].connections
    traffic = one.traffic if connections is None else str(connections.background)
    known, tried = learnt(name, traffic), of_seed(name, traffic, TRIED)
    drop, may_pass = judged(one)
    assert drop <= set(known) & set(tried)
    return known, tried, drop, may_pass


@pytest.mark.parametrize(("name", "exercise"), exercises("delivered", "survival", "passed", "admitted"))
def test_no_field_or_two_separate_but_those_of_the_idea(name: str, exercise: str) -> None:
    known, tried, drop, may_pass = sampled(name, exercise)
    judged_by_survival = any(check.metric == "survival" for check in LABS[name].exercise(exercise).checks)
    errors = ERRORS_OF_SURVIVAL if judged_by_survival else ERRORS
    found = {}
    for one in drop:
        rule = one, known, tried, may_pass, idea(name, exercise, one), errors
        found[one] = shortcut(*rule) or list(pairs(*rule))
    assert not {one: how for one, how in found.items() if how}


@pytest.mark.parametrize(("name", "exercise"), exercises("survival", "passed"))
def test_no_field_is_busier_with_what_a_limit_must_stop(name: str, exercise: str) -> None:
    _, tried, drop, may_pass = sampled(name, exercise)
    counted = set() if exercise in UNCOUNTED else SOURCE | DESTINATION | IPV6
    found = {one: list(busy(one, tried, may_pass, counted)) for one in drop}
    assert not {one: how for one, how in found.items() if how}


@pytest.mark.parametrize(("name", "exercise"), [one for one in exercises("delivered") if one[0] not in KNOWN])
def test_who_must_pass_cannot_be_listed(name: str, exercise: str) -> None:
    known, tried, drop, may_pass = sampled(name, exercise)
    fields = {field for one in drop for field in idea(name, exercise, one)}
    if fields <= SOURCE | DESTINATION:
        assert not [field for field in fields if all_known(known, tried, may_pass, field)]


def by_address(name: str, exercise: str) -> set[str]:
    """The addresses that the exercise is about, if about nothing else, and if a part of them is drawn of each play."""
    one: Exercise | None = LABS[name].exercise(exercise)
    assert one is not None
    fields = {field for dropped in judged(one)[0] for field in idea(name, exercise, dropped)}
    own = [LABS[name].tunables(one.traffic, TRIED, play) for play in (0, AFTER_FLOOD)]
    return fields if fields <= SOURCE | DESTINATION and own[0] != own[1] else set()


@pytest.mark.parametrize(("name", "exercise"), [one for one in exercises("delivered") if by_address(*one)])
def test_who_must_pass_cannot_be_learnt_in_the_flood(name: str, exercise: str) -> None:
    one: Exercise | None = LABS[name].exercise(exercise)
    assert one is not None
    flood, later = (of_seed(name, one.traffic, TRIED, play) for play in (0, AFTER_FLOOD))
    assert not [field for field in by_address(name, exercise) if all_known(flood, later, judged(one)[1], field)]
