# SPDX-License-Identifier: GPL-2.0-or-later
"""No configuration comes from a class's folder: pytest would run what it says, on this host.

To pytest the DIR of `--submissions DIR` is a path to look for its configuration at, for it does so before it loads a
plugin and knows the option. A `.pytest.ini` there may name a Python module, which is then imported. Nothing inside
pytest comes before that; so `provision/host/fwlab.pth` calls `guard` as Python starts, and the command line gets its
configuration by name.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

#: This checkout; or, where the package lies elsewhere, a place without configuration.
ROOT = Path(__file__).resolve().parents[2]

_guarded = False


def explicit(beside: Sequence[str] = ()) -> list[str]:
    """Words for pytest's command line: its configuration by name, and none from anywhere else.

    What `beside` them names already stays what it is.
    """
    own = ROOT / "pyproject.toml"
    words = ["--noconftest"]
    if not any(word.startswith(("-c", "--config-file")) for word in beside):
        words += ["-c", str(own) if own.is_file() else os.devnull]
    if not any(word.startswith("--rootdir") for word in beside):
        words.append(f"--rootdir={ROOT}")
    return words


def guard() -> None:
    """Called as Python starts, where `--submissions` is among its words. Changes the words of pytest only."""
    global _guarded  # noqa: PLW0603
    if _guarded or not _is_pytest():
        return
    _guarded = True
    words = [*shlex.split(os.environ.get("PYTEST_ADDOPTS", "")), *sys.argv[1:]]
    folder = _submissions(words)
    if folder is not None and Path.cwd().resolve().is_relative_to(folder.resolve()):
        # Python itself looks for modules in the working folder, too.
        sys.stderr.write(f"ERROR: the working folder lies in {folder}\n  next: cd into the checkout, and grade there\n")
        sys.stderr.flush()
        os._exit(4)  # SystemExit would be Python's own failure to start
    sys.argv[1:1] = explicit(words)


def _is_pytest() -> bool:
    program = Path(sys.argv[0]).name
    return program in ("pytest", "py.test") or ("-m", "pytest") in zip(sys.orig_argv, sys.orig_argv[1:], strict=False)


def _submissions(words: list[str]) -> Path | None:
    for word, after in zip(words, [*words[1:], ""], strict=True):
        if word == "--submissions":
            return Path(after)
        if word.startswith("--submissions="):
            return Path(word.partition("=")[2])
    return None
