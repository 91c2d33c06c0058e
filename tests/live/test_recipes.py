# SPDX-License-Identifier: GPL-2.0-or-later
"""The recipes of guides/instructor.md for a class on several hosts, with the commands that the guide has.

Two hosts are two sets of namespaces joined by a cable. Each has a home, a checkout and a libvirt of its own.
The cluster is Debian's Slurm, with this host as its only node.
"""

from __future__ import annotations

import contextlib
import csv
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fwlab.measure.labs import load_lab
from tests import ROOT

from .class_of_five import hand_in, rulesets
from .conftest import LAB, PROJECT, Checkout, new_checkout

pytestmark = [pytest.mark.live, pytest.mark.thorough]
EXERCISE = "ex3-ipset"
GUIDE = (ROOT / "guides" / "instructor.md").read_text()
#: The scheduler's address in the guide, and the other host's.
ADDRESS, OTHER = "192.0.2.7", "192.0.2.8"
#: The guide's name of the host where a cluster's scheduler runs.
LOGIN = "login1"
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


def a_class(folder: Path, count: int) -> dict[str, str]:
    """Hand in `count` rulesets of one exercise, every third a wrong one; returns the verdict of each."""
    lab = load_lab(PROJECT, LAB)
    exercise = lab.exercise(EXERCISE)
    assert exercise is not None
    expected = {}
    for number in range(count):
        kind, verdict = ("mistake", "fail") if number % 3 == 2 else ("reference", "pass")
        files = {f"{EXERCISE}/{name}": text for name, text in rulesets(PROJECT, lab, exercise, kind).items()}
        hand_in(folder, f"s{number}", "folder", files)
        expected[f"s{number}"] = verdict
    return expected


def marks(results: Path) -> dict[str, str]:
    rows = csv.DictReader((results / "marks.csv").open(newline=""))
    return {row["who"]: row["verdict"] for row in rows if row["exercise"] == EXERCISE}


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
    """Plug the second host into the switch."""
    one.ip("link", "add", "port", "type", "veth", "peer", "name", "cable", "netns", str(two.init))
    one.ip("link", "set", "port", "master", "switch", "up")
    two.ip("address", "add", f"{OTHER}/24", "dev", "cable")
    two.ip("link", "set", "cable", "up")


@pytest.fixture
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Host, Host]]:
    if os.getuid() != 0:
        pytest.skip("only root makes namespaces")
    top = tmp_path_factory.mktemp("hosts")
    for folder in (top, *top.parents[:2]):
        folder.chmod(0o755)  # pytest's are closed to QEMU's user
    one, two = Host("one", top), Host("two", top)
    try:
        yield one, two
    finally:
        for host in (one, two):
            host.switch_off()
            host.log.close()
        shutil.rmtree(top)


def test_two_hosts_of_which_one_dies(hosts: tuple[Host, Host]) -> None:
    one, two = hosts
    switch(one)
    connect(one, two)
    expected = a_class(one.checkout.top / "submissions", 9)
    scheduler, worker, grade = recipe("Several hosts", "text").splitlines()
    (make_key,) = recipe("Several hosts", "sh").splitlines()
    assert one.start(make_key).wait(60) == 0
    shutil.copy(one.checkout.top / "class.pem", two.checkout.top)

    one.start(scheduler)
    first, _ = one.start(worker), two.start(worker)
    for host in (one, two):
        wait_for(lambda host=host: "waits for work" in host.said(), f"the worker of host {host.name}", 120)
    results = one.checkout.top / "reports" / LAB / "grading"
    record = results / "record.jsonl"
    grading = one.start(grade)

    def machines() -> int:
        return record.read_text().count('"entry":"machines"') if record.exists() else 0

    wait_for(lambda: machines() == 2 or grading.poll() is not None, "both hosts to have graded")
    two.switch_off()
    assert grading.wait(BOOT_S) == 1, one.said()[-3000:]
    assert marks(results) == expected, one.said()[-3000:]
    assert machines() == 2

    two.switch_on()
    connect(one, two)
    again = two.start(worker)
    wait_for(lambda: two.said().count("waits for work") == 2, "the worker after the power failure", 120)
    for process, host in ((again, two), (first, one)):
        os.kill(child_of(process), signal.SIGTERM)  # nsenter itself passes nothing on
        process.wait(120)
        assert list((host.checkout.top / ".fwlab" / "workers").glob("*/")) == [], host.said()[-2000:]


@pytest.fixture
def slurm(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Slurm with this host as its only node; yields the environment for its commands."""
    if shutil.which("slurmctld", path="/usr/sbin:/usr/bin") is None:
        pytest.skip("Slurm is not installed: provision/host/install packages-slurm.txt")
    if os.getuid() != 0:
        pytest.skip("only root starts a slurmd")
    name = subprocess.run(["hostname", "-s"], capture_output=True, text=True, check=True).stdout.strip()
    folder, socket = tmp_path / "slurm", tmp_path / "slurm" / "munge.socket"
    for part in ("state", "spool"):
        (folder / part).mkdir(parents=True)
    folder.chmod(0o755)
    key = folder / "munge.key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o400)
    (folder / "slurm.conf").write_text(
        f"""ClusterName=fwlab
SlurmctldHost={name}(127.0.0.1)
SlurmUser=root
SlurmctldPort=26817
SlurmdPort=26818
AuthType=auth/munge
AuthInfo=socket={socket}
CredType=cred/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
KillWait=120
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
NodeName={name} NodeAddr=127.0.0.1 CPUs={os.cpu_count()} RealMemory=4000
PartitionName=all Nodes={name} Default=YES State=UP OverSubscribe=FORCE:4
"""
    )
    environment = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf"), "PATH": f"/usr/sbin:{os.environ['PATH']}"}
    munge = ["munged", "-F", "-f", f"--key-file={key}", f"--socket={socket}", f"--pid-file={folder}/munged.pid"]
    munge += [f"--log-file={folder}/munged.log", f"--seed-file={folder}/munged.seed"]
    log = (folder / "log").open("w")
    with contextlib.ExitStack() as stack:
        stack.callback(log.close)
        for words in (munge, ["slurmctld", "-D"], ["slurmd", "-D"]):
            streams = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": subprocess.STDOUT}
            process = subprocess.Popen(words, env=environment, **streams)
            stack.callback(process.wait, 60)
            stack.callback(process.terminate)
            if words is munge:
                wait_for(socket.exists, "munged", 30)

        def idle() -> bool:
            done = subprocess.run(
                ["sinfo", "-h", "-o", "%t"], env=environment, capture_output=True, text=True, check=False
            )
            return done.stdout.strip() == "idle"

        wait_for(idle, "the node", 120)
        yield environment


def test_workers_of_a_slurm_cluster(slurm: dict[str, str], tmp_path: Path) -> None:
    with new_checkout() as checkout:
        checkout.environment |= slurm
        expected = a_class(tmp_path / "submissions", 3)
        scheduler, _, grade = recipe("Several hosts", "text").splitlines()
        script = checkout.top / "workers.sh"
        bin_folder = Path(sys.executable).parent
        script.write_text(
            recipe("A cluster with Slurm", "sh")
            .replace(LOGIN, "127.0.0.1")
            .replace("--ntasks=20", "--ntasks=1")
            .replace("srun fwlab", f"srun {bin_folder}/fwlab")
        )
        assert checkout.fwlab("key", "class.pem").returncode == 0
        scheduling = checkout.start(*f"{bin_folder}/{scheduler} --host 127.0.0.1".split())
        try:
            (submit,) = recipe("A cluster with Slurm", "text").splitlines()
            assert "Submitted batch job" in checkout.call(*submit.split()).stdout
            words = grade.replace(ADDRESS, "127.0.0.1").split()
            words[words.index("submissions")] = str(tmp_path / "submissions")
            done = checkout.fwlab(*words[1:])
            assert done.returncode == 1, done.stdout[-3000:] + done.stderr[-3000:]
            assert marks(checkout.top / "reports" / LAB / "grading") == expected
            assert checkout.call("scancel", "--signal=TERM", "--name=fwlab").returncode == 0
            wait_for(lambda: checkout.call("squeue", "-h").stdout == "", "the job to end", 120)
            assert list((checkout.top / ".fwlab" / "workers").glob("*/")) == []
        finally:
            scheduling.terminate()
            scheduling.wait(30)
