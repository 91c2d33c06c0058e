# SPDX-License-Identifier: GPL-2.0-or-later
"""`fwlab grade`, and what grades on other hosts: `fwlab worker` and `fwlab key`."""

import contextlib
import inspect
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from fwlab.checkout.project import find_project
from fwlab.cli.options import Json, LabName
from fwlab.cli.output import plain, print_json
from fwlab.grading.options import GradingOptions, option_name
from fwlab.grading.record import WorkMark
from fwlab.measure.labs import load_lab
from fwlab.model.errors import EXIT_FAIL, EXIT_PASS, EXIT_UNMEASURED
from fwlab.model.verdict import Outcome

out, err = Console(), Console(stderr=True)


def with_grading_options(command: Callable[[GradingOptions, bool], None]) -> Callable[..., None]:
    """The command with an option for each field of GradingOptions but `labs`, and --json, for typer."""
    parameters = [inspect.Parameter("lab", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=LabName)]
    for one in fields(GradingOptions)[1:]:
        metadata = one.metadata
        said = metadata["help"] + (f": {', '.join(metadata['choices'])}" if metadata["choices"] else "")
        option = typer.Option(
            f"--{option_name(one)}", metavar=metadata["metavar"] or None, help=f"{said[0].upper()}{said[1:]}."
        )
        parameters.append(
            inspect.Parameter(
                one.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=one.default,
                annotation=Annotated[one.type, option],
            )
        )

    parameters.append(inspect.Parameter("as_json", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Json))

    def called(lab: str, *, as_json: bool, **given: Any) -> None:
        command(GradingOptions(labs=[lab], **given), as_json)

    called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    called.__doc__ = command.__doc__
    return called


@with_grading_options
def grade_command(options: GradingOptions, as_json: bool) -> None:
    """Grade a class, or the lab's own rulesets. Exits with 1 if something failed, 3 if something is inconclusive."""
    from fwlab.grading.engine import Engine
    from fwlab.grading.grading_plan import plan_grading
    from fwlab.grading.outcomes import case_result, work_result
    from fwlab.measure.plan import chosen_cases
    from fwlab.report.progress import listener

    project = find_project()
    [lab] = options.labs or []
    load_lab(project, lab)
    plan = plan_grading(project, options)
    works = {(work.who, work.exercise.id): work for work in plan.works[lab]}
    columns = [TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()]
    outcomes: dict[tuple[str, str], tuple[Outcome, str]] = {}
    with contextlib.ExitStack() as stack:
        if plan.submissions is not None:
            stack.callback(plan.submissions.close)
        bar = stack.enter_context(
            Progress(*columns, TimeRemainingColumn(), console=err, transient=True, disable=not err.is_terminal)
        )
        task = bar.add_task(lab, total=len(works))

        def notify(text: str) -> None:
            plain(bar.console, text)

        def decided(_lab: str, mark: WorkMark) -> None:
            """A line for each submission that was measured, as it is decided."""
            outcome, reason = outcomes[mark.key] = work_result(works[mark.key], mark)
            must_fail = works[mark.key].expected is Outcome.FAIL and outcome is Outcome.PASS
            said = "fails, as it must" if must_fail else ": ".join([outcome, *reason.splitlines()[:1]])
            if mark.machines or mark.missing:
                notify(f"{'/'.join(mark.key)}: {said}")
            bar.update(task, completed=len(outcomes))

        events = stack.enter_context(listener(Console(stderr=True, force_terminal=False), announce=notify))
        engine = stack.enter_context(Engine(plan, notify, decided=decided, events=events))
        engine.begin({lab: list(works.values())})
        if outcomes:
            notify(f"{len(outcomes)} of {len(works)} need no machine: nothing was handed in, or it is no ruleset")
        for case in chosen_cases(plan.contexts[lab].lab, [], quick=True) if plan.with_cases else ():
            outcomes[case.id, ""] = found = case_result(engine, lab, case.id)
            notify(f"{case.id}: {': '.join(filter(None, found))}")
        try:
            for key, work in works.items():
                outcomes[key] = work_result(work, engine.mark(lab, work))
        finally:  # after Ctrl-C, too
            engine.close()
            if as_json:
                print_json(engine.document(lab))
            else:
                plain(out, engine.marks(lab))
                for line in engine.closing(lab):
                    plain(out, line)
    ends = {outcome for outcome, _ in outcomes.values()}
    if Outcome.FAIL in ends:
        raise typer.Exit(EXIT_FAIL)
    raise typer.Exit(EXIT_UNMEASURED if Outcome.INCONCLUSIVE in ends or engine.trouble else EXIT_PASS)


def worker_command(
    scheduler: Annotated[str, typer.Argument(metavar="ADDRESS", help="A scheduler, such as tls://192.0.2.7:8786.")],
    key: Annotated[Path | None, typer.Option(metavar="FILE", help="The key that `fwlab key` made.")] = None,
    name: Annotated[str | None, typer.Option(help="How messages call this worker (default: its address).")] = None,
) -> None:
    """Grade for a scheduler, on its own machines, until Ctrl-C."""
    from fwlab.grading.cluster import work_for
    from fwlab.testbed.own_machines import own_machines

    with own_machines(find_project()) as project:
        work_for(scheduler, project, name=name, key=key, notify=lambda text: plain(err, text))


def key_command(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="A new file.")],
    days: Annotated[int, typer.Option(metavar="N", min=1, help="How long it is valid.")] = 365,
) -> None:
    """Make the key that scheduler, workers and graders share. Who has it runs programs on all of them."""
    from fwlab.grading.keys import write_key

    write_key(path, days)
    plain(out, f"written: {path}; copy it to each host, readable by you alone")
    parts = " ".join(f"--tls-{part} {path}" for part in ("ca-file", "cert", "key"))
    plain(out, f"next: dask scheduler --protocol tls {parts} --no-dashboard")
