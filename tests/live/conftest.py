# SPDX-License-Identifier: GPL-2.0-or-later
"""Fixtures of the live tests.

    lab       the three machines of lab03-ipset, up, in a separate checkout and on separate ports; destroyed at the end

The tests do not disturb a lab that is in use in this checkout. To run them twice at a time, set
FWLAB_LIVE_MACHINES=lab04-nftables for the second run: its tests then measure on the machines of that lab.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fwlab.host.project import find_project, load_topology
from fwlab.model.topology import Role

ROOT = Path(__file__).resolve().parents[2]
PROJECT = find_project(ROOT)
TOPOLOGY = load_topology(PROJECT)
LAB = "lab03-ipset"
STAND = os.environ.get("FWLAB_LIVE_MACHINES", LAB)
OFFSET = 4000
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


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    timeout = 0 if config.getoption("--whole-corpus") else TIMEOUT_S  # 0: none
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent) and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(timeout))


class Checkout:
    """A copy of the checkout, and the commands that a user types in it; `name` is the lab whose machines it has."""

    name = STAND

    def __init__(self, top: Path) -> None:
        self.top = top
        self.environment = {**os.environ, "FWLAB_PORT_OFFSET": str(OFFSET), "VAGRANT_NO_COLOR": "1"}

    def fill(self) -> None:
        """Copy what Vagrant reads from this checkout, except the labs; the boxes are those built here."""
        shutil.copytree(ROOT / "provision", self.top / "provision")
        (self.top / ".fwlab").mkdir()
        shutil.copy(ROOT / ".fwlab" / "images.json", self.top / ".fwlab")
        for name in ("Vagrantfile", "topology.yml", "pyproject.toml"):
            shutil.copy(ROOT / name, self.top)

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

    def states(self) -> dict[str, str]:
        lines = self.vagrant("status", self.name, "--machine-readable").splitlines()
        fields = [line.split(",") for line in lines]
        return {field[1]: field[3] for field in fields if field[2] == "state"}

    def prefix(self) -> str:
        """The prefix of the names of this checkout's libvirt domains."""
        script = "require './provision/vagrant/lab_machines'; print FirewallLab::Project.new(Dir.pwd).prefix"
        return self.call("ruby", "-e", script).stdout

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


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checkout]:
    if not (ROOT / ".fwlab" / "images.json").exists():
        pytest.fail("boxes are not built: run `make boxes`")
    checkout = Checkout(tmp_path_factory.mktemp("live") / "checkout")
    checkout.fill()
    shutil.copytree(ROOT / "labs", checkout.top / "labs")
    for own in (checkout.top / "labs" / LAB / "work").glob("ex*"):
        shutil.rmtree(own)  # start without solutions, as a student does
    try:
        checkout.vagrant("up", STAND)
        yield checkout
    finally:
        checkout.call("vagrant", "destroy", "-f", STAND)
        assert checkout.left_behind() == []


def document(done: subprocess.CompletedProcess[str]) -> dict:
    """The JSON document that a command printed."""
    assert done.stdout, done.stderr[-3000:]
    return json.loads(done.stdout)
