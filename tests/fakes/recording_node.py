# SPDX-License-Identifier: GPL-2.0-or-later
"""A node that records the commands that it is given."""

from __future__ import annotations

from typing import Any

from fwlab.model.errors import CannotMeasure


class Node:
    """Every command prints `answer`; one that contains `fails` does not succeed. `inputs`: what each was given."""

    def __init__(self, answer: str = "", fails: str = "") -> None:
        self.commands: list[str] = []
        self.inputs: list[bytes] = []
        self.answer, self._fails = answer, fails

    def run(self, command: str, *, data: bytes = b"", **_: Any) -> str:
        self.commands.append(command)
        self.inputs.append(data)
        if self._fails and self._fails in command:
            raise CannotMeasure(f"no {self._fails}")
        return self.answer

    def launch(self, command: str) -> None:
        self.commands.append(command)

    def open(self, command: str) -> None:
        self.commands.append(command)
