# SPDX-License-Identifier: GPL-2.0-or-later
"""The same rules in other forms, as the tools themselves make them, priced by the same packets."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from fwlab.model.errors import CannotMeasure, Refused
from fwlab.model.ruleset import RulesetFile
from fwlab.own.bench_client import Bench, Start, opened
from fwlab.own.layout import Layout
from fwlab.own.prices import Price, priced_again
from fwlab.own.walks import DELIVERED, FORWARDED, Walk

GIVEN = "as given"
LEGACY = "iptables-legacy-restore"
TRANSLATED = "iptables-restore-translate, nft"
PLAIN = "the same without the counters that it adds"
OPTIMIZED = "nft --optimize"
_COUNTER = re.compile(r" counter(?= |$)", re.MULTILINE)
_HANDLE, _COUNTED = re.compile(r" # handle \d+$", re.MULTILINE), re.compile(r"\bcounter packets \d+ bytes \d+")


@dataclass(frozen=True)
class Form:
    """One form.

    total   what a packet of each class costs, in the classes' order (None: it could not be sent)
    other   classes whose packet became something else than under the rules as given
    reason  why the tool cannot make this form, or the kernel cannot load it; then there is no more
    """

    name: str
    total: tuple[float | None, ...] = ()
    other: int = 0
    reason: str = ""


def forms(
    start: Start,
    untraced: Sequence[Bench],
    files: Sequence[RulesetFile],
    layout: Layout,
    prices: Sequence[Price],
    ns_per_instruction: float,
    notify: Callable[[str], None],
) -> list[Form]:
    """The rules in every form that their kinds have.

    untraced  other benches on this kernel
    """
    found = [Form(GIVEN, tuple(one.total for one in prices))]
    for name, tool, made in _made(start, files):
        notify(f"pricing another form: {name}")
        if isinstance(made, str):
            found.append(Form(name, reason=made))
            continue
        with opened(start, name) as bench:
            try:
                bench.load(made, tool)
            except (CannotMeasure, Refused) as error:
                found.append(Form(name, reason=short(error.message.removeprefix(f"{name}: "))))
                continue
            bench.prepare(layout)
            walks = [steps[-1] for steps, _ in bench.play([one.of.timed.steps for one in prices])]
            other = sum(_became(walk) != _became(one.of.walk) for walk, one in zip(walks, prices, strict=True))
            total = priced_again(bench, untraced, prices, ns_per_instruction)
        found.append(Form(name, tuple(total), other))
    return found


def _made(start: Start, files: Sequence[RulesetFile]) -> Iterator[tuple[str, str, list[RulesetFile] | str]]:
    """Name, tool and files of each form, or why its tool cannot make it."""
    kinds = {file.kind for file in files}
    tables = kinds & {"iptables", "ip6tables"}
    nft = list(files)
    if tables:
        yield LEGACY, "legacy", list(files)
        with opened(start, TRANSLATED) as bench:
            try:
                nft = [_translated(bench, file) if file.kind in tables else file for file in files]
            except (CannotMeasure, Refused) as error:
                yield TRANSLATED, "", short(error.message.removeprefix(f"{TRANSLATED}: "))
                return
        yield TRANSLATED, "", nft
        nft = [RulesetFile(file.name, file.kind, _COUNTER.sub("", file.text)) for file in nft]
        yield PLAIN, "", nft
    with opened(start, OPTIMIZED) as bench:
        try:
            bench.load(nft)
        except (CannotMeasure, Refused) as error:
            yield OPTIMIZED, "", short(error.message.removeprefix(f"{OPTIMIZED}: "))
            return
        yield OPTIMIZED, "optimized", [optimizable(bench.listed), *(file for file in files if file.kind == "ipset")]


def optimizable(listed: str) -> RulesetFile:
    """What `nft -a list ruleset` prints, as nft merges it: no `add rule` lines, and no counts, which differ."""
    return RulesetFile("rules.nft", "nft", _COUNTED.sub("counter", _HANDLE.sub("", listed)))


def _translated(bench: Bench, file: RulesetFile) -> RulesetFile:
    text = bench.translated(file)
    lost = [line for line in text.splitlines() if line.startswith("# -t ")]
    if lost:
        raise Refused(f"{len(lost)} of its rules have no form in nft, the first: {lost[0][2:]}", "leave them out")
    return RulesetFile(file.name, "nft", text)


def _became(walk: Walk | None) -> object:
    """What became of a packet; whether a rule or the kernel dropped it, only nf_tables' trace can say."""
    if walk is None:
        return None
    seen = {name: value for name, value in walk.outcome.items() if name != "fate"}
    return walk.fate in (FORWARDED, DELIVERED), seen


def short(message: str) -> str:
    """What a tool said, on one line."""
    return " ".join(message.split())[:300]
