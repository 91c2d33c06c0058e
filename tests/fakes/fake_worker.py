# SPDX-License-Identifier: GPL-2.0-or-later
"""`fwlab worker` on fake machines, in processes forked from one that has imported everything, which takes seconds."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import sys
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Self

import distributed  # noqa: F401 - the worker imports it only when it starts

from fwlab.cli.grade import worker_command
from fwlab.grading import cluster, grader  # noqa: F401
from tests import ROOT
from tests.fakes.fake_class import fake_machines

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload([__name__])


class FakeWorker:
    """A worker's process. `stdout`: what it prints and complains of."""

    def __init__(
        self, folder: Path, scheduler: str, name: str, version: str = "", key: Path | None = None, **environment: str
    ) -> None:
        printed, output = FORKS.Pipe(duplex=False)
        variables = {**os.environ, **environment}
        self.process = FORKS.Process(target=_run, args=(output, folder, variables, scheduler, name, version, key))
        with contextlib.chdir(ROOT):  # where the first one, from which all others are forked, finds this module
            self.process.start()
        output.close()
        self.stdout = os.fdopen(os.dup(printed.fileno()), errors="replace")
        printed.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    @property
    def pid(self) -> int:
        assert self.process.pid is not None
        return self.process.pid

    def terminate(self) -> None:
        self.process.terminate()

    def wait(self, timeout_s: float = 120) -> int | None:
        """Its exit code."""
        self.process.join(timeout_s)
        return self.process.exitcode

    def end(self) -> None:
        self.process.terminate()
        self.wait()
        self.stdout.close()


def _run(
    output: Connection,
    folder: Path,
    variables: dict[str, str],
    scheduler: str,
    name: str,
    version: str,
    key: Path | None,
) -> None:
    for stream in (sys.stdout, sys.stderr):
        os.dup2(output.fileno(), stream.fileno())
    os.environ.update(variables)
    os.chdir(folder)
    grader.__version__ = version or grader.__version__
    with fake_machines():
        worker_command(scheduler, name=name, key=key)
