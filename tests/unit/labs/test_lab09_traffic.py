# SPDX-License-Identifier: GPL-2.0-or-later
"""lab09: the start of each exercise, read rule by rule, decides about every packet as the traffic's classes say."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from ipaddress import IPv4Address, ip_network
from itertools import pairwise

import numpy as np
import pytest

from fwlab.rulesets.files import rendered
from fwlab.traffic.classes import classify
from fwlab.traffic.headers import ipv4_numbers, read_headers
from tests.checkout import TOPOLOGY, lab_named, tables

LAB = lab_named("lab09-classifiers")
#: (sources, ports, verdict, destinations), in the order in which they are asked
Rules = list[tuple[range, range, str, range]]
ANY, ANYWHERE = range(65536), range(2**32)
RANGE = r"([\d.]+)-([\d.]+)"
PORTS = r"(\d+)(?:-(\d+))?"


def text(folder: str, parameters: dict[str, object]) -> str:
    return "\n".join(text for _, text in rendered(LAB.folder / "rulesets" / folder, parameters, TOPOLOGY))


def between(first: str, last: str) -> range:
    return range(int(IPv4Address(first)), int(IPv4Address(last)) + 1)


def ports(first: str, last: str) -> range:
    return range(int(first), int(last or first) + 1)


def prefix(words: str) -> range:
    network = ip_network(words)
    return range(int(network[0]), int(network[-1]) + 1)


def of_iptables(start: str) -> Rules:
    return [
        (prefix(found), ANY, "drop", ANYWHERE)
        for found in re.findall(r"^-A PREROUTING -s ([\d.]+) -j DROP", start, re.MULTILINE)
    ]


def of_nft(start: str) -> Rules:
    found = re.findall(rf"ip saddr {RANGE} udp dport {PORTS} (\w+)", start)
    return [(between(a, b), ports(c, d), verdict, ANYWHERE) for a, b, c, d, verdict in found]


def of_set(start: str) -> Rules:
    pairs = re.findall(rf"{RANGE} \. {PORTS},", start)
    return [
        *((between(a, b), ports(c, d), "accept", ANYWHERE) for a, b, c, d in pairs),
        (prefix("198.18.10.0/24"), ANY, "accept", ANYWHERE),
        (ANYWHERE, ANY, "drop", ANYWHERE),
    ]


def of_flower(start: str) -> Rules:
    found = re.findall(r"dst_port (\d+) src_ip ([\d./]+)(?: dst_ip ([\d./]+))? action drop", start)
    return [(prefix(source), ports(port, ""), "drop", prefix(to or "0.0.0.0/0")) for port, source, to in found]


def of_map(start: str) -> Rules:
    found = re.findall(rf"{RANGE} \. {PORTS} : (\w+)", start)
    return [(between(a, b), ports(c, d), verdict, ANYWHERE) for a, b, c, d, verdict in found]


def of_program(start: str) -> Rules:
    """A table of pairs that pass, one that passes the legitimate network, and one that drops the rest."""
    found: Rules = []
    for table in start.split("table ")[1:]:
        head, *entries = [line.split() for line in table.splitlines() if line and not line.startswith("#")]
        fields, verdict = head[2].split(","), {"pass": "accept", "drop": "drop"}[head[3]]
        for entry in entries:
            values = dict(zip(fields, entry, strict=True))
            first, _, last = values.get("dport", "0-65535").partition("-")
            hosts = values.get("saddr", "0.0.0.0/0")
            both = hosts.partition("-")
            sources = between(both[0], both[2]) if both[2] else prefix(hosts)
            found.append((sources, ports(first, last), verdict, ANYWHERE))
    return found


READ: dict[str, Callable[[str], Rules]] = {
    "ex1-tree": of_iptables,
    "ex2-exceptions": of_nft,
    "ex3-fields": of_set,
    "ex4-tenants": of_flower,
    "ex5-fold": of_map,
    "ex6-program": of_program,
}
each_exercise = pytest.mark.parametrize("name", READ)


@cache
def flows(name: str) -> dict[str, set[tuple[int, int, int]]]:
    """By class: source address, destination port and destination of each flow."""
    exercise = LAB.exercise(name)
    assert exercise is not None
    frames = tables(LAB.id).table(exercise.traffic).frames
    headers = read_headers(frames)
    found = classify(frames, LAB.classes)
    every = np.stack([ipv4_numbers(headers.src), headers.dport, ipv4_numbers(headers.dst)], axis=1)
    return {each: set(map(tuple, every[found == place].tolist())) for place, each in enumerate(LAB.classes)}


def test_every_exercise_is_read() -> None:
    assert [exercise.id for exercise in LAB.exercises] == list(READ)


@each_exercise
def test_the_start_blocks_the_blocked_and_nothing_else(name: str) -> None:
    exercise = LAB.exercise(name)
    assert exercise is not None
    rules = READ[name](text(f"{name}/start", exercise.parameters))
    assert rules
    for which, wanted in {"blocked": "drop", "neighbours": "accept", "legitimate": "accept"}.items():
        assert len(flows(name)[which]) >= 50
        for source, port, destination in flows(name)[which]:
            fits = (
                verdict
                for hosts, numbers, verdict, servers in rules
                if source in hosts and port in numbers and destination in servers
            )
            assert next(fits, "accept") == wanted, (
                which,
                str(IPv4Address(source)),
                port,
                str(IPv4Address(destination)),
            )


@each_exercise
def test_neighbours_are_no_class_of_their_own_by_port_or_address_alone(name: str) -> None:
    blocked, neighbours = flows(name)["blocked"], flows(name)["neighbours"]
    least, most = min(blocked)[0], max(blocked)[0]
    assert sum(least < source < most for source, *_ in neighbours) >= 50
    known = {port for _, port, _ in blocked}
    assert sum(min(known) <= port <= max(known) for _, port, _ in neighbours) >= 50


@pytest.mark.parametrize(("fanout", "levels"), [(2, 14), (4, 7), (128, 2), (8, 5)])
def test_a_tree_has_all_rules_at_the_end_of_equal_paths(fanout: int, levels: int) -> None:
    tree = text("tree", {"rules": 16384, "fanout": fanout})
    calls: dict[str, list[str]] = {}
    leaves: dict[str, int] = {}
    for chain, rest in re.findall(r"^-A (\S+) (.*)$", tree, re.MULTILINE):
        goto = re.search(r"-[gj] (n\S+)$", rest)
        if goto:
            calls.setdefault(chain, []).append(goto[1])
        elif chain != "PREROUTING":
            leaves[chain] = leaves.get(chain, 0) + 1
    level = ["PREROUTING"]
    depths = []
    while level:
        level = [called for chain in level for called in calls.get(chain, [])]
        depths.append(sum(leaves.get(chain, 0) for chain in level))
    assert depths[-1] == 0
    assert depths[-2] == sum(depths) == 16384
    assert len(depths) - 1 == levels


def test_a_branch_of_the_tree_is_chosen_by_the_bits_of_its_rules() -> None:
    """Each address of the tree follows the gotos to the chain that has its rule."""
    tree = text("tree", {"rules": 64, "fanout": 4})
    chains: dict[str, list[str]] = {}
    for chain, rest in re.findall(r"^-A (\S+) (.*)$", tree, re.MULTILINE):
        chains.setdefault(chain, []).append(rest)
    for number in range(64):
        address = int(IPv4Address("10.0.0.1")) + 2 * number
        chain = "n64-0"
        while "DROP" not in chains[chain][0]:
            chain = next(goto for goto in map(matching(address), chains[chain]) if goto)
        assert any(rule.startswith(f"-s {IPv4Address(address)} ") for rule in chains[chain])


def matching(address: int) -> Callable[[str], str]:
    def goto(rule: str) -> str:
        found = re.fullmatch(r"(?:-s ([\d.]+)/([\d.]+) )?-g (\S+)", rule)
        assert found
        if found[1] and address & int(IPv4Address(found[2])) != int(IPv4Address(found[1])):
            return ""
        return found[3]

    return goto


def test_no_case_lists_an_address_of_the_flood() -> None:
    frames = tables(LAB.id).table("flood").frames
    sources = set(ipv4_numbers(read_headers(frames).src).tolist())
    assert len(sources) == 1000
    spread = sorted(source >> 8 & 0xFF for source in sources)
    assert all(high - low <= 1 for low, high in pairwise(spread))
    listed = prefix("10.0.0.0/8")
    assert not [source for source in sources if source in listed]
