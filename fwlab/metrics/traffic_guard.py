# SPDX-License-Identifier: GPL-2.0-or-later
"""Stop background traffic if the body raises."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Protocol, TypeVar


class Started(Protocol):
    """Packets or connections that are being played."""

    def abandon(self) -> object:
        """Stop playing. Never raises."""


T = TypeVar("T", bound=Started)


@contextlib.contextmanager
def traffic_guard(started: T) -> Iterator[T]:
    """Abandon the traffic if the body raises anything; otherwise it goes on, and the caller stops it."""
    try:
        yield started
    except BaseException:
        started.abandon()
        raise
