# SPDX-License-Identifier: GPL-2.0-or-later
"""What an archive holds, whatever its format: members, limits, and the error for what cannot be unpacked."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import IO, Final

from fwlab.model.errors import BadInput

#: Bytes that are read at a time.
CHUNK: Final = 1 << 20
#: Unpacked bytes up to which no ratio is asked for: a small file of equal lines is no bomb.
SMALL: Final = 1 << 20


@dataclass(frozen=True)
class Limits:
    """How much an archive may hold: files and folders, bytes unpacked, bytes of one file, and unpacked per packed."""

    members: int
    total: int
    file: int
    ratio: int = 200


#: What one student hands in, and the export of a whole class.
STUDENT = Limits(members=2000, total=512 << 20, file=64 << 20)
EXPORT = Limits(members=50_000, total=4 << 30, file=512 << 20)


class Unreadable(BadInput):
    """An archive, or something in it, cannot be unpacked. It costs only the student who handed it in."""


@dataclass(frozen=True)
class Member:
    """One entry. `open` is None for a folder; `packed` is its size in the archive, None if that is not known."""

    name: str
    open: Callable[[], IO[bytes]] | None
    packed: int | None = None
