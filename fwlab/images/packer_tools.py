# SPDX-License-Identifier: GPL-2.0-or-later
"""The programs of this host that build an image. A host whose boxes are all built, or imported, needs none of them."""

import os
import re
import shutil
import subprocess
from pathlib import Path
from threading import Lock

from fwlab.host.architecture import BOXES, other_architecture
from fwlab.images.errors import BuildError

PACKER = "packer"
PROGRAMS = (PACKER, "qemu-system-x86_64", "qemu-img", "zstd")
#: The other way to boxes, where a release has no Packer.
ELSEWHERE = ", or take boxes that another host has built: guides/hosts.md"
IMPORT = "make boxes IMPORT=folder, with a folder from a host that builds them: guides/hosts.md"


def require_programs(*names: str) -> None:
    """Raise BuildError for the first program that is not on the PATH."""
    for name in names:
        if not shutil.which(name):
            raise BuildError(
                f"{name} is missing", f"run provision/host/install as root{ELSEWHERE if name == PACKER else ''}"
            )


class PackerTools:
    """What Packer needs, looked for when the first image is built."""

    def __init__(self) -> None:
        self._lock = Lock()  # the images are built in threads, and `packer init` writes
        self._ready = False

    def require(self, templates: Path) -> None:
        """Raise BuildError on a host of another architecture, or if a program or a plugin is missing. Looks once."""
        with self._lock:
            if not self._ready:
                if machine := other_architecture():
                    raise BuildError(
                        f"this host is {machine} and the boxes are {BOXES}: they cannot be built here", IMPORT
                    )
                require_programs(*PROGRAMS)
                _install_plugins(templates / "plugins")
                self._ready = True


def _install_plugins(plugins: Path) -> None:
    """Newer Packers need theirs; older ones have them. Raises BuildError."""
    found = re.search(r"v(\d+)\.(\d+)", _packer("version").stdout)
    if not found or (int(found[1]), int(found[2])) < (1, 7):
        return
    done = _packer("init", str(plugins))
    if done.returncode:
        raise BuildError(
            f"Packer's plugins are missing: {' '.join(done.stdout.split())}",
            f"run 'packer init {plugins}' where there is a network; elsewhere 'packer plugins install --path FILE "
            "SOURCE' for each plugin and version that is named there",
        )


def _packer(*words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "CHECKPOINT_DISABLE": "1"}
    return subprocess.run(
        ["packer", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment, check=False
    )
