# SPDX-License-Identifier: GPL-2.0-or-later
"""Filters, queues and actions of tc, one line each."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

from fwlab.rulesets.lines import LINKS, instructions, plain
from fwlab.rulesets.memory import MOST_BYTES, MOST_QUEUED

TC_OBJECTS = {"qdisc", "class", "filter", "chain", "action", "actions"}
DEVICE = re.compile(r"(eth|if)\d+")
#: Queues whose limit is in bytes; that of the others is in packets.
BYTES = {"tbf", "bfifo", "red", "gred", "choke", "police"}
AMOUNT = re.compile(r"(\d{1,20}(?:\.\d{1,9})?)([a-zA-Z]{0,8})", re.ASCII)
UNITS = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
TC_VERBS = {"add", "del", "delete", "replace", "change"}
#: What can become of a packet: an action may name two.
TC_FATE = "(?:drop|ok|pass|pipe|continue|reclassify|shot|unspec)"
#: A slash stands between an address or value and its prefix or mask; anywhere else it would be a path.
TC_WORD = re.compile(rf"[\w.:,+()=%-]+|[0-9a-fA-F:][0-9a-fA-FxX.:]*/[0-9a-fA-FxX.:]+|{TC_FATE}/{TC_FATE}")
#: Kinds of filter and action that read programs from files, or load libraries of iptables. tc takes beginnings of
#: words for some, so whatever begins like the options of bpf is out as well.
TC_REFUSED = re.compile(r"exec|bpf|ipt|xt|obj.*|bytecode.*|pinned")


def tc(lines: list[str]) -> Iterator[tuple[int, str, str]]:
    for number, words in instructions(lines):
        strange = plain(words, TC_WORD)
        if strange is not None:
            yield number, f"{strange!r} is no word of a filter", "write qdisc, class, filter, chain and action lines"
        elif words[0] not in TC_OBJECTS or len(words) < 2 or words[1] not in TC_VERBS:
            yield number, f"{' '.join(words[:2])} loads nothing", "begin with one of: qdisc class filter chain action"
        else:
            for word in words:
                if TC_REFUSED.fullmatch(word):
                    yield number, f"a ruleset names no file and no program ({word})", f"remove {word}"
            for device in _devices(words):
                if device not in LINKS:
                    yield number, f"{device} is none of the DUT's links", f"use {' or '.join(LINKS)}"
            for limit in _limits(words):
                yield number, f"limit {limit}: the DUT has no memory for such a queue", "make the limit smaller"


def _devices(words: list[str]) -> Iterator[str]:
    """tc takes the beginning of dev behind a mirred action, and knows devices by their numbers as well (if4)."""
    mirrors = False
    for word, following in zip(words, [*words[1:], ""], strict=True):
        mirrors = (mirrors or word == "mirred") and word not in ("action", "act")
        if word == "dev" or (mirrors and word in ("d", "de")):
            yield following
        elif DEVICE.fullmatch(word):
            yield word


def _limits(words: list[str]) -> Iterator[str]:
    """Packets or bytes that a queue may hold; how many are too many hangs on the queue."""
    most = MOST_BYTES if BYTES.intersection(words) else MOST_QUEUED
    for word, value in itertools.pairwise(words):
        found = AMOUNT.fullmatch(value) if word == "limit" else None
        if found and float(found[1]) * UNITS.get(found[2].lower()[:1], 1) > most:
            yield value
