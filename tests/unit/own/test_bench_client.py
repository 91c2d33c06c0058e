# SPDX-License-Identifier: GPL-2.0-or-later
"""The host's end of a bench: what travels to the DUT, and what is said when the program ends."""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from fwlab.model.errors import CannotMeasure
from fwlab.own import bench_client
from fwlab.own.bench_client import opened

PIPES = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}


class RecordingSsh:
    """Keeps what is saved on the DUT and what is started there."""

    def run(self, command: str, *, data: bytes = b"") -> str:
        self.saved = data
        return ""

    def open(self, command: str) -> str:
        return command


def test_what_travels_to_the_dut_needs_nothing_else(tmp_path: Path) -> None:
    ssh = RecordingSsh()
    command = bench_client.on(ssh)()
    with tarfile.open(fileobj=io.BytesIO(ssh.saved)) as archive:
        for member in archive.getmembers():
            archive.extract(member, tmp_path)
    assert command.startswith(f"cd {bench_client.FOLDER} && exec python3 -S -m ")
    module = command.split()[-1]
    request = b'{"op": "none", "number": 7}\n'
    done = subprocess.run([sys.executable, "-S", "-m", module], cwd=tmp_path, input=request, capture_output=True)
    # It fails at once, either for the wrong operation or for want of a namespace; every module was found.
    assert b"ModuleNotFoundError" not in done.stderr
    assert b"KeyError: 'none'" in done.stderr or b"namespace" in done.stdout


def test_a_program_that_ends_is_quoted() -> None:
    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen(["sh", "-c", "read line; echo no such kernel >&2"], **PIPES)

    with opened(start, "X") as bench, pytest.raises(CannotMeasure, match="no such kernel"):
        bench.load([])
