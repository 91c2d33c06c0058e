# SPDX-License-Identifier: GPL-2.0-or-later
"""Fixtures of the live tests.

    lab       the three machines of lab03-ipset, up, in a separate checkout and on separate ports; destroyed at the end

The tests do not disturb a lab that is in use in this checkout. Several processes (pytest -n 2) share them by files,
each with machines of its own. To run them once more at the same time, set FWLAB_LIVE_MACHINES=lab04-nftables for the
second run: its tests then measure on the machines of that lab.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import pytest
import testinfra
from testinfra.host import Host

from fwlab.checkout.project import find_project, load_topology
from fwlab.machines.plan import Plan
from fwlab.model.topology import Role

ROOT = Path(__file__).resolve().parents[2]
PROJECT = find_project(ROOT)
TOPOLOGY = load_topology(PROJECT).model_copy(update={"port_shift": 0})
LAB = "lab03-ipset"
STAND = os.environ.get("FWLAB_LIVE_MACHINES", LAB)
#: Processes that share the tests are numbered from 0; the ports of two are so far apart.
PROCESS = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:])
OFFSET = 4000 + 200 * PROCESS
#: The process that starts the others, or the only one. It names them the folder of all checkouts in this variable.
FIRST_PROCESS = "PYTEST_XDIST_WORKER" not in os.environ
CHECKOUTS = "FWLAB_LIVE_CHECKOUTS"
#: Files that take long are begun first. The last one ends with its process's machines destroyed.
LONG = (
    *("test_labs", "test_image", "test_class", "test_model", "test_connections", "test_lab11", "test_refused"),
    *("test_cleared_away", "test_engine_virtio", "test_bundle", "test_hold", "test_lab03", "test_saved_machine"),
)
LAST = "test_trouble"
#: Seconds that one test may take with its fixtures, which boot machines.
TIMEOUT_S = 3600


def ssh_port(role: Role, name: str = STAND) -> int:
    """The port of a machine of the `lab` fixture, whatever FWLAB_PORT_OFFSET these tests were started with."""
    own = int(os.environ.get("FWLAB_PORT_OFFSET") or 0)
    return TOPOLOGY.ssh_port(int(name[3:5]), role) - own + OFFSET


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--whole-corpus", action="store_true", help="load every ruleset of tests/corpus, not a sample")


def pytest_configure() -> None:
    """A CI that gives up sends SIGTERM. Let it end the tests as Ctrl-C does, which destroys the machines."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if FIRST_PROCESS:
        os.environ[CHECKOUTS] = tempfile.mkdtemp(prefix="fwlab-live-")


def pytest_unconfigure() -> None:
    """Clear up after the other processes: one that does not end within seconds of an interrupt is killed."""
    if FIRST_PROCESS:
        checkouts = Path(os.environ.pop(CHECKOUTS))
        for top in checkouts.glob("*/checkout"):
            Checkout(top).destroy()
        shutil.rmtree(checkouts)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    timeout = 0 if config.getoption("--whole-corpus") else TIMEOUT_S  # 0: none
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent) and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(timeout))
    order = {name: number - len(LONG) for number, name in enumerate(LONG)} | {LAST: 1}
    items.sort(key=lambda item: order.get(item.path.stem, 0))


class Checkout:
    """A copy of the checkout, and the commands that a user types in it; `name` is the lab whose machines it has."""

    name = STAND

    def __init__(self, top: Path) -> None:
        self.top = top
        self.environment = {**os.environ, "FWLAB_PORT_OFFSET": str(OFFSET), "VAGRANT_NO_COLOR": "1"}

    def fill(self) -> None:
        """Copy what Vagrant reads from this checkout, and the labs; the boxes are those built here."""
        for name in ("labs", "provision"):
            shutil.copytree(ROOT / name, self.top / name)
        (self.top / ".fwlab").mkdir()
        shutil.copy(ROOT / ".fwlab" / "images.json", self.top / ".fwlab")
        for name in ("Vagrantfile", "topology.yml", "pyproject.toml"):
            shutil.copy(ROOT / name, self.top)
        (self.top / ".venv").symlink_to(sys.prefix)

    def call(self, *argv: str, timeout: float = 1200) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            argv,
            cwd=self.top,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
        )

    def start(self, *argv: str) -> subprocess.Popen[str]:
        """Start a command as a terminal does: with SIGINT enabled, which a shell's background jobs ignore."""
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(
            argv,
            cwd=self.top,
            env=self.environment,
            text=True,
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
            **pipes,
        )

    def vagrant(self, *words: str) -> str:
        done = self.call("vagrant", *words)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        return done.stdout

    def fwlab(self, *words: str, timeout: float = 1200) -> subprocess.CompletedProcess[str]:
        return self.call(*self.fwlab_command(*words), timeout=timeout)

    @staticmethod
    def fwlab_command(*words: str) -> list[str]:
        return [str(Path(sys.executable).with_name("fwlab")), *words]

    def pytest(self, *words: str) -> subprocess.CompletedProcess[str]:
        return self.call(sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *words, timeout=1800)

    def run(self, role: Role, command: str) -> str:
        """Run a command on a node. `vagrant ssh` does the same, and takes three seconds more."""
        options = ["-o", "StrictHostKeyChecking=no", "-o", f"UserKnownHostsFile={os.devnull}", "-o", "BatchMode=yes"]
        key, port = str(self.top / ".fwlab" / "ssh" / "id_ed25519"), str(ssh_port(role, self.name))
        done = self.call("ssh", "-q", "-i", key, "-p", port, *options, f"vagrant@{TOPOLOGY.ports.address}", command)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        return done.stdout

    def host(self, role: Role) -> Host:
        """The node as Testinfra's Host, with root's rights."""
        options = f"-o StrictHostKeyChecking=no -o UserKnownHostsFile={os.devnull} -o BatchMode=yes -o LogLevel=ERROR"
        return testinfra.get_host(
            f"ssh://vagrant@{TOPOLOGY.ports.address}:{ssh_port(role, self.name)}",
            ssh_identity_file=str(self.top / ".fwlab" / "ssh" / "id_ed25519"),
            ssh_extra_args=options,
            sudo=True,
        )

    def clear_work(self) -> None:
        """Remove a student's rulesets, predictions and progress: no exercise was begun or measured."""
        work = self.top / "labs" / LAB / "work"
        shutil.rmtree(work)
        work.mkdir()

    def destroy(self) -> subprocess.CompletedProcess[str]:
        """Destroy all machines of this checkout."""
        machines = sorted(path.name for path in self.top.glob(".vagrant/machines/*"))
        return self.call("vagrant", "destroy", "-f", *machines or [self.name])

    def states(self) -> dict[str, str]:
        lines = self.vagrant("status", self.name, "--machine-readable").splitlines()
        fields = [line.split(",") for line in lines]
        return {field[1]: field[3] for field in fields if field[2] == "state"}

    def prefix(self) -> str:
        """The prefix of the names of this checkout's libvirt domains."""
        return Plan(self.top).prefix

    def left_behind(self) -> list[str]:
        """Command lines of QEMU processes of this checkout that still run."""
        wanted, found = self.prefix().encode(), []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                line = (folder / "cmdline").read_bytes()
            except OSError:
                continue
            if b"guest=" + wanted in line:
                found.append(line.replace(b"\0", b" ").decode(errors="replace")[:160])
        return found


Own = TypeVar("Own", bound=Checkout)


@contextlib.contextmanager
def new_checkout(kind: type[Own] = Checkout) -> Iterator[Own]:  # type: ignore[assignment]
    """A checkout without machines; those that it has when the context ends are destroyed."""
    if not (ROOT / ".fwlab" / "images.json").exists():
        pytest.fail("boxes are not built: run `make boxes`")
    folder = Path(tempfile.mkdtemp(dir=os.environ[CHECKOUTS]))
    checkout = kind(folder / "checkout")
    try:
        checkout.fill()
        yield checkout
    finally:
        checkout.destroy()
        assert checkout.left_behind() == []
        shutil.rmtree(folder)


@pytest.fixture(scope="session")
def lab() -> Iterator[Checkout]:
    with new_checkout() as checkout:
        checkout.clear_work()
        # One process after the other: six machines that boot at once take too long for Vagrant. Where no saved state
        # fits, the first process saves one.
        with (Path(os.environ[CHECKOUTS]) / "up.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            checkout.vagrant("up", STAND)
        yield checkout


def document(done: subprocess.CompletedProcess[str]) -> dict:
    """The JSON document that a command printed."""
    assert done.stdout, done.stderr[-3000:]
    return json.loads(done.stdout)
