# SPDX-License-Identifier: GPL-2.0-or-later
"""Looks for fields that tell packets that must be dropped from those that must pass, whatever the seed.

A rule is learnt from the traffic of some seeds and tried on that of another one, as whoever reads a profile may do and
is graded afterwards. A rule knows one field: a list of its values or of their prefixes, one bit, or one range. Or it
knows two, and a list of pairs of their values or prefixes. Of the payload it may compare a few places. A ruleset may
have a rule for each class that must pass, and drop what none of them lets through. Or it counts packets by the values
of a field, and bans the busy ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, combinations

import numpy as np

from fwlab.generator.traffic_store import TrafficStore
from fwlab.model.lab import Exercise
from fwlab.traffic import Frames
from fwlab.traffic.headers import IPV4, IPV6, Headers, read_headers

#: A rule separates if it errs on at most this share of the class to drop, and of each class to pass: next to nothing
#: where each packet counts, some where survival is judged.
ERRORS, ERRORS_OF_SURVIVAL = 0.005, 0.05
#: Bytes of the payload, and packets of a class whose payload is looked at.
PAYLOAD, LOOKED_AT = 232, 2000
#: The share of what must pass that is to be of values that no other seed has shown.
FRESH = 0.001
#: Lowest bits that a list may ignore.
IGNORED = (0, 4, 8, 10, 12)
#: Two fields are listed together if each has few values, prefixes if need be, so that a short list could be learnt.
FEW, WIDEST = 256, (*IGNORED, 16, 24)
#: Comparisons of the payload in one ruleset, and the length of each in bytes.
PLACES, WORD = 8, 4
#: Metrics of which a check says that a class must be dropped, or must pass.
_METRICS = ("delivered", "survival", "returned", "admitted")
#: Name, place in the header, bytes. `ip`: of IPv4; `ip6`: of IPv6, with what follows the header.
_FIELDS = [
    ("eth.dst", "ethernet", 0, 6),
    ("eth.src", "ethernet", 6, 6),
    ("ip.header", "ip", 0, 1),
    ("ip.tos", "ip", 1, 1),
    ("ip.length", "ip", 2, 2),
    ("ip.id", "ip", 4, 2),
    ("ip.fragment", "ip", 6, 2),
    ("ip.ttl", "ip", 8, 1),
    ("ip.protocol", "ip", 9, 1),
    ("ip.checksum", "ip", 10, 2),
    ("ip.src", "ip", 12, 4),
    ("ip.dst", "ip", 16, 4),
    ("ip.src.low", "ip", 14, 2),
    ("ip.dst.low", "ip", 18, 2),
    ("ip.src.host", "ip", 15, 1),
    ("ip.dst.host", "ip", 19, 1),
    ("ip6.flow", "ip6", 0, 4),
    ("ip6.length", "ip6", 4, 2),
    ("ip6.next", "ip6", 6, 1),
    ("ip6.hops", "ip6", 7, 1),
    ("ip6.src.net", "ip6", 9, 7),
    ("ip6.src.host", "ip6", 17, 7),
    ("ip6.src.low", "ip6", 20, 4),
    ("ip6.dst.net", "ip6", 25, 7),
    ("ip6.dst.host", "ip6", 33, 7),
    ("ip6.behind", "ip6", 40, 4),
    ("ip6.behind.more", "ip6", 44, 4),
    ("sport", "ports", 0, 2),
    ("dport", "ports", 2, 2),
    ("udp.length", "udp", 4, 2),
    ("udp.checksum", "udp", 6, 2),
    ("tcp.seq", "tcp", 4, 4),
    ("tcp.ack", "tcp", 8, 4),
    ("tcp.flags", "tcp", 12, 2),
    ("tcp.window", "tcp", 14, 2),
    ("tcp.checksum", "tcp", 16, 2),
    ("tcp.urgent", "tcp", 18, 2),
    ("icmp.type", "icmp", 0, 2),
    ("icmp.checksum", "icmp", 2, 2),
    ("icmp.rest", "icmp", 4, 4),
]
_HEADER = {6: 20, 17: 8, 1: 8, 58: 8}
#: Bits of a field that a rule may look at.
BITS = 32
#: Different values, sorted, and how many packets have each.
Counted = tuple[np.ndarray, np.ndarray]


class Sample:
    """Packets of one class. What is found out about a field is kept: many pairs of classes are compared by it.

    fields   by name, one value for each packet, -1 where there is no such field
    payload  its first bytes, filled with zeros
    """

    def __init__(self, fields: dict[str, np.ndarray], payload: np.ndarray) -> None:
        self.fields, self.payload = fields, payload
        self.size = len(next(iter(fields.values())))
        self._counted: dict[tuple[str, int], Counted] = {}
        self._coded: dict[tuple[str, int], np.ndarray] = {}
        self._bits: dict[str, tuple[np.ndarray, int]] = {}

    def counted(self, field: str, ignored: int = 0) -> Counted:
        """The field's different values without their lowest bits, sorted, and how many packets have each."""
        if (field, ignored) not in self._counted:
            if ignored:
                values, counts = self.counted(field)
                self._counted[field, ignored] = _merged(values >> ignored, counts)
            else:
                self._counted[field, ignored] = np.unique(self.fields[field], return_counts=True)
        return self._counted[field, ignored]

    def coded(self, field: str, ignored: int) -> np.ndarray:
        """The place of each packet's value among those of `counted`."""
        if (field, ignored) not in self._coded:
            values, _ = self.counted(field, ignored)
            self._coded[field, ignored] = np.searchsorted(values, self.fields[field] >> ignored)
        return self._coded[field, ignored]

    def bits(self, field: str) -> tuple[np.ndarray, int]:
        """How many packets have each bit set, and how many have the field."""
        if field not in self._bits:
            values, counts = self.counted(field)
            values, counts = values[values >= 0], counts[values >= 0]
            self._bits[field] = np.array([counts @ (values >> bit & 1) for bit in range(BITS)]), int(counts.sum())
        return self._bits[field]

    def within(self, field: str, low: int, high: int) -> int:
        """How many packets have a value from low to high."""
        values, counts = self.counted(field)
        return int(counts[np.searchsorted(values, low) : np.searchsorted(values, high, "right")].sum())

    def joined(self, other: Sample) -> Sample:
        fields = {name: np.concatenate([values, other.fields[name]]) for name, values in self.fields.items()}
        return Sample(fields, np.concatenate([self.payload, other.payload]))


def _merged(values: np.ndarray, counts: np.ndarray) -> Counted:
    """The different ones of sorted values, and the sum of the counts of each."""
    first = np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]]))
    return values[first], np.add.reduceat(counts, first)


def _shares_of(values: np.ndarray, counted: Counted) -> np.ndarray:
    """The share of packets that have each of these values."""
    there, counts = counted
    place = np.minimum(np.searchsorted(there, values), len(there) - 1)
    return np.where(there[place] == values, counts[place], 0) / counts.sum()


def judged(exercise: Exercise) -> tuple[set[str], set[str]]:
    """The classes that must be dropped, and those that must pass."""
    checks = [check for check in exercise.checks if check.traffic_class and check.metric in _METRICS]
    # A class of which most of a large packet's senders are told is dropped, and what returns is the firewall's own.
    drop = {str(check.traffic_class) for check in checks if check.metric != "returned" and check.between[1] <= 0.2}
    if any(check.metric == "passed" for check in exercise.checks):  # the honest ones of a table that others fill
        return {"residents"}, {"newcomers", "members"}
    return drop, {str(check.traffic_class) for check in checks if check.between[0] >= 0.7} - drop


def samples(store: TrafficStore, traffic: str, classes: Iterable[str]) -> dict[str, Sample]:
    """The packets of a traffic, by class."""
    frames, found = store.table(traffic).frames, store.classified(traffic)
    headers = read_headers(frames)
    table = frames.matrix(14 + 8 + 60 + 20 + PAYLOAD + WORD)
    rows, at = np.arange(len(frames)), headers.network
    four = headers.version == IPV4
    transport = at + np.where(four, (table[rows, at] & 15).astype(np.int64) * 4, 40)
    transport = np.where(headers.transport >= 0, headers.transport, transport)
    fields, taken = _fields(frames, headers, table, transport), {}
    size = np.select([headers.protocol == protocol for protocol in _HEADER], list(_HEADER.values()), 0)
    for number, name in enumerate(classes):
        rows = np.flatnonzero(found == number)
        if len(rows):
            some = rows[:: max(1, len(rows) // LOOKED_AT)]
            begin = (transport + size)[some, np.newaxis] + np.arange(PAYLOAD + WORD)
            payload = table[some[:, np.newaxis], np.minimum(begin, table.shape[1] - 1)]
            taken[name] = Sample({field: values[rows] for field, values in fields.items()}, payload)
    return taken


def _fields(frames: Frames, headers: Headers, table: np.ndarray, transport: np.ndarray) -> dict[str, np.ndarray]:
    everywhere = np.full(len(frames), fill_value=True)
    data, rows = table.reshape(-1), np.arange(len(frames)) * table.shape[1]
    there = {
        "ethernet": (np.zeros(len(frames), dtype=np.int64), everywhere),
        "ip": (headers.network, headers.version == IPV4),
        "ip6": (headers.network, headers.version == IPV6),
        "ports": (transport, headers.sport >= 0),
        "udp": (transport, (headers.protocol == 17) & (headers.sport >= 0)),
        "tcp": (transport, headers.protocol == 6),
        "icmp": (transport, np.isin(headers.protocol, (1, 58))),
    }
    fields = {"length": frames.lengths}
    for name, layer, offset, size in _FIELDS:
        begin, has = there[layer]
        fields[name] = value = np.full(len(frames), -1, dtype=np.int64)
        if has.any():
            first = rows[has] + begin[has] + offset
            number = np.zeros(len(first), dtype=np.int64)
            for byte in range(size):
                number = number << 8 | data[first + byte]
            value[has] = number
    return fields


def of_idea(field: str, idea: set[str]) -> bool:
    """Whether the field, or that of which it is a part, is the idea."""
    return field in idea or field.rpartition(".")[0] in idea


def shortcut(
    drop: str,
    learnt: Mapping[str, Sample],
    tried: Mapping[str, Sample],
    may_pass: set[str],
    idea: set[str],
    errors: float = ERRORS,
) -> dict[str, str]:
    """For each class that must pass, what tells `drop` from it; empty if nothing does for one of them."""
    found = {}
    for name in sorted(may_pass & set(learnt) & set(tried)):
        how = next(separators(drop, learnt, tried, {name}, idea, errors), None)
        if how is None:
            return {}
        found[name] = how
    return found


def separators(
    drop: str,
    learnt: Mapping[str, Sample],
    tried: Mapping[str, Sample],
    may_pass: set[str],
    idea: set[str],
    errors: float = ERRORS,
) -> Iterator[str]:
    """What tells the class `drop` from all that must pass, though the exercise is not about it."""
    passing = [name for name in may_pass if name in learnt and name in tried]
    if not passing:
        return
    bad, good = learnt[drop], learnt[passing[0]]
    for name in passing[1:]:
        good = good.joined(learnt[name])
    for field in bad.fields:
        if not of_idea(field, idea):
            how = _one_field(field, bad, good, [tried[name] for name in (drop, *passing)], errors)
            if how:
                yield f"{field}, {how}"
    if "payload" not in idea:
        atoms = _atoms(bad.payload, good.payload, errors)
        if atoms and _fits(atoms, tried[drop].payload, [tried[name].payload for name in passing], errors):
            yield "payload at " + ", ".join(str(place) for place, _ in atoms)


def _one_field(field: str, bad: Sample, good: Sample, fresh: list[Sample], errors: float) -> str | None:
    """The kind of rule that separates by this field; None if none does. fresh: of what to drop, then of what passes."""

    def works(hits: Iterator[int]) -> bool:
        shares = (hit / sample.size for hit, sample in zip(hits, fresh, strict=False))
        return bool(1 - next(shares) <= errors and all(share <= errors for share in shares))

    for ignored in IGNORED:
        bads, goods = (sample.counted(field, ignored) for sample in (bad, good))

        def hits(sample: Sample, ignored: int = ignored, bads: Counted = bads, goods: Counted = goods) -> list[int]:
            """Of a list of the values that are more frequent among what must be dropped; and of those never seen."""
            values, counts = sample.counted(field, ignored)
            one, other = _shares_of(values, bads), _shares_of(values, goods)
            return [int(counts[listed].sum()) for listed in (one > other, (one > other) | (one + other == 0))]

        dropped = hits(fresh[0])
        for place in (0, 1):
            if works(chain([dropped[place]], (hits(sample)[place] for sample in fresh[1:]))):
                listed = int((_shares_of(bads[0], bads) > _shares_of(bads[0], goods)).sum())
                return f"a list of {listed} values" + (f" without {ignored} bits" if ignored else "")
    for bit in range(BITS):
        for wanted in (0, 1):
            both = (sample.bits(field) for sample in fresh)
            if works(int(ones[bit]) if wanted else has - int(ones[bit]) for ones, has in both):
                return f"bit {bit}"
    for sample, inside in ((bad, True), (good, False)):
        low, high = (int(sample.counted(field)[0][place]) for place in (0, -1))
        within = (one.within(field, low, high) for one in fresh)
        if works(count if inside else one.size - count for count, one in zip(within, fresh, strict=True)):
            return f"the range {low} to {high}"
    return None


def pairs(
    drop: str,
    learnt: Mapping[str, Sample],
    tried: Mapping[str, Sample],
    may_pass: set[str],
    idea: set[str],
    errors: float = ERRORS,
) -> Iterator[str]:
    """Which two fields tell the class `drop` from all that must pass by the pairs of their values."""
    names = [drop, *(name for name in may_pass if name in learnt and name in tried)]
    codes: dict[str, tuple[int, list[np.ndarray]]] = {}
    for field in (field for field in learnt[drop].fields if not of_idea(field, idea) and len(names) > 1):
        if 1 - tried[drop].bits(field)[1] / tried[drop].size > errors:
            continue  # too few have the field
        coded = _coded([sample[name] for sample in (learnt, tried) for name in names], len(names), field)
        if coded:
            codes[field] = coded
    for one, other in combinations(codes, 2):
        (ones, firsts), (others, seconds) = codes[one], codes[other]
        shape, both = (ones, others), list(zip(firsts, seconds, strict=True))
        before = [_pairs(shape, *codes) / len(codes[0]) for codes in both[: len(names)]]
        blocked = before[0] > np.mean(before[1:], axis=0)
        now = _pairs(shape, *both[len(names)])
        for listed in (blocked, blocked | (np.sum(before, axis=0) == 0)):
            if 1 - now[listed].sum() / tried[drop].size <= errors and all(
                _pairs(shape, *codes)[listed].sum() / len(codes[0]) <= errors for codes in both[len(names) + 1 :]
            ):
                yield f"{one} and {other}"
                break


def _pairs(shape: tuple[int, int], ones: np.ndarray, others: np.ndarray) -> np.ndarray:
    """How many packets have each pair of codes but 0."""
    counts = np.bincount(ones * shape[1] + others, minlength=shape[0] * shape[1])
    return counts.reshape(shape)[1:, 1:]


def _coded(samples: list[Sample], learnt: int, field: str) -> tuple[int, list[np.ndarray]] | None:
    """How many codes there are, and the packets' ones: for each value or prefix of the first `learnt` samples one from
    1, 0 where there is none, the last one for what was not learnt. None if there is nothing to tell apart, or too much.
    """
    for ignored in WIDEST:
        some = [sample.counted(field, ignored)[0] for sample in samples[:learnt]]
        if max(map(len, some)) > FEW + 1:
            continue
        every = np.unique(np.concatenate(some))
        values = every[every >= 0]
        if len(values) <= FEW:
            break
    else:
        return None
    if len(values) < 2 and every[0] >= 0:
        return None
    places = np.append(values, values[-1:])  # of a value above all others, too

    def code(sample: Sample) -> np.ndarray:
        found = sample.counted(field, ignored)[0]
        codes = np.ones(len(found), dtype=np.int64)
        if len(values):
            place = np.searchsorted(values, found)
            codes += np.where(places[place] == found, place, len(values))
        codes[found < 0] = 0
        return codes[sample.coded(field, ignored)]

    return len(values) + 2, [code(sample) for sample in samples]


def busy(drop: str, tried: Mapping[str, Sample], may_pass: set[str], idea: set[str]) -> Iterator[str]:
    """Which fields have values that only the packets of the class `drop` have that often."""
    names = [drop, *(name for name in may_pass if name in tried)]
    for field in (field for field in tried[drop].fields if len(names) > 1 and not of_idea(field, idea)):
        values, counts = (
            np.concatenate(some) for some in zip(*(one.counted(field) for one in tried.values()), strict=True)
        )
        order = np.argsort(values, kind="stable")
        values, counts = _merged(values[order], counts[order])
        often = {}
        for name in names:
            found, packets = tried[name].counted(field)
            times = counts[np.searchsorted(values, found)]
            order = np.argsort(times)
            often[name] = times[order], np.append(np.cumsum(packets[order][::-1])[::-1], 0)
        for limit in np.unique(often[drop][0]):
            shares = [rest[np.searchsorted(times, limit)] / rest[0] for times, rest in often.values()]
            if 1 - shares[0] <= ERRORS_OF_SURVIVAL and max(shares[1:]) <= ERRORS_OF_SURVIVAL:
                yield f"{field}, values with at least {limit} packets"
                break


def all_known(learnt: Mapping[str, Sample], tried: Mapping[str, Sample], may_pass: set[str], field: str) -> bool:
    """Whether those that must pass had to pass before, so that a list of them could replace a ruleset."""
    known = np.concatenate([learnt[name].counted(field)[0] for name in may_pass if name in learnt])
    fresh = [tried[name].counted(field) for name in may_pass if name in tried]
    hits = sum(int(counts[np.isin(values, known)].sum()) for values, counts in fresh)
    return hits / sum(int(counts.sum()) for _, counts in fresh) > 1 - FRESH


def _atoms(bad: np.ndarray, good: np.ndarray, errors: float) -> list[tuple[int, int]]:
    """A few comparisons of the payload that fit much of what must be dropped and nothing that must pass."""
    chosen: list[tuple[int, int]] = []
    words = {place: (_word(bad, place), np.unique(_word(good, place))) for place in range(PAYLOAD)}
    left = np.full(len(bad), fill_value=True)
    while len(chosen) < PLACES and left.mean() > errors:
        best: tuple[int, int, int] = (0, 0, 0)
        for place, (wrong, right) in list(words.items()):
            values, counts = np.unique(wrong[left], return_counts=True)
            counts[np.isin(values, right)] = 0
            if not counts.any():
                del words[place]  # nor will there be any when fewer are left
            elif counts.max() > best[0]:
                best = (int(counts.max()), place, int(values[counts.argmax()]))
        if not best[0]:
            break
        chosen.append(best[1:])
        left &= words[best[1]][0] != best[2]
    return chosen


def _word(payload: np.ndarray, place: int) -> np.ndarray:
    return np.ascontiguousarray(payload[:, place : place + WORD]).view(">u4")[:, 0].astype(np.int64)


def _fits(atoms: list[tuple[int, int]], bad: np.ndarray, goods: list[np.ndarray], errors: float) -> bool:
    """Whether these comparisons separate."""

    def hit(payload: np.ndarray) -> np.ndarray:
        return np.asarray(np.any([_word(payload, place) == value for place, value in atoms], axis=0))

    return 1 - hit(bad).mean() <= errors and all(hit(good).mean() <= errors for good in goods)
