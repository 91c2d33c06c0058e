# SPDX-License-Identifier: GPL-2.0-or-later
"""The one error a user sees: what is wrong, where, and the next command."""

from __future__ import annotations

import re

#: Exit codes of every command and of the grading run (design.md, "Commands").
EXIT_PASS = 0
EXIT_FAIL = 1
EXIT_USAGE = 2
EXIT_UNMEASURED = 3


#: What a terminal obeys or a file cannot hold: a name in a message may come from a stranger. Lines and tabs may stay.
_STRANGE = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_LONG_WORD = re.compile(r"\S{301,}")
#: A tool may say as much as 2000 characters.
LONGEST = 4000


def harmless(text: str) -> str:
    """The text without control characters, and without words or tails that nobody reads."""
    text = _STRANGE.sub(lambda found: repr(found[0])[1:-1], text)
    text = _LONG_WORD.sub(lambda found: f"{found[0][:200]}…{found[0][-60:]}", text)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1000]} … {text[-900:]}"


class FwlabError(Exception):
    """Something the user can act on. The doors print it in two lines and never show a traceback.

    `message` names the item and the place; `hint` is the next command or step; `exit_code` is what
    the command ends with.
    """

    exit_code = EXIT_USAGE

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(harmless(message))
        self.message = harmless(message)
        self.hint = harmless(hint)

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
