# SPDX-License-Identifier: GPL-2.0-or-later
"""Two hosts on this one: two sets of namespaces joined by a cable, each with a home, a checkout and a libvirt.

And the commands for several hosts, as guides/instructor.md has them.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests import ROOT

from .conftest import Checkout

GUIDE = (ROOT / "guides" / "instructor.md").read_text()
#: The scheduler's address in the guide, and the other host's.
ADDRESS, OTHER = "192.0.2.7", "192.0.2.8"
#: What libvirt knows of this host's own machines.
MACHINES_OF_THIS_HOST = shutil.ignore_patterns("*.xml")
#: Seconds for a worker to boot its machines, also where two boot at once on two busy cores.
BOOT_S = 900


def recipe(heading: str, language: str) -> str:
    """The first block of this language in a section of the guide."""
    section = re.search(rf"^### {heading}\n(.*?)^##", GUIDE, re.MULTILINE | re.DOTALL)
    assert section, heading
    block = re.search(rf"^```{language}\n(.*?)^```", section[1], re.MULTILINE | re.DOTALL)
    assert block, f"{heading} has no {language}"
    return block[1]


def wait_for(what: Callable[[], bool], name: str, seconds: float = BOOT_S) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, f"waited in vain: {name}"
        time.sleep(0.5)


def child_of(process: subprocess.Popen[Any]) -> int:
    """The process that a program which enters or makes namespaces waits for."""
    return int(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()[0])


class Host:
    """A host of its own as far as programs can tell: its network, processes, /run and libvirt are nobody else's."""

    #: What libvirt and this project write outside of a user's home.
    FOLDERS = ("/run", "/var/lib/libvirt", "/var/cache/libvirt", "/var/log/libvirt", "/etc/libvirt")

    def __init__(self, name: str, top: Path) -> None:
        self.name, self.top = name, top / name
        self.checkout = Checkout(self.top / "home" / "checkout")
        self.checkout.top.mkdir(parents=True)
        self.checkout.fill()
        shutil.copytree(Path.home() / ".vagrant.d" / "boxes", self.top / "home" / ".vagrant.d" / "boxes")
        for folder in self.FOLDERS:
            (self.top / folder[1:]).mkdir(parents=True)
        shutil.copytree("/etc/libvirt", self.top / "etc" / "libvirt", dirs_exist_ok=True, ignore=MACHINES_OF_THIS_HOST)
        self.log = (top / f"{name}.log").open("a")
        self.switch_on()

    def switch_on(self) -> None:
        """Start the host, without processes but one that waits."""
        mounts = " && ".join(f"mount --bind {self.top}{folder} {folder}" for folder in self.FOLDERS)
        apart = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
        script = f"{mounts} && ip link set lo up && echo on && exec sleep infinity"
        self._switch = subprocess.Popen([*apart, "sh", "-c", script], stdout=subprocess.PIPE, text=True)
        assert self._switch.stdout is not None
        assert self._switch.stdout.readline() == "on\n"
        self.init = child_of(self._switch)

    def switch_off(self) -> None:
        """As if its power failed: every process in it ends at once."""
        self._switch.kill()
        self._switch.wait()

    def start(self, command: str) -> subprocess.Popen[bytes]:
        """Start what a user types in the checkout; the output goes to a log."""
        inside = ["nsenter", f"--target={self.init}", "--net", "--mount", "--pid"]
        words = [*inside, "sh", "-c", f"cd {self.checkout.top} && exec {command}"]
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        environment = {"HOME": str(self.top / "home"), "PATH": path, "LANG": "C.UTF-8", "PYTHONUNBUFFERED": "1"}
        streams = {"stdin": subprocess.DEVNULL, "stdout": self.log, "stderr": subprocess.STDOUT}
        return subprocess.Popen(words, env=environment, **streams)

    def ip(self, *words: str) -> None:
        subprocess.run(["nsenter", f"--target={self.init}", "--net", "ip", *words], check=True)

    def said(self) -> str:
        return Path(self.log.name).read_text()


def switch(one: Host) -> None:
    """Give the first host a switch, and its address there, which stays when another host's cable is gone."""
    one.ip("link", "add", "switch", "type", "bridge")
    one.ip("address", "add", f"{ADDRESS}/24", "dev", "switch")
    one.ip("link", "set", "switch", "up")


def connect(one: Host, two: Host) -> None:
    """Plug the second host into the switch. The end of an earlier cable goes soon after that host's power."""
    port = ["nsenter", f"--target={one.init}", "--net", "ip", "link", "show", "port"]
    wait_for(lambda: subprocess.run(port, capture_output=True).returncode != 0, "the port of the switch", 60)
    one.ip("link", "add", "port", "type", "veth", "peer", "name", "cable", "netns", str(two.init))
    one.ip("link", "set", "port", "master", "switch", "up")
    two.ip("address", "add", f"{OTHER}/24", "dev", "cable")
    two.ip("link", "set", "cable", "up")


@contextlib.contextmanager
def two_hosts(top: Path) -> Iterator[tuple[Host, Host]]:
    """Two hosts that are switched on and connected; their files are in this folder, which goes with them."""
    top.mkdir(mode=0o755, exist_ok=True)
    top.chmod(0o755)
    one, two = Host("one", top), Host("two", top)
    try:
        switch(one)
        connect(one, two)
        yield one, two
    finally:
        for host in (one, two):
            host.switch_off()
            host.log.close()
        shutil.rmtree(top)
