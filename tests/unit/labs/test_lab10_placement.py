# SPDX-License-Identifier: GPL-2.0-or-later
"""lab10: hashes computed here, apart from the lab, place flows as the lab's traffic, rulesets and results do."""

from __future__ import annotations

import re
from ipaddress import IPv4Address
from itertools import pairwise

import pytest

from fwlab.measure.saved_runs import load_run, published_files
from fwlab.metrics.delivery import FIRST_PACKETS
from fwlab.metrics.registry import METRICS
from fwlab.rulesets.files import lab_ruleset
from tests.checkout import PROJECT, TOPOLOGY, lab_named, tables

LAB = lab_named("lab10-cores")
RULESETS = LAB.folder / "rulesets"
KEY = str(LAB.traffic["hosts"].tunables["key"])
TEN = [IPv4Address("198.18.128.1") + turn for turn in range(10)]
HOSTS = [IPv4Address("198.18.64.1") + 13 * turn for turn in range(100)]
DESTINATION, PORTS = IPv4Address("198.19.10.1"), (1025, 5000)


def toeplitz(source: IPv4Address, destination: IPv4Address, ports: tuple[int, ...]) -> int:
    """By the definition: a window of 32 bits moves along the key; text in place of numbers."""
    flow = f"{int(source):032b}{int(destination):032b}" + "".join(f"{port:016b}" for port in ports)
    key, found = f"{int(KEY, 16):0320b}", 0
    for place, bit in enumerate(flow):
        if bit == "1":
            found ^= int(key[place : place + 32], 2)
    return found


def queue(source: IPv4Address) -> int:
    return toeplitz(source, DESTINATION, PORTS) % 128 % 10


def lookup3(data: int, seed: int) -> int:
    """jhash of four bytes in network byte order: the last mix of Bob Jenkins' lookup3 (include/linux/jhash.h)."""
    whole = 0xFFFFFFFF
    a = b = c = (0xDEADBEEF + 4 + seed) & whole
    a = (a + int.from_bytes(data.to_bytes(4, "big"), "little")) & whole

    def turned(value: int, by: int) -> int:
        return (value << by | value >> 32 - by) & whole

    for by in ((14, 11, 25), (16, 4, 14), (24, 0, 0)):
        c = ((c ^ b) - turned(b, by[0])) & whole
        if by[1]:
            a = ((a ^ c) - turned(c, by[1])) & whole
            b = ((b ^ a) - turned(a, by[2])) & whole
    return c


def place(source: IPv4Address, seed: int, places: int = 10) -> int:
    return lookup3(int(source), seed) * places >> 32


def shares(sweep: str) -> dict[str, float]:
    """By value of the parameter, the share that passed in the published run."""
    run = load_run(published_files(PROJECT, LAB)[0], LAB.id)
    return {
        case.id.removeprefix(f"{sweep}-"): METRICS["passed"].values(case, run.testbed)[0]
        for case in run.cases
        if case.id.rpartition("-")[0] == sweep
    }


@pytest.mark.parametrize(
    ("source", "destination", "ports", "found"),
    [
        ("66.9.149.187", "161.142.100.80", (2794, 1766), 0x51CCC178),
        ("199.92.111.2", "65.69.140.83", (14230, 4739), 0xC626B0EA),
        ("66.9.149.187", "161.142.100.80", (), 0x323E8FC2),
    ],
)
def test_toeplitz_gives_the_values_that_were_published_with_the_key(
    source: str, destination: str, ports: tuple[int, ...], found: int
) -> None:
    assert toeplitz(IPv4Address(source), IPv4Address(destination), ports) == found


def test_the_rules_compute_toeplitz() -> None:
    (file,) = lab_ruleset(RULESETS / "hash", LAB.cases["toeplitz"].parameters, TOPOLOGY)
    rules = re.findall(r"(ip|udp) (\w+) & (0x\w+) == \3 meta mark set meta mark \^ (0x\w+)", file.text)
    assert len(rules) == 96
    for source in [*TEN, *HOSTS]:
        flow = {"saddr": int(source), "daddr": int(DESTINATION), "sport": PORTS[0], "dport": PORTS[1]}
        mark = 0
        for _, field, bit, window in rules:
            mark ^= int(window, 16) if flow[field] & int(bit, 16) else 0
        assert mark == toeplitz(source, DESTINATION, PORTS)


def test_ten_flows_were_measured_where_toeplitz_puts_them() -> None:
    counted = [sum(queue(source) == number for source in TEN) for number in range(10)]
    assert shares("queue") == {str(number): count / 10 for number, count in enumerate(counted)}


@pytest.mark.parametrize("sweep", ["seed", "places"])
def test_as_many_places_were_reached_as_jhash_reaches(sweep: str) -> None:
    found = shares(sweep)
    assert len(found) == len(LAB.cases_named([sweep]))
    for value, share in found.items():
        seed, places = (int(value), 10) if sweep == "seed" else (1, int(value))
        assert share == pytest.approx(len({place(source, seed, places) for source in TEN}) / 10), value


def test_flows_in_turn_have_equally_many_packets() -> None:
    """Otherwise the share of the packets that pass is not that of the flows."""
    for name in ("reached-rss", "reached-jhash"):
        assert not [case for case in LAB.cases_named([name]) if FIRST_PACKETS % int(case.rpartition("-")[2])]


# ---- exercises ------------------------------------------------------------------------------------------------


def dropped(part: str) -> set[IPv4Address]:
    files = lab_ruleset(RULESETS / "ex1-toeplitz" / part, {}, TOPOLOGY)
    return {IPv4Address(found) for file in files for found in re.findall(r"198\.18\.\d+\.\d+", file.text)}


def test_ex1_asks_for_the_hosts_of_queue_3() -> None:
    wanted = {source for source in HOSTS if queue(source) == 3}
    flows = tables(LAB.id).flows("hosts")
    assert {source for source, *_ in flows["chosen"]} == set(map(str, wanted))
    assert {source for source, *_ in flows["others"]} == set(map(str, HOSTS)) - set(map(str, wanted))
    assert dropped("reference") == wanted
    assert dropped("variants/map") == wanted
    assert not dropped("start") & wanted


def test_ex2s_reference_is_the_first_seed_without_a_collision() -> None:
    members = [IPv4Address("198.18.10.1") + turn for turn in range(10)]
    (file,) = lab_ruleset(RULESETS / "ex2-ten-places" / "reference", {}, TOPOLOGY)
    seed = int(re.findall(r"seed (\d+)", file.text)[0])
    assert len({place(source, seed) for source in members}) == 10
    assert not [less for less in range(seed) if len({place(source, less) for source in members}) == 10]


def test_ex2s_start_serves_six_members_and_two_strangers() -> None:
    (file,) = lab_ruleset(RULESETS / "ex2-ten-places" / "start", {}, TOPOLOGY)
    seed = int(re.findall(r"seed (\d+)", file.text)[0])
    members, strangers = (
        {place(IPv4Address(first) + turn, seed) for turn in range(10)} for first in ("198.18.10.1", "198.18.20.1")
    )
    assert (len(members), len(strangers - members)) == (6, 2)


def test_ex2s_members_come_before_any_stranger() -> None:
    matrix = tables(LAB.id).table("queue-up").frames.matrix(34)[:20]
    sources = [IPv4Address(bytes(row[26:30].tolist())) for row in matrix]
    assert all(before < after for before, after in pairwise(sources))
    assert str(sources[9]) == "198.18.10.10"
    assert str(sources[10]) == "198.18.20.1"
