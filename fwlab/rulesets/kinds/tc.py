# SPDX-License-Identifier: GPL-2.0-or-later
"""tc: filters, queueing disciplines and actions, one command a line (tc -batch)."""

import itertools
import re
from collections.abc import Iterable, Iterator

from fwlab.rulesets.kind import Faults, KernelView, Loader, RulesetKind
from fwlab.rulesets.kinds.limits import MAX_BYTES, MAX_QUEUED
from fwlab.rulesets.kinds.lines import LINKS, asks_for, instructions, is_address, is_host_name, other_link

TC_OBJECTS = {"qdisc", "class", "filter", "chain", "action", "actions"}
DEVICE = re.compile(r"(eth|if)\d+")
#: Queueing disciplines whose limit is in bytes; that of the others is in packets.
BYTES = {"tbf", "bfifo", "red", "gred", "choke", "police"}
AMOUNT = re.compile(r"(\d{1,20}(?:\.\d{1,9})?)([a-zA-Z]{0,8})", re.ASCII)
UNITS = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
#: What comes before an address; a name of one word may be anything elsewhere.
_ADDRESSES = {"src_ip", "dst_ip", "enc_src_ip", "enc_dst_ip", "arp_sip", "arp_tip"}
_NAME = re.compile(r"[\w-]+", re.ASCII)
TC_VERBS = {"add", "del", "delete", "replace", "change"}
#: Results of an action; an action may name two.
TC_FATE = "(?:drop|ok|pass|pipe|continue|reclassify|shot|unspec)"
#: A slash stands between an address or value and its prefix or mask; anywhere else it would be a path. Quotes within a
#: word and backslashes do not match.
TC_WORD = re.compile(rf"[\w.:,+()=%-]+|[0-9a-fA-F:][0-9a-fA-FxX.:]*/[0-9a-fA-FxX.:]+|{TC_FATE}/{TC_FATE}")
#: Filters and actions that read programs from files or load libraries of iptables. tc accepts abbreviations of some,
#: so every word that begins like an option of bpf is refused too.
TC_REFUSED = re.compile(r"exec|bpf|ipt|xt|obj.*|bytecode.*|pinned")
#: A text in quotes is one word, as in `match "ipset(blacklist src)"`. Its parts are validated like words.
_QUOTED = re.compile(r"""(?<!\S)(["'])([^"']*)\1(?!\S)""")


def validate(lines: list[str]) -> Faults:
    """Only filters and queues on the test links; nothing that names a file or a program."""
    for number, words in instructions([_QUOTED.sub(r"\2", line) for line in _whole(lines)]):
        strange = next((word for word in words if not TC_WORD.fullmatch(word)), None)
        if strange is not None:
            hint = "write qdisc, class, filter, chain and action lines"
            yield number, f"{strange!r} is not allowed in a tc command", hint
        elif words[0] not in TC_OBJECTS or len(words) < 2 or words[1] not in TC_VERBS:
            hint = "begin with one of: qdisc class filter chain action"
            yield number, f"the tc command {' '.join(words[:2])} is not allowed", hint
        else:
            for word in words:
                if TC_REFUSED.fullmatch(word):
                    yield number, f"a ruleset must not name a file or a program ({word})", f"remove {word}"
            for name in _hosts(words):
                yield number, *asks_for(name)
            for device in _devices(words):
                if device not in LINKS:
                    yield number, *other_link(device)
            for limit in _limits(words):
                yield number, f"limit {limit}: the DUT has no memory for such a queue", "make the limit smaller"


def queue_in(text: str) -> str | None:
    """The first line that changes the queue at a link's exit. Every forwarded packet costs more or less with it."""
    for _, words in instructions([*_whole(text.split("\n"))]):
        if words[0] == "qdisc" and ("root" in words or not {"ingress", "clsact"}.intersection(words)):
            return " ".join(words)
    return None


def mirrored_in(text: str) -> str | None:
    """The first line with an action that sends packets by a link of its own choice."""
    found = (words for _, words in instructions([*_whole(text.split("\n"))]) if "mirred" in words)
    return next((" ".join(words) for words in found), None)


def _whole(lines: list[str]) -> Iterator[str]:
    """The lines as tc -batch reads them: a backslash at the end joins the next line, which is left empty here."""
    parts: list[str] = []
    empty = 0
    for line in lines:
        part = line.partition("#")[0]
        if part or not parts:
            parts.append(part)
        if "#" not in line and parts[-1].endswith("\\"):
            last, empty = parts.pop()[:-1], empty + 1
            if last or not parts:
                parts.append(last)
        else:
            yield "".join(parts)
            yield from [""] * empty
            parts, empty = [], 0
    if any(parts):
        yield "".join(parts)


def _hosts(words: list[str]) -> Iterator[str]:
    """Names where addresses belong, and words with dots that are no amounts."""
    padded = ["", "", "", *words]
    for first, second, before, word in zip(padded, padded[1:], padded[2:], words, strict=False):
        name = word.partition("/")[0]
        matched = before in ("src", "dst") and first == "match" and second in ("ip", "ip6")
        dotted = is_host_name(name) and not AMOUNT.fullmatch(name)
        if dotted or ((matched or before in _ADDRESSES) and not is_address(name) and _NAME.fullmatch(name)):
            yield name


def _devices(words: list[str]) -> Iterator[str]:
    """After a mirred action tc accepts abbreviations of dev. It also knows devices by number (if4)."""
    mirrors = False
    for word, following in zip(words, [*words[1:], ""], strict=True):
        mirrors = (mirrors or word == "mirred") and word not in ("action", "act")
        if word == "dev" or (mirrors and word in ("d", "de")):
            yield following
        elif DEVICE.fullmatch(word):
            yield word


def _limits(words: list[str]) -> Iterator[str]:
    """Limits of queues that are too large, in bytes or packets."""
    most = MAX_BYTES if BYTES.intersection(words) else MAX_QUEUED
    for word, value in itertools.pairwise(words):
        found = AMOUNT.fullmatch(value) if word == "limit" else None
        if found and float(found[1]) * UNITS.get(found[2].lower()[:1], 1) > most:
            yield value


def missing_from_kernel(shown: KernelView, lines: list[str]) -> str | None:
    """Devices without any filter."""
    devices = {words[words.index("dev") + 1] for words in map(str.split, lines) if words[0] == "filter"}
    for device in sorted(devices):
        places = ("ingress", "egress", "root")
        if not any(shown.run(f"tc filter show dev {device} {place}").strip() for place in places):
            return f"filters on {device}"
    return None


class TcLoader(Loader):
    """Loads a file with `tc -batch`."""

    tool = ("tc", "-batch", "-")

    def undo(self, loaded: bool) -> None:
        if loaded:
            places = ("clsact", "ingress", "root")
            lines = [f"qdisc del dev {device} {place}" for device in self.machine.devices() for place in places]
            self.machine.run("tc", "-force", "-batch", "-", text="\n".join(lines) + "\n")
            self.release(self.machine.modules())

    def release(self, modules: Iterable[str]) -> None:
        """Flush all actions: they can exist without a filter and then hold their module.

        An action cannot go while a filter that is being freed still uses it, so this may have to be repeated.
        """
        for name in modules:
            if name.startswith("act_"):
                self.machine.run("tc", "actions", "flush", "action", name.removeprefix("act_"))


KIND = RulesetKind(
    name="tc",
    suffix=".tc",
    position=60,
    validate=validate,
    loader=TcLoader,
    missing_from_kernel=missing_from_kernel,
    setting_in=queue_in,
    past_routing=mirrored_in,
)
