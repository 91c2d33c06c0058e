# SPDX-License-Identifier: GPL-2.0-or-later
"""Types that the declarations in lab.yml share."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Identifier = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$")]
Value = int | float | str


class Strict(BaseModel):
    """A declaration: unknown fields and NaN are refused, and it is immutable."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, allow_inf_nan=False)
