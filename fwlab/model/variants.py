# SPDX-License-Identifier: GPL-2.0-or-later
"""variants.yml as data: correct and wrong solutions of an exercise, which show what its checks catch."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from fwlab.model.declared import Identifier, Strict

#: In place of checks: the ruleset cannot be loaded.
REFUSED = "refused"

Line = Annotated[str, Field(min_length=1)]


class Wrong(Strict):
    """A ruleset that must fail the checks in `fails` and no others; `why` says what is wrong with it.

    may  checks that it fails or passes by chance
    """

    fails: list[Line] = Field(min_length=1)
    may: list[Line] = []
    why: Line


class Variants(Strict):
    """A whole variants.yml: by name of the folder in variants/, a line about each solution.

    right  solutions that must pass every check
    wrong  solutions that must fail
    also_right  by name, non-solutions (grading/lab_rulesets.py) that solve this exercise too, and why they may
    """

    right: dict[Identifier, Line] = {}
    wrong: dict[Identifier, Wrong] = {}
    also_right: dict[Identifier, Line] = {}

    @property
    def names(self) -> list[str]:
        """All variants: the right ones first."""
        return [*self.right, *self.wrong]

    @model_validator(mode="after")
    def _each_once(self) -> Variants:
        for name in self.right:
            if name in self.wrong:
                raise ValueError(f"{name} is listed as right and as wrong")
        return self

    def reject_unknown(self, checks: set[str]) -> None:
        """`checks`: the exercise's, by id. Raises ValueError naming the variant and the check."""
        for name, wrong in self.wrong.items():
            unknown = [check for check in (*wrong.fails, *wrong.may) if check not in {*checks, REFUSED}]
            if unknown:
                known = ", ".join([*sorted(checks), REFUSED])
                raise ValueError(f"wrong.{name}.fails: the exercise has no check {unknown[0]}; there are: {known}")
            if REFUSED in wrong.fails and wrong.fails != [REFUSED]:
                raise ValueError(f"wrong.{name}.fails: a ruleset that is refused fails every check: write [{REFUSED}]")
