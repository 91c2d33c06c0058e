# SPDX-License-Identifier: GPL-2.0-or-later
"""The recipes of guides/instructor.md for a class on several hosts, with the commands that the guide has.

The two hosts are those of two_hosts.py. The cluster is Debian's Slurm, with this host as its only node.
"""

from __future__ import annotations

import contextlib
import csv
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fwlab.measure.labs import load_lab

from .class_of_five import hand_in, rulesets
from .conftest import LAB, PROJECT, new_checkout
from .two_hosts import ADDRESS, BOOT_S, Host, child_of, connect, recipe, two_hosts, wait_for

pytestmark = [pytest.mark.live, pytest.mark.thorough]
EXERCISE = "ex3-ipset"
#: The guide's name of the host where a cluster's scheduler runs.
LOGIN = "login1"


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


@pytest.fixture
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Host, Host]]:
    if os.getuid() != 0:
        pytest.skip("only root makes namespaces")
    top = tmp_path_factory.mktemp("hosts")
    for folder in top.parents[:2]:
        folder.chmod(0o755)  # pytest's are closed to QEMU's user
    with two_hosts(top) as pair:
        yield pair


def test_two_hosts_of_which_one_dies(hosts: tuple[Host, Host]) -> None:
    one, two = hosts
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
