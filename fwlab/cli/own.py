# SPDX-License-Identifier: GPL-2.0-or-later
"""`fwlab compare` and `fwlab price`: whether another ruleset does the same as one's own, and what both cost."""

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, NamedTuple

import typer
from rich.console import Console

from fwlab.checkout.atomic_write import check_writable, write_atomically
from fwlab.checkout.project import find_project
from fwlab.cli.options import Events, Json, Keep, MachinesOf, TestbedName, Verbose, number
from fwlab.cli.output import plain, print_json
from fwlab.host.ssh import Ssh
from fwlab.measure.context import run_context
from fwlab.measure.session import open_session
from fwlab.metrics.call_stacks import RATES
from fwlab.model.errors import EXIT_FAIL, EXIT_PASS, BadInput, CannotMeasure
from fwlab.model.events import EventSink, ResultMade, StepStarted
from fwlab.model.printable import printable
from fwlab.own import bench_client, showing
from fwlab.own.bench_client import Start, loaded, opened
from fwlab.own.captures import Capture, captured, routes
from fwlab.own.changes import changes
from fwlab.own.comparing import compare
from fwlab.own.files import named, own_files
from fwlab.own.forms import forms
from fwlab.own.layout import Layout, layout_of
from fwlab.own.prices import classes, dearer, heaviest, price, sampled, side_by_side
from fwlab.own.reach import reach
from fwlab.own.rules import Rules
from fwlab.own.stretches import divide
from fwlab.report.own_page import page
from fwlab.report.progress import json_lines, listener

#: The lab whose machines are used, unless others are named.
LAB = "lab01-forwarding"

Here = Annotated[bool, typer.Option("--here", help="Ask the kernel of this host, in a network namespace; no machines.")]
Addresses = Annotated[
    list[str] | None, typer.Option("--address", metavar="IP", help="An address of the firewall; may be repeated.")
]
Pcap = Annotated[
    Path | None, typer.Option("--pcap", metavar="FILE", help="A capture: its packets are played, too, and weigh.")
]
PcapOnly = Annotated[bool, typer.Option("--pcap-only", help="Play the capture's packets alone.")]
RoutesGiven = Annotated[
    list[str] | None,
    typer.Option("--route", metavar="NETWORK=INTERFACE", help="Where the capture's addresses are; may be repeated."),
]
Seed = Annotated[int, typer.Option(help="Seed of what is drawn of long lists.")]
Html = Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write a page with a flame graph, too.")]
Forms = Annotated[bool, typer.Option("--forms", help="Price the same rules as other tools load them.")]
Changes = Annotated[bool, typer.Option("--changes", help="Try changes that may help, and measure them.")]
#: How much dearer NEW may be.
AT_MOST = "5%"


class Kernel(NamedTuple):
    """A kernel that is asked: how a bench is started there, and what an instruction takes (ns), if that is fixed."""

    start: Start
    ns_per_instruction: float | None


def price_command(
    rules: Annotated[list[Path], typer.Argument(metavar="RULES...", help="Files of one ruleset, or a folder.")],
    other_forms: Forms = False,
    try_changes: Changes = False,
    html: Html = None,
    address: Addresses = None,
    pcap: Pcap = None,
    pcap_only: PcapOnly = False,
    route: RoutesGiven = None,
    as_json: Json = False,
    events: Events = False,
    testbed: TestbedName = "auto",
    keep: Keep = False,
    verbose: Verbose = False,
    seed: Seed = 1,
    machines: MachinesOf = None,
) -> None:
    """Say what your own rules cost: the instructions for a packet about which each of them decides, and where they go.

    Exit 3: it could not be measured.
    """
    files, capture = own_files(rules), _capture(pcap, pcap_only, route)
    if html is not None:
        check_writable(html.parent)
    with (
        _notifying(verbose, events) as (emit, notify),
        _kernel(False, testbed, keep, machines, emit) as kernel,
    ):
        per_instruction = _fixed(kernel)
        with opened(kernel.start, named(files)) as bench, opened(kernel.start, "no rules") as bare:
            known = loaded(bench, files)
            bare.load([])
            layout = layout_of([known], address or ())
            for one in (bench, bare):
                one.prepare(layout)
            more = capture([known], layout) if capture else None
            reached = reach(bench, known, layout, None, notify, more, only_captured=pcap_only)
            prices = price(bench, bare, known, classes(reached), per_instruction, notify)
            if more:
                counted = more.by_decider(reached.drawn, reached.played)
                prices = [replace(one, weight=counted[one.of.decider]) for one in prices]
            division = divide(bench, known, prices, per_instruction, notify)
            most = next(iter(heaviest(prices)), None)
            stacks = sampled(bench, bare, most, RATES, notify) if html is not None and most is not None else {}
            made = (
                forms(kernel.start, (bench, bare), files, layout, prices, per_instruction, notify)
                if other_forms
                else []
            )
        tried = (
            changes(kernel.start, files, bench.listed, address or (), seed, per_instruction, notify)
            if try_changes
            else None
        )
    document = {
        "kernel": bench.kernel,
        **showing.prices_document(prices, division, reached),
        **_taken(layout, more),
        **({"forms": showing.forms_document(made, prices)} if made else {}),
        **({"changes": showing.changes_document(tried)} if tried is not None else {}),
    }
    if html is not None:
        words = None if tried is None else [showing.change_in_words(one) for one in tried]
        of = document["classes"][prices.index(most)] if most else None
        where = showing.division_in_words(division)
        write_atomically(html, page(bench.name, document, where, words, of, stacks))
    if as_json:
        print_json(document)
    else:
        lines = [*_taken(layout, more).values(), *showing.price_lines(prices, division, reached, bench.name)]
        lines += showing.form_lines(made, prices) if made else ()
        lines += showing.change_lines(tried) if tried is not None else ()
        _say("\n".join(lines), events)
    raise typer.Exit(EXIT_PASS)


def compare_command(
    old: Annotated[Path, typer.Argument(metavar="OLD", help="A file of rules, or a folder with several.")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="The rules that are to do the same.")],
    here: Here = False,
    no_price: Annotated[bool, typer.Option("--no-price", help="Do not measure what they cost.")] = False,
    at_most: Annotated[str, typer.Option("--at-most", metavar="SHARE", help="How much dearer NEW may be.")] = AT_MOST,
    address: Addresses = None,
    pcap: Pcap = None,
    pcap_only: PcapOnly = False,
    route: RoutesGiven = None,
    as_json: Json = False,
    events: Events = False,
    testbed: TestbedName = "auto",
    keep: Keep = False,
    verbose: Verbose = False,
    seed: Seed = 1,
    machines: MachinesOf = None,
) -> None:
    """Say whether two rulesets do the same with packets drawn from both, and which is dearer; show where they differ.

    Exit 0: no difference was found, and NEW is not dearer than --at-most; 1: a difference was found, or NEW is dearer;
    3: it could not be tried.
    """
    files, most = (own_files([old]), own_files([new])), number(at_most)
    capture = _capture(pcap, pcap_only, route)
    with (
        _notifying(verbose, events) as (emit, notify),
        _kernel(here, testbed, keep, machines, emit) as kernel,
        opened(kernel.start, f"OLD {old.name}") as before,
        opened(kernel.start, f"NEW {new.name}") as after,
    ):
        per_instruction = None if here or no_price else _fixed(kernel)
        rules = loaded(before, files[0]), loaded(after, files[1])
        layout = layout_of(rules, address or ())
        more = capture(rules, layout) if capture else None
        found = compare(before, after, rules, layout, seed, notify, more, only_captured=pcap_only)
        pairs = side_by_side(before, after, found.old, per_instruction, notify) if per_instruction else []
        if more:
            counted = more.by_decider(found.old.drawn, found.old.played)
            pairs = [replace(one, weight=counted[one.of.decider]) for one in pairs]
    if as_json:
        prices = {"prices": showing.pairs_document(pairs, rules[0])} if pairs else {}
        print_json({**showing.comparison_document(found), **prices, **_taken(layout, more)})
    else:
        source = showing.DRAWN if pcap is None else showing.CAPTURED if pcap_only else showing.BOTH
        lines = [*_taken(layout, more).values(), *showing.comparison_lines(found, (before.name, after.name), source)]
        _say("\n".join([*lines, *(showing.pair_lines(pairs, rules[0]) if pairs else ())]), events)
    raise typer.Exit(EXIT_FAIL if found.differences or (dearer(pairs) or 0.0) > most else EXIT_PASS)


def _say(text: str, events: bool) -> None:
    """Print what was found, or emit it as the last event."""
    if events:
        json_lines(sys.stdout)(ResultMade(text))
    else:
        plain(Console(), text)


def _capture(
    path: Path | None, alone: bool, given: Sequence[str] | None
) -> Callable[[Sequence[Rules], Layout], Capture] | None:
    """What reads the capture, once it is known which interfaces there are. Raises BadInput."""
    if path is None:
        if alone or given:
            raise BadInput("there is no capture", "give it with --pcap FILE")
        return None
    if not path.is_file():
        raise BadInput(f"{printable(path)}: no such file", "tcpdump -i any -w my.pcap, on the firewall")
    return lambda rules, layout: captured(path, routes(rules, layout, given or ()))


def _taken(layout: Layout, capture: Capture | None) -> dict[str, str]:
    """What the machine was given, and what of a capture is played."""
    return {"layout": layout.words(), **({"capture": capture.words()} if capture else {})}


@contextlib.contextmanager
def _notifying(verbose: bool, events: bool) -> Iterator[tuple[EventSink, Callable[[str], None]]]:
    """Where events go, and a function that reports a step by its words."""
    if events:
        emit = json_lines(sys.stdout)
        yield emit, lambda step: emit(StepStarted(step))
        return
    with listener(Console(stderr=True), verbose=verbose) as emit:
        yield emit, lambda step: emit(StepStarted(step))


@contextlib.contextmanager
def _kernel(here: bool, testbed: str, keep: bool, machines: str | None, emit: EventSink) -> Iterator[Kernel]:
    """The kernel that is asked."""
    if here:
        yield Kernel(bench_client.here, None)
        return
    context = run_context(find_project(), LAB, testbed, keep=keep, machines=machines)
    if context.topology.nodes["dut"].system != "linux":
        raise BadInput("rules are tried on a DUT that runs Linux", "unset FWLAB_DUT")
    with open_session(context, emit) as session:
        yield Kernel(bench_client.on(Ssh(session.ssh_config, "dut")), session.run.testbed.ns_per_instruction)


def _fixed(kernel: Kernel) -> float:
    """What an instruction takes. Raises CannotMeasure where that is not fixed."""
    if not kernel.ns_per_instruction:
        raise CannotMeasure("prices are counted by the virtual testbed's clock", "the same with --testbed virtual")
    return kernel.ns_per_instruction
