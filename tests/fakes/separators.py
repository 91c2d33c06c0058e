# SPDX-License-Identifier: GPL-2.0-or-later
"""Looks for fields that tell packets that must be dropped from those that must pass, whatever the seed.

A rule is learnt from the traffic of some seeds and tried on that of another one, as whoever reads a profile may do and
is graded afterwards. A rule knows one field: a list of its values or of their prefixes, one bit, or one range. Or it
knows two, and a list of pairs of their values or prefixes. Of the payload it may compare a few places. A ruleset may
have a rule for each class that must pass, and drop what none of them lets through. Or it counts packets by the values
of a field, and bans the busy ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from fwlab.generator.traffic_store import TrafficStore
from fwlab.model.lab import Exercise
from fwlab.traffic import Frames
from fwlab.traffic.frames import cut
from fwlab.traffic.headers import IPV4, Headers, read_headers

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
#: Comparisons of the payload in one ruleset, of so many bytes.
PLACES, WORD = 8, 4
#: Metrics of which a check says that a class must be dropped, or must pass.
_METRICS = ("delivered", "survival", "returned", "admitted")
#: Name, place in the header, bytes. `ip`: of IPv4.
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
_HEADER = {6: 20, 17: 8, 1: 8}
#: Different values, sorted, and how many packets have each.
Counted = tuple[np.ndarray, np.ndarray]


@dataclass
class Sample:
    """Packets of one class. fields: by name, one value for each packet, -1 where there is no such field; payload: its
    first bytes, filled with zeros."""

    fields: dict[str, np.ndarray]
    payload: np.ndarray

    def __post_init__(self) -> None:
        self._counted: dict[str, Counted] = {}

    def counted(self, field: str) -> Counted:
        """The field's different values, and how many packets have each."""
        if field not in self._counted:
            self._counted[field] = np.unique(self.fields[field], return_counts=True)
        return self._counted[field]

    def joined(self, other: Sample) -> Sample:
        fields = {name: np.concatenate([values, other.fields[name]]) for name, values in self.fields.items()}
        return Sample(fields, np.concatenate([self.payload, other.payload]))


def judged(exercise: Exercise) -> tuple[set[str], set[str]]:
    """The classes that must be dropped, and those that must pass."""
    checks = [check for check in exercise.checks if check.traffic_class and check.metric in _METRICS]
    # A class of which most of a large packet's senders are told is dropped, and what returns is the firewall's own.
    drop = {str(check.traffic_class) for check in checks if check.metric != "returned" and check.between[1] <= 0.2}
    if any(check.metric == "passed" for check in exercise.checks):  # the honest ones of a table that others fill
        return {"residents"}, {"newcomers", "members"}
    return drop, {str(check.traffic_class) for check in checks if check.between[0] >= 0.7} - drop


def samples(store: TrafficStore, traffic: str) -> dict[str, Sample]:
    """The packets of a traffic, by class."""
    frames, found = store.table(traffic).frames, store.classified(traffic)
    headers = read_headers(frames)
    table = frames.matrix(14 + 8 + 60 + 20 + PAYLOAD + WORD)
    rows, at = np.arange(len(frames)), headers.network
    four = headers.version == IPV4
    transport = at + np.where(four, (table[rows, at] & 15).astype(np.int64) * 4, 40)
    fields, taken = _fields(frames, headers, table, transport), {}
    size = np.select([headers.protocol == protocol for protocol in _HEADER], list(_HEADER.values()), 0)
    for number, name in enumerate(store.known_frames(traffic).names):
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
        "ports": (transport, headers.sport >= 0),
        "udp": (transport, headers.protocol == 17),
        "tcp": (transport, headers.protocol == 6),
        "icmp": (transport, headers.protocol == 1),
    }
    fields = {"length": frames.lengths}
    for name, layer, offset, size in _FIELDS:
        begin, has = there[layer]
        fields[name] = value = np.full(len(frames), -1, dtype=np.int64)
        if has.any():
            value[has] = cut(data, rows[has] + begin[has] + offset, size).astype(np.int64) @ _weights(size)
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
            fresh = [tried[name].counted(field) for name in (drop, *passing)]
            how = _one_field(bad.counted(field), good.counted(field), fresh, errors)
            if how:
                yield f"{field}, {how}"
    if "payload" not in idea:
        atoms = _atoms(bad.payload, good.payload, errors)
        if atoms and _fits(atoms, tried[drop].payload, [tried[name].payload for name in passing], errors):
            yield "payload at " + ", ".join(str(place) for place, _ in atoms)


def _one_field(bad: Counted, good: Counted, fresh: list[Counted], errors: float) -> str | None:
    """The kind of rule that separates by this field; None if none does. fresh: of what to drop, then of what passes."""

    def works(hits: Iterator[np.ndarray]) -> bool:
        shares = (counts[hit].sum() / counts.sum() for hit, (_, counts) in zip(hits, fresh, strict=False))
        return bool(1 - next(shares) <= errors and all(share <= errors for share in shares))

    every = [values for values, _ in fresh]
    for ignored in IGNORED:
        # A value that is more frequent among what must be dropped; one that was never seen is dropped, or is not.
        places, inverse = np.unique(np.concatenate([bad[0], good[0]]) >> ignored, return_inverse=True)
        parts = (inverse[: len(bad[0])], bad[1]), (inverse[len(bad[0]) :], good[1])
        shares = [np.bincount(part, counts, minlength=len(places)) / counts.sum() for part, counts in parts]
        blocked = places[shares[0] > shares[1]]
        for unseen in (False, True):
            if works(
                np.isin(values >> ignored, blocked) | (unseen & ~np.isin(values >> ignored, places)) for values in every
            ):
                return f"a list of {len(blocked)} values" + (f" without {ignored} bits" if ignored else "")
    for bit in range(32):
        for wanted in (0, 1):
            if works((values >= 0) & (values >> bit & 1 == wanted) for values in every):
                return f"bit {bit}"
    for low, high, inside in ((bad[0][0], bad[0][-1], True), (good[0][0], good[0][-1], False)):
        if works(((values >= low) & (values <= high)) == inside for values in every):
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
        coded = _coded([sample[name] for sample in (learnt, tried) for name in names], len(names), field)
        if coded:
            codes[field] = coded
    for one, other in combinations(codes, 2):
        (ones, firsts), (others, seconds) = codes[one], codes[other]
        counts = [
            np.bincount(a * others + b, minlength=ones * others).reshape(ones, others)[1:, 1:]  # who has both
            for a, b in zip(firsts, seconds, strict=True)
        ]
        sizes = [len(codes) for codes in firsts]
        before = [count / size for count, size in zip(counts[: len(names)], sizes, strict=False)]
        blocked = before[0] > np.mean(before[1:], axis=0)
        for listed in (blocked, blocked | (np.sum(before, axis=0) == 0)):
            now = zip(counts[len(names) :], sizes[len(names) :], strict=True)
            shares = [count[listed].sum() / size for count, size in now]
            if 1 - shares[0] <= errors and max(shares[1:]) <= errors:
                yield f"{one} and {other}"
                break


def _coded(samples: list[Sample], learnt: int, field: str) -> tuple[int, list[np.ndarray]] | None:
    """How many codes there are, and the packets' ones: for each value or prefix of the first `learnt` samples one from
    1, 0 where there is none, the last one for what was not learnt. None if there is nothing to tell apart, or too much.
    """
    every = np.unique(np.concatenate([sample.counted(field)[0] for sample in samples[:learnt]]))
    for ignored in WIDEST:
        values = np.unique(every[every >= 0] >> ignored)
        if len(values) <= FEW:
            break
    if len(values) > FEW or (len(values) < 2 and every[0] >= 0):
        return None
    places = np.append(values, values[-1:])  # of a value above all others, too

    def code(sample: Sample) -> np.ndarray:
        found = sample.fields[field] >> ignored
        if not len(values):
            return np.where(found < 0, 0, 1)
        place = np.searchsorted(values, found)
        return np.where(found < 0, 0, np.where(places[place] == found, place, len(values)) + 1)

    return len(values) + 2, [code(sample) for sample in samples]


def busy(drop: str, tried: Mapping[str, Sample], may_pass: set[str], idea: set[str]) -> Iterator[str]:
    """Which fields have values that only the packets of the class `drop` have so often."""
    passing = [name for name in may_pass if name in tried]
    for field in (field for field in tried[drop].fields if passing and not of_idea(field, idea)):
        every = np.concatenate([sample.fields[field] for sample in tried.values()])
        values, counts = np.unique(every, return_counts=True)
        often = {name: counts[np.searchsorted(values, tried[name].fields[field])] for name in (drop, *passing)}
        for limit in np.unique(often[drop]):
            shares = [(often[name] >= limit).mean() for name in (drop, *passing)]
            if 1 - shares[0] <= ERRORS_OF_SURVIVAL and max(shares[1:]) <= ERRORS_OF_SURVIVAL:
                yield f"{field}, values with at least {limit} packets"
                break


def all_known(learnt: Mapping[str, Sample], tried: Mapping[str, Sample], may_pass: set[str], field: str) -> bool:
    """Whether those that must pass had to pass before, so that a list of them could replace a ruleset."""
    known = [learnt[name].fields[field] for name in may_pass if name in learnt]
    fresh = [tried[name].fields[field] for name in may_pass if name in tried]
    return bool(np.isin(np.concatenate(fresh), np.concatenate(known)).mean() > 1 - FRESH)


def _atoms(bad: np.ndarray, good: np.ndarray, errors: float) -> list[tuple[int, int]]:
    """A few comparisons of the payload that fit much of what must be dropped and nothing that must pass."""
    chosen: list[tuple[int, int]] = []
    words = {place: (_word(bad, place), _word(good, place)) for place in range(PAYLOAD)}
    left = np.full(len(bad), fill_value=True)
    while len(chosen) < PLACES and left.mean() > errors:
        best: tuple[int, int, int] = (0, 0, 0)
        for place, (wrong, right) in words.items():
            values, counts = np.unique(wrong[left], return_counts=True)
            counts[np.isin(values, right)] = 0
            if len(counts) and counts.max() > best[0]:
                best = (int(counts.max()), place, int(values[counts.argmax()]))
        if not best[0]:
            break
        chosen.append(best[1:])
        left &= words[best[1]][0] != best[2]
    return chosen


def _word(payload: np.ndarray, place: int) -> np.ndarray:
    return np.asarray(payload[:, place : place + WORD].astype(np.int64) @ _weights(WORD))


def _weights(size: int) -> np.ndarray:
    """What each byte of a number of this size counts."""
    return np.asarray(1 << 8 * np.arange(size)[::-1])


def _fits(atoms: list[tuple[int, int]], bad: np.ndarray, goods: list[np.ndarray], errors: float) -> bool:
    """Whether these comparisons separate."""

    def hit(payload: np.ndarray) -> np.ndarray:
        return np.asarray(np.any([_word(payload, place) == value for place, value in atoms], axis=0))

    return 1 - hit(bad).mean() <= errors and all(hit(good).mean() <= errors for good in goods)
