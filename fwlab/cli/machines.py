# SPDX-License-Identifier: GPL-2.0-or-later
"""`fwlab machines plan`: what Vagrant is given for the machines of labs."""

from typing import Annotated

import typer

from fwlab.checkout.project import find_project, lab_ids
from fwlab.cli.output import print_json
from fwlab.machines.plan import Plan
from fwlab.model.errors import BadInput

app = typer.Typer(help="The labs' machines.", no_args_is_help=True)


@app.callback()
def machines() -> None:
    """The labs' machines."""


@app.command("plan")
def plan_command(
    labs: Annotated[list[str] | None, typer.Argument(metavar="[LAB]...", help="Labs; all by default.")] = None,
) -> None:
    """Print as JSON what the Vagrantfile makes of topology.yml, the labs and the environment."""
    project = find_project()
    there = lab_ids(project)
    if unknown := [lab for lab in labs or [] if lab not in there]:
        raise BadInput(f"unknown lab {unknown[0]}; there are: {', '.join(there)}", "fwlab list")
    print_json(Plan(project.root).planned(labs or []))
