# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs the build's programs so that none outlives it.

Each gets a process group of its own, which its own children (QEMU below Packer) stay in.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
import time
from contextlib import suppress
from pathlib import Path

from box_cache import BuildError

#: With less than this a disk is full.
LEFT_BYTES = 16 << 20
#: A program that was asked to end may take so long before it is killed (s).
PATIENCE_S = 20.0

_running: set[subprocess.Popen] = set()
_lock = threading.Lock()
_stopping = threading.Event()


def run(command: list[str], log: Path, name: str, env: dict[str, str] | None = None) -> None:
    """Runs a command with its output appended to `log`; raises BuildError, quoting the log's end, if it fails."""
    with log.open("ab") as file:
        with _lock:
            if _stopping.is_set():
                raise BuildError(f"{name}: stopped")
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                process_group=0,
                env={**os.environ, **(env or {})},
            )
            _running.add(process)
        killed_at = None
        try:
            while (status := _ended(process)) is None:
                if killed_at is None and _is_full(log.parent):
                    _signal([process.pid], signal.SIGINT)
                    killed_at = time.monotonic() + PATIENCE_S
                elif killed_at is not None and time.monotonic() > killed_at:
                    _signal([process.pid], signal.SIGKILL)
        finally:
            with _lock:
                _running.discard(process)
            if killed_at is not None:
                _signal([process.pid], signal.SIGKILL)  # what is left of its group: see stop_all
    if status == 0:
        return
    if _stopping.is_set():
        raise BuildError(f"{name}: stopped")
    text = log.read_text(errors="replace")  # Go's programs write it small
    if killed_at is not None or "no space left on device" in text.lower():
        where = log.parent if killed_at is not None else f"{log.parent} or of the temporary directory"
        raise BuildError(
            f"{name}: the disk of {where} is full",
            "make room (3 GiB), or set FWLAB_CACHE and TMPDIR to directories with more",
        )
    tail = "\n".join("  " + line for line in text.splitlines()[-15:])
    raise BuildError(f"{name}: '{Path(command[0]).name}' failed with {status}:\n{tail}", f"the whole log: {log}")


def _ended(process: subprocess.Popen) -> int | None:
    """Its exit status, within a second; None while it runs."""
    try:
        return process.wait(1)
    except subprocess.TimeoutExpired:
        return None


def _is_full(directory: Path) -> bool:
    """Whether its disk has no room left.

    Somebody has to look: QEMU halts its machine where the machine's disk finds no room, and Packer waits for ever.
    """
    return shutil.disk_usage(directory).free < LEFT_BYTES


def stopped() -> bool:
    """Whether stop_all was called."""
    return _stopping.is_set()


def _signal(groups: list[int], number: int) -> None:
    for group in groups:
        with suppress(ProcessLookupError):
            os.killpg(group, number)


def stop_all(patience_s: float = PATIENCE_S) -> None:
    """Ends whatever still runs: first asks (SIGINT, so that Packer stops its machine), then kills.

    The kill goes to each whole group, even if its leader has gone: a program in the background ignores SIGINT.
    """
    _stopping.set()
    with _lock:
        groups = [process.pid for process in _running]
    _signal(groups, signal.SIGINT)
    deadline = time.monotonic() + patience_s
    while _running and time.monotonic() < deadline:
        time.sleep(0.1)
    _signal(groups, signal.SIGKILL)
