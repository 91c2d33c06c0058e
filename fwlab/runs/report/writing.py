# SPDX-License-Identifier: GPL-2.0-or-later
"""Files that are either whole or not there: written beside their place, then renamed."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path

from fwlab.words.errors import FwlabError


def write_atomically(path: Path, text: str) -> Path:
    """Write `text` to `path`, making its folder. Raises FwlabError naming the file, then unchanged."""
    draft = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(draft, 0o666 & ~_umask())  # mkstemp makes it private, a report is to be handed on
        os.replace(draft, path)
    except OSError as error:
        message = f"{path}: cannot be written: {error.strerror}"
        raise FwlabError(message, "make room there, or name another folder") from error
    finally:
        if draft is not None:
            with suppress(FileNotFoundError):
                os.unlink(draft)
    return path


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
