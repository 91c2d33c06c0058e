# SPDX-License-Identifier: GPL-2.0-or-later
"""A grading that is interrupted in its middle and continued with --resume."""

from __future__ import annotations

import csv
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class InTwoParts:
    """Verdicts by student/exercise when it was interrupted; of both parts the seconds and pytest's exit codes."""

    half: dict[str, str]
    seconds: dict[str, float]
    exit_codes: tuple[int, int]

    @property
    def was_interrupted(self) -> bool:
        """Whether the first part ended by the signal, not by itself."""
        return self.exit_codes[0] == 2


def verdicts(marks: Path) -> dict[str, str]:
    """The verdicts of a marks.csv by student/exercise; empty if there is none yet."""
    if not marks.exists():
        return {}
    return {f"{row['who']}/{row['exercise']}": row["verdict"] for row in csv.DictReader(marks.open(newline=""))}


def grade_in_two_parts(command: list[str], marks: Path, after: int, **where: Any) -> InTwoParts:
    """Run this grading, interrupt it once `after` rulesets are judged in `marks`, and continue it.

    `where`: how to start it, as for subprocess.Popen.
    """
    began = time.monotonic()
    first = subprocess.Popen(command, **where)
    while first.poll() is None:
        if sum(verdict in ("pass", "fail") for verdict in verdicts(marks).values()) >= after:
            first.send_signal(signal.SIGTERM)  # like Ctrl-C, which a shell's background jobs ignore
            break
        time.sleep(1)
    first.wait()
    half, stopped = verdicts(marks), time.monotonic()
    second = subprocess.run([*command, "--resume"], **where)
    seconds = {"until interrupted": round(stopped - began, 1), "continued": round(time.monotonic() - stopped, 1)}
    return InTwoParts(half, seconds, (first.returncode, second.returncode))
