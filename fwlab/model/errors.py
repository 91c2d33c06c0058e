# SPDX-License-Identifier: GPL-2.0-or-later
"""The one error a user sees: what is wrong, where, and the next command."""

from __future__ import annotations

from fwlab.model.printable import plain_lines

#: Exit codes of every command and of the grading run (design.md, "Commands").
EXIT_PASS = 0
EXIT_FAIL = 1
EXIT_USAGE = 2
EXIT_UNMEASURED = 3


class FwlabError(Exception):
    """Something the user can act on. The doors print it in two lines and never show a traceback.

    `message` names the item and the place; `hint` is the next command or step; `exit_code` is what
    the command ends with. Both are made plain: they may quote a stranger's file.
    """

    exit_code = EXIT_USAGE

    def __init__(self, message: str, hint: str = "") -> None:
        self.message, self.hint = plain_lines(message), plain_lines(hint)
        super().__init__(self.message)

    def __str__(self) -> str:
        return f"{self.message}\n  next: {self.hint}" if self.hint else self.message


class BadInput(FwlabError):
    """A file or an argument is wrong; nothing was started."""


class Refused(FwlabError):
    """A tool on the DUT refused a ruleset. `message` holds the tool's own words."""

    exit_code = EXIT_FAIL


class CannotMeasure(FwlabError):
    """The testbed could not produce a figure: a node died, a port is taken, libvirt is not there."""

    exit_code = EXIT_UNMEASURED


class Overdue(CannotMeasure):
    """A measurement took longer than it may. Trying it again would take as long."""
