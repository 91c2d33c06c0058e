# SPDX-License-Identifier: GPL-2.0-or-later
"""provision/host/libvirt finds libvirt by its socket, not by process names or stale files."""

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import ROOT

SCRIPT = ROOT / "provision/host/libvirt"

#: Listens on its socket and writes its pid file, like the real daemons.
DAEMON = """#!/usr/bin/env python3
import contextlib, os, pathlib, socket, sys
name, pid_file = pathlib.Path(sys.argv[0]).name, pathlib.Path(sys.argv[2])
folder = pathlib.Path(os.environ["XDG_RUNTIME_DIR"], "libvirt")
folder.mkdir(exist_ok=True)
path = folder / {"libvirtd": "libvirt-sock", "virtlogd": "virtlogd-sock"}[name]
path.unlink(missing_ok=True)
with open(folder / "starts", "a") as starts:
    starts.write(name + "\\n")
server = socket.socket(socket.AF_UNIX)
server.bind(str(path))
server.listen()
pid_file.write_text(str(os.getpid()))
while True:
    client, _ = server.accept()
    with client, contextlib.suppress(OSError):
        client.sendall(b"here")
"""

#: Answers only if a daemon answers on the socket.
VIRSH = """#!/usr/bin/env python3
import os, socket, sys
if "list" in sys.argv:
    sys.exit(0)
with socket.socket(socket.AF_UNIX) as client:
    client.connect(os.environ["XDG_RUNTIME_DIR"] + "/libvirt/libvirt-sock")
    client.settimeout(1)
    sys.exit(client.recv(4) != b"here")
"""


class Host:
    """An ordinary user on a host where an unrelated process is called libvirtd."""

    def __init__(self, top: Path) -> None:
        self.home, self.runtime = top / "home", top / "run"
        self.state = top / "cache/fwlab/run"
        tools = top / "bin"
        for folder in (self.home, self.state, self.runtime / "libvirt", tools):
            folder.mkdir(parents=True)
        programs = {"virsh": VIRSH, "libvirtd": DAEMON, "virtlogd": DAEMON}
        programs |= {"id": "#!/bin/sh\necho 1000\n", "pgrep": "#!/bin/sh\necho 4242\n"}
        for name, text in programs.items():
            (tools / name).write_text(text)
            (tools / name).chmod(0o755)
        self.tools = tools
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("FWLAB_", "LIBVIRT_"))}
        path = f"{tools}:{os.environ['PATH']}"
        kept["XDG_CACHE_HOME"] = str(top / "cache")
        self.environment = {**kept, "PATH": path, "HOME": str(self.home), "XDG_RUNTIME_DIR": str(self.runtime)}

    def libvirt(self, command: str) -> subprocess.CompletedProcess[str]:
        argv = [str(SCRIPT), command]
        return subprocess.run(argv, env=self.environment, capture_output=True, text=True, timeout=90)

    def pid(self, name: str) -> int:
        return int((self.state / f"{name}.pid").read_text())

    def starts(self) -> list[str]:
        """Names of the daemons that have started. libvirt may answer before the other one has."""
        path = self.runtime / "libvirt/starts"
        for _ in range(200):
            found = path.read_text().split() if path.exists() else []
            if len(found) > 1:
                break
            time.sleep(0.1)
        return sorted(found)

    def end(self) -> None:
        for path in self.state.glob("*.pid"):
            with contextlib.suppress(OSError):
                pid = int(path.read_text())
                if str(path).encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                    os.kill(pid, 9)


@pytest.fixture
def host() -> Iterator[Host]:
    with tempfile.TemporaryDirectory() as top:  # the path of a socket must be short, so not tmp_path
        made = Host(Path(top))
        try:
            yield made
        finally:
            made.end()


@pytest.mark.parametrize("there", ["a process of that name", "a running daemon", "stale files"])
def test_libvirt_is_started_unless_it_answers(host: Host, there: str) -> None:
    match there:
        case "a running daemon":
            assert host.libvirt("start").returncode == 0
        case "stale files":
            for name in ("libvirt-sock", "virtlogd-sock"):
                with socket.socket(socket.AF_UNIX) as gone:
                    gone.bind(str(host.runtime / "libvirt" / name))
            (host.state / "libvirtd.pid").write_text(str(os.getpid()))
    done = host.libvirt("start")
    assert (done.returncode, done.stderr) == (0, "")
    assert host.starts() == ["libvirtd", "virtlogd"]


@pytest.mark.parametrize("slow", [False, True])
def test_stop_ends_what_start_started(host: Host, slow: bool) -> None:
    """libvirt answers before a slow virtlogd has written its pid."""
    if slow:
        (host.tools / "virtlogd").write_text(DAEMON.replace("server = ", "import time; time.sleep(1)\nserver = "))
    assert host.libvirt("start").returncode == 0
    pids = [host.pid("libvirtd"), host.pid("virtlogd")]
    assert host.libvirt("stop").returncode == 0
    assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]
    assert host.libvirt("status").returncode == 1


def test_stop_spares_a_process_that_reuses_the_pid(host: Host) -> None:
    """A daemon of the same name, such as in a container, has the pid of a stale pid file."""
    program = host.home / "libvirtd"
    shutil.copy(shutil.which("sleep"), program)
    other = subprocess.Popen([program, "100"])
    try:
        (host.state / "libvirtd.pid").write_text(str(other.pid))
        assert host.libvirt("stop").returncode == 0
        assert other.poll() is None
        assert not (host.state / "libvirtd.pid").exists()
    finally:
        other.kill()
        other.wait()


def test_a_daemon_that_exits_at_once_is_reported_with_its_output(host: Host) -> None:
    (host.tools / "libvirtd").write_text("#!/bin/sh\necho libvirtd: no room >&2\nexit 1\n")
    done = host.libvirt("start")
    assert done.returncode == 2
    assert "libvirtd ended as soon as it was started: libvirtd: no room\n  next: read " in done.stderr


def test_a_daemon_does_not_inherit_locks(tmp_path: Path) -> None:
    """Otherwise flock(1) around a command that starts machines would never release its lock."""
    with (tmp_path / "lock").open("w") as lock:
        argv = [str(SCRIPT.with_name("reaper")), "sh", "-c", "ls -l /proc/$$/fd"]
        done = subprocess.run(argv, pass_fds=[lock.fileno()], capture_output=True, text=True, check=True)
    assert str(tmp_path / "lock") not in done.stdout


@pytest.mark.parametrize("command", ["start", "status"])
def test_a_home_whose_path_is_too_long_is_named_with_a_way_out(host: Host, command: str) -> None:
    host.environment["HOME"] = f"/{'h' * 60}"
    done = host.libvirt(command)
    assert done.returncode == 2
    assert f"libvirt: /{'h' * 60} is too long a path for libvirt's sockets\n  next: " in done.stderr
    assert host.libvirt("restart").returncode == 2, "there is no such command"
    host.environment["XDG_CONFIG_HOME"] = "/short"
    assert host.libvirt(command).returncode in (0, 1)
