# SPDX-License-Identifier: GPL-2.0-or-later
"""Files of bytes that are whole or not there."""

from __future__ import annotations

from pathlib import Path

from fwlab.words.errors import BadInput


def write_whole(path: Path, data: bytes, what: str) -> None:
    """Write `data` beside its place, then move it there. Raises BadInput that names the file and `what` it is."""
    partial = path.with_name(path.name + ".part")
    try:
        partial.write_bytes(data)
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise BadInput(f"{path}: cannot write the {what}: {error.strerror}", "df -h; ls -ld its folder") from error
