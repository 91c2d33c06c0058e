# SPDX-License-Identifier: GPL-2.0-or-later
"""The programs that build images: whether this host has them, and how they run so that none outlives the build.

A host whose boxes are all built, or imported, needs none of them. Each program that runs has a process group, in which
its children stay (QEMU below Packer).
"""

import os
import re
import shutil
import signal
import subprocess
import threading
import time
from contextlib import suppress
from pathlib import Path
from threading import Lock

from fwlab.host.kvm_probe import BOX_ARCHITECTURE, other_architecture
from fwlab.model.errors import BuildError

#: With less room than this a disk counts as full.
FULL_BYTES = 16 << 20
#: How long a program may take to exit after SIGINT before it is killed (s).
TIMEOUT_S = 20.0


class Subprocesses:
    """The programs that run at present. Threads may share it."""

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()
        self._stopping = threading.Event()

    def run(self, command: list[str], log: Path, name: str, env: dict[str, str] | None = None) -> None:
        """Run a command, append its output to `log`. Raises BuildError, which quotes the end of the log."""
        with log.open("ab") as file:
            process = self._start(command, file.fileno(), name, env)
        disk_full = False
        try:
            status, disk_full = _wait(process, log.parent)
        finally:
            with self._lock:
                self._running.discard(process)
            if disk_full:
                _signal([process.pid], signal.SIGKILL)  # what is left of its group: see stop_all
        if status == 0:
            return
        if self._stopping.is_set():
            raise BuildError(f"{name}: stopped")
        raise _failure(name, Path(command[0]).name, status, log, disk_full)

    def stopped(self) -> bool:
        """Whether stop_all was called."""
        return self._stopping.is_set()

    def stop_all(self, timeout_s: float = TIMEOUT_S) -> None:
        """End every program: SIGINT first, so that Packer stops its machine, then SIGKILL.

        SIGKILL goes to each whole group, even if its leader has exited: a background program ignores SIGINT.
        """
        self._stopping.set()
        with self._lock:
            groups = [process.pid for process in self._running]
        _signal(groups, signal.SIGINT)
        deadline = time.monotonic() + timeout_s
        while self._running and time.monotonic() < deadline:
            time.sleep(0.1)
        _signal(groups, signal.SIGKILL)

    def _start(self, command: list[str], output: int, name: str, env: dict[str, str] | None) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._stopping.is_set():
                raise BuildError(f"{name}: stopped")
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                process_group=0,
                env={**os.environ, **(env or {})},
            )
            self._running.add(process)
        return process


def _wait(process: subprocess.Popen[bytes], directory: Path) -> tuple[int, bool]:
    """Wait for a program; returns its exit status, and whether it was ended because the disk of `directory` is full.

    QEMU halts its machine when the machine's disk finds no room, and Packer then waits for ever.
    """
    killed_at: float | None = None
    while True:
        try:
            return process.wait(1), killed_at is not None
        except subprocess.TimeoutExpired:
            if killed_at is None and shutil.disk_usage(directory).free < FULL_BYTES:
                _signal([process.pid], signal.SIGINT)
                killed_at = time.monotonic() + TIMEOUT_S
            elif killed_at is not None and time.monotonic() > killed_at:
                _signal([process.pid], signal.SIGKILL)


def _signal(groups: list[int], number: int) -> None:
    for group in groups:
        with suppress(ProcessLookupError):
            os.killpg(group, number)


def _failure(name: str, program: str, status: int, log: Path, disk_full: bool) -> BuildError:
    text = log.read_text(errors="replace")
    if disk_full or "no space left on device" in text.lower():  # Go's programs write it in lower case
        where = log.parent if disk_full else f"{log.parent} or of the temporary directory"
        return BuildError(
            f"{name}: the disk of {where} is full",
            "make room (3 GiB), or set FWLAB_CACHE and TMPDIR to directories with more",
        )
    tail = "\n".join("  " + line for line in text.splitlines()[-15:])
    return BuildError(f"{name}: '{program}' failed with {status}:\n{tail}", f"read the whole log: {log}")


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


#: The template that names Packer's plugins. Before this version Packer has them built in, and cannot read it.
PLUGINS, WITH_PLUGINS = "plugins.pkr.hcl", (1, 7)


class PackerTools:
    """What Packer needs, checked when the first image is built."""

    def __init__(self) -> None:
        self._lock = Lock()  # the images are built in threads, and `packer init` writes
        self._ready = False

    def templates(self, templates: Path, work: Path) -> Path:
        """The folder with what this Packer reads of `templates`: itself, or a copy in `work`."""
        if _packer_version() >= WITH_PLUGINS:
            return templates
        copy = work / "templates"
        copy.mkdir()
        for path in templates.glob("*.pkr.hcl"):
            if path.name != PLUGINS:
                shutil.copy2(path, copy)
        return copy

    def require(self, templates: Path) -> None:
        """Raise BuildError on a host of another architecture, or if a program or a plugin is missing. Looks once."""
        with self._lock:
            if not self._ready:
                if machine := other_architecture():
                    raise BuildError(
                        f"this host is {machine} and the boxes are {BOX_ARCHITECTURE}: they cannot be built here",
                        IMPORT,
                    )
                require_programs(*PROGRAMS)
                _install_plugins(templates)
                self._ready = True


def _install_plugins(templates: Path) -> None:
    """Newer Packers need theirs; older ones have them. Raises BuildError."""
    if _packer_version() < WITH_PLUGINS:
        return
    done = _packer("init", str(templates))
    if done.returncode:
        raise BuildError(
            f"Packer's plugins are missing: {' '.join(done.stdout.split())}",
            f"run 'packer init {templates}' where there is a network; elsewhere 'packer plugins install --path FILE "
            f"SOURCE' for each plugin and version that is named in {templates / PLUGINS}",
        )


def _packer_version() -> tuple[int, int]:
    """Major and minor; (0, 0) if it says none."""
    found = re.search(r"v(\d+)\.(\d+)", _packer("version").stdout)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _packer(*words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "CHECKPOINT_DISABLE": "1"}
    return subprocess.run(
        ["packer", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment, check=False
    )
