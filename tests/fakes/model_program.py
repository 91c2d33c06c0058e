# SPDX-License-Identifier: GPL-2.0-or-later
"""The model of a core without QEMU: its program check.c, built once, and the counters that it prints."""

from __future__ import annotations

import atexit
import functools
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests import ROOT

MODEL = ROOT / "coresim" / "fwlab_coresim" / "plugin"
#: A small core, so that a test can fill it by hand: L1 of 4 lines in 2 sets, L2 of 16 lines in 4 sets.
SMALL = {
    "l1i": "256:2",
    "l1d": "256:2:4",
    "l2": "1024:4:14",
    "memory": "200",
    "itlb": "4:4",
    "itlb_large": "2:2",
    "dtlb": "4:4",
    "dtlb_large": "2:2",
    "stlb": "16:4:9",
    "stlb_large": "1",
    "directions": "1024:8",
    "targets": "256:0",
    "returns": "8",
    "mispredicted": "16",
    "locked": "15",
}

needs_compiler = pytest.mark.skipif(
    any(shutil.which(tool) is None for tool in ("make", "cc")), reason="the model's build needs make and cc"
)


@functools.cache
def built(flags: str = "-O2 -g") -> Path:
    """The program, compiled with these flags."""
    folder = Path(tempfile.mkdtemp(prefix="fwlab-model-check-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    command = ["make", "-s", "-C", str(MODEL), "CC=cc", f"BUILD={folder}", f"CFLAGS={flags}", "check"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder / "model-check"


def run(words: Iterable[str], commands: Iterable[str], flags: str = "-O2 -g") -> subprocess.CompletedProcess[str]:
    """Run it with these parameters on these commands."""
    text = "".join(f"{command}\n" for command in commands)
    return subprocess.run([built(flags), *words], input=text, capture_output=True, text=True, timeout=300)


def counted(commands: Iterable[str], words: Iterable[str] | None = None, **changed: str) -> list[dict[str, int]]:
    """The counters at each `p` among the commands, on the small core with these changes, or by these parameters."""
    chosen = words or [f"{key}={value}" for key, value in {**SMALL, **changed}.items()]
    done = run(chosen, commands)
    assert done.returncode == 0, done.stderr
    found: list[dict[str, int]] = []
    for line in done.stdout.splitlines():
        name, value = line.split()
        if name == "instructions":
            found.append({})
        found[-1][name] = int(value)
    return found
