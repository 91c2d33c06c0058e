# SPDX-License-Identifier: GPL-2.0-or-later
"""Types that other models share."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Identifier = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$")]
Value = int | float | str


class Frozen(BaseModel):
    """Immutable data; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Strict(Frozen):
    """A declaration, whose numbers are all finite."""

    model_config = ConfigDict(populate_by_name=True, allow_inf_nan=False)
