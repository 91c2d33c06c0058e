# SPDX-License-Identifier: GPL-2.0-or-later
"""The series of a kernel: the part of its release that figures depend on."""

import re
from typing import Annotated

from pydantic import Field

_SERIES = r"(?:[A-Za-z]+ )?\d+\.\d+"
#: "6.1" of Linux, "FreeBSD 15.1" of another system.
KernelSeries = Annotated[str, Field(pattern=f"^{_SERIES}$")]


def series_of(release: str) -> str | None:
    """The series of 6.1.0-56-cloud-amd64 or of "FreeBSD 15.1-RELEASE-p1"; None if the release has none."""
    found = re.match(rf"{_SERIES}(?=[.-]|$)", release)
    return found[0] if found else None
