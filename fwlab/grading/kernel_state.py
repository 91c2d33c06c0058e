# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether the kernel holds what a file says, as the DUT's own tools list it."""

from collections.abc import Iterable

from testinfra.backend.base import CommandResult
from testinfra.host import Host

from fwlab.model.printable import LONGEST_LINE, printable
from fwlab.model.ruleset import RulesetFile
from fwlab.rulesets.registry import KINDS


class Inconclusive(Exception):
    """Nothing can be said about a ruleset, for this reason."""


_LOST = "lost the connection to the DUT before it could be asked what it holds"


def absent_from(dut: Host, files: Iterable[RulesetFile]) -> str | None:
    """What the DUT lacks of the first file that it does not hold whole. Raises Inconclusive if it does not answer."""
    for file in files:
        absent = missing(dut, file)
        if absent is not None:
            return f"{file.name}: loaded, but the DUT does not hold: {printable(absent, LONGEST_LINE)}"
    return None


def missing(dut: Host, file: RulesetFile) -> str | None:
    """What the DUT lacks of this file; None if it holds all of it."""
    lines = [line.partition("#")[0].strip() for line in file.text.splitlines()]
    try:
        return KINDS[file.kind].absent(_Asked(dut), [line for line in lines if line])
    except (LookupError, ValueError, StopIteration):
        return None  # the tool has loaded a form that this check does not understand


class _Asked:
    """The DUT's tools. A tool that cannot be reached says nothing about the ruleset, so Inconclusive is raised."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def run(self, command: str, *arguments: str) -> str:
        return str(self._done(command, *arguments).stdout)

    def check_output(self, command: str, *arguments: str) -> str:
        done = self._done(command, *arguments)
        if done.rc:
            words = printable(done.stderr.strip() or f"exit {done.rc}")
            raise Inconclusive(f"the DUT cannot list what it holds: {command.split(maxsplit=1)[0]}: {words}")
        return str(done.stdout).rstrip()

    def _done(self, command: str, *arguments: str) -> CommandResult:
        try:
            done = self._host.run(command, *arguments)
        except (RuntimeError, OSError) as error:  # Testinfra's, if ssh failed
            raise Inconclusive(_LOST) from error
        if done.rc == 255:
            raise Inconclusive(_LOST)
        return done
