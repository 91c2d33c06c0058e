# SPDX-License-Identifier: GPL-2.0-or-later
"""Run a function in a child process that may use little CPU time and memory, whatever the host does meanwhile."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable
from os import _exit
from pathlib import Path

from fwlab.model.errors import BadInput

#: CPU time (s), and memory beyond what this process has (MiB): some ten times what the costliest file here needs.
CPU_S, MIB = 10, 300


def said(work: Callable[[], object]) -> str:
    """What it says: "" or the message of BadInput. Fails if it needs too much."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        message = "it raises another error"
        try:
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
            resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (MIB << 20),) * 2)
            work()
            message = ""
        except BadInput as refused:
            message = refused.message
        finally:
            try:
                os.write(writing, message.encode(errors="replace")[:1000])
            finally:
                _exit(0)
    os.close(writing)
    with os.fdopen(reading) as told:
        message = told.read()
    status = os.waitpid(child, 0)[1]
    assert status == 0, f"ended by signal {status}: too costly"
    return message
