# SPDX-License-Identifier: GPL-2.0-or-later
"""Something that the host must have."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Requirement:
    """What it is, whether the host has it, and the command that provides it."""

    what: str
    met: bool
    next: str = ""
