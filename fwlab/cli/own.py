# SPDX-License-Identifier: GPL-2.0-or-later
"""`fwlab compare`: somebody's own firewall, and whether another ruleset does the same."""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from fwlab.cli.options import Json, Keep, MachinesOf, TestbedName, Verbose, run_context
from fwlab.cli.output import plain, print_json
from fwlab.dut.agent_client import with_line
from fwlab.host.ssh import Ssh
from fwlab.measure.session import open_session
from fwlab.model.errors import EXIT_FAIL, EXIT_PASS, BadInput, Refused
from fwlab.model.events import Listener, StepStarted
from fwlab.model.ruleset import RulesetFile
from fwlab.own import bench_client
from fwlab.own.bench_client import Bench, Start, opened
from fwlab.own.comparing import compare
from fwlab.own.files import HOW, own_files
from fwlab.own.rules import Rules
from fwlab.own.showing import comparison_document, comparison_lines
from fwlab.report.progress import listener

#: The lab whose machines are used, unless others are named.
LAB = "lab01-forwarding"

Here = Annotated[
    bool, typer.Option("--here", help="Ask the kernel of this host, as root, in a network namespace; no machines.")
]
Addresses = Annotated[
    list[str] | None, typer.Option("--address", metavar="IP", help="An address of the firewall; may be repeated.")
]
Seed = Annotated[int, typer.Option(help="Seed of what is drawn of long lists.")]


def compare_command(
    old: Annotated[Path, typer.Argument(metavar="OLD", help="A file of rules, or a folder with several.")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="The rules that are to do the same.")],
    here: Here = False,
    address: Addresses = None,
    as_json: Json = False,
    testbed: TestbedName = "auto",
    keep: Keep = False,
    verbose: Verbose = False,
    seed: Seed = 1,
    machines: MachinesOf = None,
) -> None:
    """Say whether two rulesets do the same with packets drawn from both, and show where they do not.

    Exit 0: no difference was found; 1: a difference; 3: it could not be tried.
    """
    files = own_files([old]), own_files([new])
    err = Console(stderr=True)
    with (
        listener(err, verbose=verbose) as tell,
        _kernel(here, testbed, keep, machines, tell) as start,
        opened(start, f"OLD {old.name}") as before,
        opened(start, f"NEW {new.name}") as after,
    ):
        rules = loaded(before, files[0]), loaded(after, files[1])
        found = compare(before, after, rules, address or (), seed, lambda step: tell(StepStarted(step)))
    if as_json:
        print_json(comparison_document(found))
    else:
        plain(Console(), "\n".join(comparison_lines(found, (f"OLD {old.name}", f"NEW {new.name}"))))
    raise typer.Exit(EXIT_FAIL if found.differences else EXIT_PASS)


@contextlib.contextmanager
def _kernel(here: bool, testbed: str, keep: bool, machines: str | None, tell: Listener) -> Iterator[Start]:
    """Where benches are started."""
    if here:
        yield bench_client.here
        return
    context = run_context(LAB, testbed, keep=keep, machines=machines)
    if context.topology.nodes["dut"].system != "linux":
        raise BadInput("rules are compared on a DUT that runs Linux", "unset FWLAB_DUT")
    with open_session(context, tell) as session:
        yield bench_client.on(Ssh(session.ssh_config, "dut"))


def loaded(bench: Bench, files: Sequence[RulesetFile]) -> Rules:
    """The rules of these files on a bench. Raises BadInput with the line that its kernel or its tools refuse."""
    try:
        rules = bench.load(files)
    except Refused as error:
        raise BadInput(with_line(error.message, files), "correct the file and try again") from error
    if not rules.chains:
        raise BadInput(f"{bench.name}: no chain that packets meet", HOW)
    return rules
