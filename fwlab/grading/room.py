# SPDX-License-Identifier: GPL-2.0-or-later
"""The error for a full disk on the host, which is no student's fault."""

from __future__ import annotations

import errno
from pathlib import Path

from fwlab.model.errors import BadInput

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EMFILE, errno.ENFILE, errno.EIO}


class NoRoom(BadInput):
    """The host's disk is full. Not the fault of any student."""

    @classmethod
    def at(cls, path: Path, error: OSError) -> NoRoom:
        """The error for this place."""
        return cls(f"{path}: cannot copy a submission: {error.strerror}", "free space there, or set TMPDIR")


def no_room(error: OSError) -> bool:
    """Whether this error is the host's."""
    return error.errno in _FULL
