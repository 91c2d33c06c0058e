# SPDX-License-Identifier: GPL-2.0-or-later
"""Types that other models share."""

import re
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

_SERIES = r"(?:[A-Za-z]+ )?\d+\.\d+"
#: "6.1" of Linux, "FreeBSD 15.1" of another system.
KernelSeries = Annotated[str, Field(pattern=f"^{_SERIES}$")]


def series_of(release: str) -> str | None:
    """The series of 6.1.0-56-cloud-amd64 or of "FreeBSD 15.1-RELEASE-p1"; None if the release has none."""
    found = re.match(rf"{_SERIES}(?=[.-]|$)", release)
    return found[0] if found else None


Identifier = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$")]
Value = int | float | str


class Frozen(BaseModel):
    """Immutable data; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Strict(Frozen):
    """A declaration, whose numbers are all finite."""

    model_config = ConfigDict(populate_by_name=True, allow_inf_nan=False)


def first_fault(error: ValidationError) -> str:
    """The first fault of a document that no person writes, behind its place. Both may quote a stranger's file."""
    first = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(str(part)[:40] for part in first["loc"])
    what = first["msg"].removeprefix("Value error, ")
    return f"{place}: {what}" if place else what
