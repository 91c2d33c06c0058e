# SPDX-License-Identifier: GPL-2.0-or-later
"""A process's private machines: a copy of what Vagrant reads, in a folder and on ports that no other process uses.

The names of a checkout's machines come from its path, and its ports from FWLAB_PORT_OFFSET.
"""

import contextlib
import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from fwlab.checkout.atomic_write import write_errors_as
from fwlab.checkout.project import Project, lab_ids, load_topology
from fwlab.host.ports import free_shift
from fwlab.model.errors import CannotMeasure

#: What Vagrant and the instrument read of a checkout, and what its boxes are compared with.
FOLDERS, FILES = ("labs", "provision", "packer", "engine"), ("Vagrantfile", "topology.yml", "pyproject.toml")
#: Held by the process whose machines these are.
LOCK = "in-use"


@contextlib.contextmanager
def own_machines(project: Project) -> Iterator[Project]:
    """A checkout for this process alone; its machines are destroyed with it. Sets FWLAB_PORT_OFFSET meanwhile.

    Also clears away what such processes left behind that were killed. Raises CannotMeasure.
    """
    parent = project.state / "workers"
    with write_errors_as(parent, CannotMeasure):
        parent.mkdir(parents=True, exist_ok=True)
        with (parent / LOCK).open("w") as others:
            fcntl.flock(others, fcntl.LOCK_EX)  # or another one might clear this away before it is held
            clear_away(parent)
            top = Path(tempfile.mkdtemp(dir=parent))
            lock = (top / LOCK).open("w")
            fcntl.flock(lock, fcntl.LOCK_EX)
    before = os.environ.get("FWLAB_PORT_OFFSET")
    try:
        with write_errors_as(top, CannotMeasure):
            _fill(project, top)
        ports = load_topology(project).ports
        os.environ["FWLAB_PORT_OFFSET"] = str(free_shift(ports.address, ports.of_labs(lab_ids(project))))
        yield Project(top)
    finally:
        _remove(top)
        lock.close()
        if before is None:
            os.environ.pop("FWLAB_PORT_OFFSET", None)
        else:
            os.environ["FWLAB_PORT_OFFSET"] = before


def clear_away(parent: Path) -> None:
    """Destroy the machines of processes that are gone, and remove their folders."""
    for top in parent.glob("*/") if parent.is_dir() else ():
        with contextlib.suppress(OSError), (top / LOCK).open("r") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _remove(top)


def _fill(project: Project, top: Path) -> None:
    for name in FOLDERS:
        if (project.root / name).is_dir():
            shutil.copytree(project.root / name, top / name, ignore=shutil.ignore_patterns("work", "__pycache__"))
    for name in FILES:
        if (project.root / name).is_file():
            shutil.copy(project.root / name, top)
    (top / ".venv").symlink_to(sys.prefix)  # Vagrant asks the fwlab of its checkout
    state = Project(top).state
    state.mkdir()
    with contextlib.suppress(FileNotFoundError):
        shutil.copy(project.state / "images.json", state)


def _remove(top: Path) -> None:
    if any(Project(top).state.glob("*/machines.json")):
        subprocess.run(
            ["vagrant", "destroy", "-f"], cwd=top, stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
    shutil.rmtree(top, ignore_errors=True)
