# SPDX-License-Identifier: GPL-2.0-or-later
"""SSH to a node on the loopback address: OpenSSH's client, with one shared connection per node."""

import contextlib
import os
import shlex
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from fwlab.checkout.atomic_write import write_atomically, write_errors_as
from fwlab.checkout.project import Project
from fwlab.host.environment import timeout_scale
from fwlab.host.process import wait_or_kill
from fwlab.host.root_shell import LOST, Program, RootShell
from fwlab.model.errors import CannotMeasure, DutLost
from fwlab.model.topology import ROLES, Role, Topology

#: A command without a terminal does not notice that the connection is gone. It is ended when its input closes, in which
#: nothing is sent. `timeout` makes a process group of it; sudo, because the command may use sudo as well.
_WATCHED = (
    "exec 3<&0; timeout 0 sh -c {command} </dev/null 3<&- & p=$!; "
    "(cat <&3; sudo kill -TERM -- -$p) >/dev/null 2>&1 & w=$!; wait $p; r=$?; kill $w 2>/dev/null; exit $r"
)

#: Key exchange: much cheaper for an emulated CPU than OpenSSH's default, sntrup761x25519-sha512.
FAST_KEX = "curve25519-sha256"


def control_sockets() -> Path:
    """The folder of the shared connections' sockets. A socket's path has at most 107 bytes: it cannot be in a checkout.

    Raises CannotMeasure if it cannot be made, or if another user could replace the sockets: anybody can make a folder
    of this name.
    """
    folder = Path(tempfile.gettempdir()) / f"fwlab-ssh-{os.getuid()}"
    with write_errors_as(folder, CannotMeasure):
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise CannotMeasure(
            f"{folder} is not a folder of yours alone, so sockets in it are not safe",
            "remove it; if you may not: `mkdir -m 700 ~/tmp; export TMPDIR=~/tmp`",
        )
    return folder


def write_ssh_config(project: Project, topology: Topology, lab_number: int, lab_id: str) -> Path:
    """Write an OpenSSH configuration with one host per role. Testinfra reads the same file.

    Host keys are not checked: each `vagrant up` makes new nodes, and they answer on the loopback address only.
    """
    path = project.state / lab_id / "ssh_config"
    sockets = control_sockets()
    blocks = [
        f"""Host {role}
  HostName {topology.ports.address}
  Port {topology.ssh_port(lab_number, role)}
  User vagrant
  IdentityFile "{project.state / "ssh" / "id_ed25519"}"
  IdentitiesOnly yes
  StrictHostKeyChecking no
  UserKnownHostsFile /dev/null
  LogLevel ERROR
  BatchMode yes
  KexAlgorithms ^{FAST_KEX}
  ConnectTimeout {round(20 * timeout_scale())}
  ServerAliveInterval 30
  ServerAliveCountMax 20
  ControlMaster auto
  ControlPath {sockets}/%C
  ControlPersist 60
"""
        for role in ROLES
    ]
    return write_atomically(path, "\n".join(blocks), error=CannotMeasure)


class Ssh:
    """Commands on one node. A lost connection raises CannotMeasure."""

    def __init__(self, config: Path, role: Role) -> None:
        if shutil.which("ssh") is None:
            raise CannotMeasure("the OpenSSH client is missing", "make setup")
        self.role = role
        self._base = ["ssh", "-F", str(config), role]
        # Not on the DUT, where a program more could show in the figures.
        self._shell = None if role == "dut" else RootShell(self._base)
        self._programs = RootShell(self._base)

    def run(self, command: str, *, data: bytes = b"", timeout: float = 60, check: bool = True) -> str:
        """Run a shell command as root on the node and return its standard output.

        `command` is this project's text, never a submission's. `timeout` is extended on a slow host (timeout_scale).
        Raises CannotMeasure.
        """
        timeout *= timeout_scale()
        try:
            if self._shell:
                done = self._shell.run(command, data, timeout)
            else:
                done = self._run_once(f"sudo sh -c {shlex.quote(command)}", data, timeout)
        except subprocess.TimeoutExpired as error:
            raise CannotMeasure(
                f"{self.role}: no answer within {timeout:g} s to: {command[:80]}", "fwlab doctor"
            ) from error
        if done.returncode == LOST:
            raise self.lost(done.stderr.decode(errors="replace"))
        if check and done.returncode:
            words = done.stderr.decode(errors="replace").strip()
            raise CannotMeasure(f"{self.role}: exit {done.returncode} from: {command[:80]}\n{words}")
        return done.stdout.decode(errors="replace")

    def _run_once(self, command: str, data: bytes, timeout: float) -> subprocess.CompletedProcess[bytes]:
        argv = [*self._base, command]
        return subprocess.run(
            argv, input=data, capture_output=True, timeout=timeout, start_new_session=True, check=False
        )

    def open(self, command: str) -> subprocess.Popen[bytes]:
        """Start a command as root whose input and output stay open."""
        argv = [*self._base, f"sudo sh -c {shlex.quote(command)}"]
        return subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def launch(self, command: str) -> Program:
        """Start a command as root that reads its input to its end, sooner than `open` does. One at a time."""
        return self._programs.start(command)

    def prepare(self) -> None:
        """Open now what `run` and `launch` use. The first time, that takes a second each on an emulated node."""
        self.run("true")
        self.launch("true").wait(60 * timeout_scale())

    def login(self, command: str = "") -> int:
        """Log in as `vagrant ssh` does, on our own terminal: a shell, or one command. Returns its exit status.

        It never becomes the shared connection, which outlives its command. Whatever ends us ends the login and what it
        runs. Raises CannotMeasure if the connection is lost.
        """
        terminal = sys.stdin.isatty() and sys.stdout.isatty()
        watched = bool(command) and not terminal
        words = [_WATCHED.format(command=shlex.quote(command)) if watched else command] if command else []
        argv = [*self._base[:-1], "-o", "ControlMaster=no", "-t" if terminal else "-T", self.role, *words]
        process = subprocess.Popen(argv, stdin=subprocess.PIPE if watched else None)
        try:
            status = process.wait()
        except BaseException:
            process.terminate()
            raise
        finally:
            wait_or_kill(process, 10)
        if status < 0 or (status == 255 and not self.answers()):  # 255: ssh's own, or that of the shell's last command
            raise self.lost()
        return status

    def tunnel(self, loopback: str, port: int) -> tuple[subprocess.Popen[bytes], int]:
        """Open a tunnel to a TCP port of the node's loopback address; returns its process and its port on this host.

        The tunnel ends with the process. Raises CannotMeasure if it cannot be opened.
        """
        with socket.socket() as probe:
            probe.bind((loopback, 0))
            near = probe.getsockname()[1]
        options = ["-N", "-o", "ControlPath=none", "-o", "ExitOnForwardFailure=yes"]
        forward = ["-L", f"{loopback}:{near}:{loopback}:{port}"]
        process = subprocess.Popen(
            [*self._base[:-1], *options, *forward, self.role],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and process.poll() is None:
            with socket.socket() as probe:
                probe.settimeout(2)
                if probe.connect_ex((loopback, near)) == 0:
                    return process, near
            time.sleep(0.1)
        process.kill()
        process.wait()
        raise self.lost("cannot open a tunnel")

    def answers(self, timeout: float = 25) -> bool:
        """Whether a new login to the node works."""
        # Not as root: sudo takes longer than the rest on an emulated node.
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._run_once("true", b"", timeout).returncode == 0
        return False

    def greets(self, timeout: float = 10) -> bool:
        """Whether a new connection to the node is greeted by its SSH server, which is where a login begins."""
        done = subprocess.run(["ssh", "-G", *self._base[1:]], capture_output=True, text=True, check=False)
        given = dict(line.split(" ", 1) for line in done.stdout.splitlines() if " " in line)
        with (
            contextlib.suppress(OSError),
            socket.create_connection((given["hostname"], int(given["port"])), timeout * timeout_scale()) as connection,
        ):
            return connection.recv(4) == b"SSH-"
        return False

    def lost(self, words: str = "") -> CannotMeasure:
        """The error for a lost connection; it quotes the last line of `words`, ssh's own message."""
        detail = f": {words.strip().splitlines()[-1]}" if words.strip() else ""
        kind = DutLost if self.role == "dut" else CannotMeasure
        return kind(
            f"lost the connection to the {self.role}{detail}",
            "see whether the machine still runs: `vagrant status LAB`; then `vagrant up LAB`",
        )

    def close(self) -> None:
        """End the shared connection, and the shell that uses it."""
        if self._shell is not None:
            self._shell.close()
        self._programs.close()
        subprocess.run([*self._base[:-1], "-O", "exit", self.role], capture_output=True, check=False)
