# SPDX-License-Identifier: GPL-2.0-or-later
"""`fwlab web`: the labs in the browser."""

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from fwlab.checkout.project import Project, find_project
from fwlab.cli.output import plain
from fwlab.grading.course import Course, read_course
from fwlab.model.errors import BadInput, CannotMeasure
from fwlab.model.printable import printable

out = Console()
PORT = 8080
#: Nobody else's host reaches these.
LOOPBACK = ("127.0.0.1", "::1")


def web_command(
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0: any that is free.")] = PORT,
    address: Annotated[
        str,
        typer.Option("--address", help="The IP address to listen at; all others than 127.0.0.1 and ::1 let others in."),
    ] = "127.0.0.1",
    shell: Annotated[
        bool | None,
        typer.Option(
            "--shell/--no-shell", help="Offer shells on this host and on the DUT (default: only at 127.0.0.1 and ::1)."
        ),
    ] = None,
    class_folder: Annotated[
        Path | None, typer.Option("--class", metavar="DIR", help="Show the grading in this folder, also as it runs.")
    ] = None,
    course: Annotated[
        Path | None, typer.Option(metavar="FILE", help="course.yml, for the grades of the class.")
    ] = None,
    origin: Annotated[
        str | None, typer.Option(metavar="URL", help="Where a forwarder, such as a codespace's, shows the page.")
    ] = None,
) -> None:
    """Show the labs in the browser: pages, exercises, checks, measurements, machines. Ctrl-C ends it."""
    project = find_project()
    if find_spec("nicegui") is None:
        raise CannotMeasure("the page needs NiceGUI, which is not installed", _installs(project))
    from fwlab.web.instructor import Classroom
    from fwlab.web.server import serve  # a second, which no other command takes

    if origin is not None and not re.fullmatch(r"https?://[A-Za-z0-9.-]+(:\d+)?", origin):
        raise BadInput(f"{printable(origin)} is no origin", "give scheme and host, such as https://name.example.org")
    classroom = Classroom(class_folder, read_course(project, course) if course else Course()) if class_folder else None
    offered = address in LOOPBACK if shell is None else shell
    serve(project, address, port, _say, shell=offered, classroom=classroom, origin=origin)


def _say(address: str) -> None:
    plain(out, f"open: {address}\nCtrl-C ends it.")


def _installs(project: Project) -> str:
    """The command that installs what is missing."""
    if (project.root / "requirements.lock").exists():
        return "provision/host/venv"
    return "uv tool install 'fwlab-….whl[web]' (or pipx install), with the wheel that you were given"
