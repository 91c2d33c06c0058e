# SPDX-License-Identifier: GPL-2.0-or-later
"""What plays while something is counted beside it never outlives a failure."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Protocol, TypeVar


class Started(Protocol):
    """Traffic, or connections, under way."""

    def abandon(self) -> None: ...


T = TypeVar("T", bound=Started)


@contextlib.contextmanager
def under_way(started: T) -> Iterator[T]:
    """It is abandoned if what is done meanwhile raises anything; else it goes on, and the caller stops it."""
    try:
        yield started
    except BaseException:
        started.abandon()
        raise
