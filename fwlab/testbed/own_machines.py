# SPDX-License-Identifier: GPL-2.0-or-later
"""A process's private machines: a copy of what Vagrant reads, in a folder and on ports that no other process uses.

The names of a checkout's machines come from its path, and its ports from FWLAB_PORT_OFFSET.
"""

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from fwlab.checkout.atomic_write import write_errors_as
from fwlab.checkout.own_folder import own_folder
from fwlab.checkout.project import Project, lab_ids, load_topology
from fwlab.host.ports import free_shift
from fwlab.model.errors import CannotMeasure

#: What Vagrant and the instrument read of a checkout, and what its boxes are compared with.
FOLDERS, FILES = ("labs", "provision", "packer", "engine"), ("Vagrantfile", "topology.yml", "pyproject.toml")


@contextlib.contextmanager
def own_machines(project: Project) -> Iterator[Project]:
    """A checkout for this process alone; its machines are destroyed with it. Sets FWLAB_PORT_OFFSET meanwhile.

    Also clears away what such processes left behind that were killed. Raises CannotMeasure.
    """
    parent = project.state / "workers"
    before = os.environ.get("FWLAB_PORT_OFFSET")
    with contextlib.ExitStack() as held:
        with write_errors_as(parent, CannotMeasure):
            top = held.enter_context(own_folder("worker-", parent, remove=_remove))
            _fill(project, top)
        ports = load_topology(project).ports
        os.environ["FWLAB_PORT_OFFSET"] = str(free_shift(ports.address, ports.of_labs(lab_ids(project))))
        try:
            yield Project(top)
        finally:
            if before is None:
                os.environ.pop("FWLAB_PORT_OFFSET", None)
            else:
                os.environ["FWLAB_PORT_OFFSET"] = before


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
