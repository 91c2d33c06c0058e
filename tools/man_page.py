# SPDX-License-Identifier: GPL-2.0-or-later
"""fwlab(1): the manual page, from the commands as they are declared. The wheel installs it."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from fwlab.checkout.atomic_write import write_atomically
from fwlab.checkout.project import Project
from fwlab.cli.main import app

FILE = Path("fwlab", "cli", "fwlab.1")
_HEAD = """\
.\\" SPDX-License-Identifier: GPL-2.0-or-later
.\\" Generated from the commands: make readme
.TH FWLAB 1 "" "Firewall Performance Lab" "User Commands"
.SH NAME
fwlab \\- measure, judge and learn what a firewall rule costs
.SH SYNOPSIS
.B fwlab
.I COMMAND
.RI [ OPTIONS ]
.SH DESCRIPTION
Labs in which students measure what a firewall rule costs, on virtual machines whose clock counts instructions, so that
figures and marks are the same on every host.
Commands work in a checkout, or in a folder that
.B fwlab init
has made.
"""
_TAIL = """\
.SH EXIT STATUS
.TP
.B 0
Everything passed, or was done.
.TP
.B 1
A check failed, or a figure is outside its range.
.TP
.B 2
Something in the command or in a file is wrong; the message names it and the next command.
.TP
.B 3
Something could not be measured, so nothing is said about it.
.TP
.B 130
Interrupted; everything that was started has been stopped.
.SH ENVIRONMENT
.TP
.B NO_COLOR
Not empty: no colours.
.TP
.B FWLAB_TESTBED
.BR virtual " or " real ,
in place of
.BR \\-\\-testbed .
.TP
.B FWLAB_DUT
The system of the DUT:
.BR linux " or " freebsd .
.TP
.B FWLAB_CACHE
Where boxes and saved states of machines are kept.
.SH SEE ALSO
.BR vagrant (1),
.BR packer (1),
.BR nft (8),
.BR iptables (8),
.BR ipset (8)
"""


def man_page() -> str:
    """The page as roff."""
    commands = "".join(_command(name, one) for name, one in _commands(typer.main.get_command(app)))
    return f"{_HEAD}.SH COMMANDS\n{commands}{_TAIL}"


def write_man_page(project: Project) -> list[Path]:
    """Write it if it is stale; the paths written."""
    path, text = project.root / FILE, man_page()
    return [] if path.exists() and path.read_text(encoding="utf-8") == text else [write_atomically(path, text)]


def _commands(group: Any, *path: str) -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, *path, name)
        else:
            yield " ".join([*path, name]), command


def _command(name: str, command: Any) -> str:
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    options = [one for one in command.params if one.param_type_name == "option" and not one.hidden]
    words = " ".join(_metavar(one) for one in arguments)
    lines = [f".SS fwlab {_escaped(name)} {_escaped(words)}".rstrip()]
    lines += [_escaped(" ".join(paragraph.split())) + "\n.PP" for paragraph in command.help.split("\n\n")]
    lines[-1] = lines[-1].removesuffix("\n.PP")
    lines += [f".TP\n.I {_escaped(_metavar(one))}\n{_escaped(one.help)}" for one in arguments if one.help]
    for one in options:
        names = ", ".join([*one.opts, *one.secondary_opts])
        value = "" if one.is_flag else f" {_metavar(one)}"
        lines.append(f'.TP\n.BI "{_escaped(names)}" "{_escaped(value)}"\n{_escaped(one.help or "")}'.rstrip())
    return "\n".join(lines) + "\n"


def _metavar(parameter: Any) -> str:
    return str(parameter.metavar or parameter.name.upper())


def _escaped(text: str) -> str:
    """Text that roff takes for text."""
    plain = text.replace("\\", "\\e").replace("-", "\\-").replace('"', "\\(dq")
    return re.sub(r"^([.'])", r"\\&\1", plain)
