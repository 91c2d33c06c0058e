# SPDX-License-Identifier: GPL-2.0-or-later
"""Keep pytest from taking its configuration out of a class's folder, which would run code from it on this host.

Before pytest loads plugins it does not know `--submissions DIR`, so it takes DIR for a path of tests and looks for a
configuration file there. A `.pytest.ini` in it may name a Python module, which pytest then imports. No hook runs
early enough to prevent that. So `provision/host/fwlab.pth` calls `guard` as Python starts, and `guard` puts an
explicit configuration on pytest's command line.
"""

import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

#: The checkout; where the package is installed elsewhere, a folder without a configuration.
ROOT = Path(__file__).resolve().parents[2]


def explicit(given: Sequence[str] = ()) -> list[str]:
    """Arguments that name pytest's configuration, so that it looks for none.

    Options that are among the `given` arguments already are left out.
    """
    own = ROOT / "pyproject.toml"
    words = ["--noconftest"]
    if not any(word.startswith(("-c", "--config-file")) for word in given):
        words += ["-c", str(own) if own.is_file() else os.devnull]
    if not any(word.startswith("--rootdir") for word in given):
        words.append(f"--rootdir={ROOT}")
    return words


def guard() -> None:
    """Add the arguments of `explicit` to pytest's command line; leave other programs alone.

    Called as Python starts if `--submissions` is among its arguments. A second call only repeats --noconftest.
    """
    if not _is_pytest():
        return
    words = [*shlex.split(os.environ.get("PYTEST_ADDOPTS", "")), *sys.argv[1:]]
    folder = _submissions(words)
    if folder is not None and Path.cwd().resolve().is_relative_to(folder.resolve()):
        # Python itself also imports modules from the working directory.
        sys.stderr.write(f"ERROR: the working directory is inside {folder}\n  next: cd into the checkout and grade\n")
        sys.stderr.flush()
        os._exit(4)  # a SystemExit here would look as if Python had failed to start
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
