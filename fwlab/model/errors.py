# SPDX-License-Identifier: GPL-2.0-or-later
"""Errors that a user can act on, and the exit codes of all commands."""

from fwlab.model.printable import printable_lines

#: Exit codes of every command and of a grading run.
EXIT_PASS = 0
EXIT_FAIL = 1
EXIT_USAGE = 2
EXIT_UNMEASURED = 3


class FwlabError(Exception):
    """An error that the user can act on. Commands print it in two lines, without a traceback.

    `message` says what is wrong and where; `hint` is the next command or step; `exit_code` is the exit code of
    the command. Both texts may quote untrusted files, so they are made printable.
    """

    exit_code = EXIT_USAGE

    def __init__(self, message: str, hint: str = "") -> None:
        self.message, self.hint = printable_lines(message), printable_lines(hint)
        super().__init__(self.message)

    def __str__(self) -> str:
        return f"{self.message}\n  next: {self.hint}" if self.hint else self.message


class BadInput(FwlabError):
    """A file or an argument is invalid. Nothing was started."""


class Refused(FwlabError):
    """A tool on the DUT rejected a ruleset. `message` is the tool's own error text."""

    exit_code = EXIT_FAIL


class CannotMeasure(FwlabError):
    """The testbed could not produce a result: a node died, a port is taken, libvirt is missing."""

    exit_code = EXIT_UNMEASURED


class CannotStart(CannotMeasure):
    """A program on the generator ended while it started, as it would again. The machines are fine otherwise."""


class Hindered(CannotMeasure):
    """The DUT could not be measured, and its ruleset may be the cause."""


class DutLost(Hindered):
    """The DUT died or does not answer any more."""


class DeadlineExceeded(Hindered):
    """A measurement exceeded its time limit."""


class BuildError(FwlabError):
    """An image cannot be built. `message` says what is wrong, `hint` the next step."""

    exit_code = EXIT_FAIL


class SourceError(BuildError):
    """The file that an image was to be made from cannot be had, or is the wrong one. Nothing was built."""

    exit_code = EXIT_USAGE
