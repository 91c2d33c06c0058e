# SPDX-License-Identifier: GPL-2.0-or-later
"""How a program ends that this one has started."""

from __future__ import annotations

import contextlib
import subprocess


def see_off(process: subprocess.Popen, patience_s: float) -> None:
    """Wait for a process that was told to end, kill it if it does not, and close its pipes. Raises nothing."""
    try:
        process.wait(patience_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
