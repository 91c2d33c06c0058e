# SPDX-License-Identifier: GPL-2.0-or-later
"""What every declaration in lab.yml is made of."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Identifier = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$")]
Value = int | float | str


class Strict(BaseModel):
    """No other fields than its own, no number that is none, and never changed once read."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, allow_inf_nan=False)
