# SPDX-License-Identifier: GPL-2.0-or-later
"""The container image, built by `make image` and run without privileges, capabilities and network.

FWLAB_LIVE_IMAGE=NAME tests an image that was built before. Where no registry can be reached, the image that it begins
with is made from packages. The settings below are for hosts whose limits and cgroups are those of a container.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fwlab.checkout.project import find_project
from fwlab.cli import EXIT_INTERRUPTED
from fwlab.grading.student_repository import write_repository
from fwlab.measure.labs import load_lab
from fwlab.model.errors import EXIT_FAIL, EXIT_UNMEASURED

from .class_of_five import make, rulesets
from .conftest import LAB, ROOT
from .interrupted import verdicts

pytestmark = [pytest.mark.live, pytest.mark.timeout(7200)]
thorough = pytest.mark.thorough

BASE = "docker.io/library/debian:12-slim"
CONTAINERS_CONF = """
[containers]
default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
runtime = "runc"
"""
STORAGE_CONF = '[storage]\ndriver = "overlay"\ngraphroot = "{top}/storage"\nrunroot = "{top}/run"\n'
#: At most, in MB: compressed, and what `vagrant up` adds on the disk.
COMPRESSED, ADDED = 900, 300
MEASURED = f"vagrant up {LAB} >&2 && fwlab run {LAB} raw-drop --json"
READ_ONLY = ("--read-only", "--tmpfs=/home:mode=1777", "--tmpfs=/tmp")
EXERCISE = "ex1-one-host"


class Podman:
    """Podman with storage of its own below `top`."""

    image = os.environ.get("FWLAB_LIVE_IMAGE", "fwlab-live")

    def __init__(self, top: Path) -> None:
        self.top = top
        self.environment = dict(os.environ)
        if "FWLAB_LIVE_IMAGE" not in os.environ:
            (top / "containers.conf").write_text(CONTAINERS_CONF)
            (top / "storage.conf").write_text(STORAGE_CONF.format(top=top))
            more = {"CONTAINERS_CONF": "containers.conf", "CONTAINERS_STORAGE_CONF": "storage.conf"}
            self.environment |= {name: str(top / file) for name, file in more.items()}
            self.environment["BUILDAH_ISOLATION"] = "chroot"

    def call(self, *argv: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            argv, cwd=ROOT, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True
        )

    def done(self, *argv: str) -> str:
        done = self.call(*argv)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        return done.stdout.strip()

    def build(self) -> None:
        certificates = "/etc/ssl/certs/ca-certificates.crt"
        hooks = [f"cp -P --parents {path} $1 || true" for path in ("/etc/pip.conf", "/etc/apt/apt.conf.d/99*")]
        # As in the image that this one is used for.
        left_out = [f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in ("doc", "info", "locale", "man")]
        customize = [f"--customize-hook={hook}" for hook in (*hooks, f"cp {certificates} $1{certificates}")]
        options = ("--variant=minbase", "--include=ca-certificates", *left_out, *customize)
        tar, boxes = str(self.top / "base.tar"), str(self.top / "boxes")
        self.done("mmdebstrap", *options, "bookworm", tar)
        self.done("podman", "import", "--quiet", tar, BASE)
        self.done("packer/build", "--no-vagrant", "--export", boxes)
        self.done("make", "image", "BUILDER=podman", f"IMAGE={self.image}", f"IMPORT={boxes}")

    def command(self, user: int, *words: str, script: str, name: str = "") -> list[str]:
        """Without a network and, unless as root, without any capability."""
        alone = ("--network=none", *(("--cap-drop=ALL",) if user else ()), *(("--name", name) if name else ()))
        return ["podman", "run", "--rm", *alone, f"--user={user}", *words, self.image, "sh", "-c", script]


@pytest.fixture(scope="module")
def podman(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Podman]:
    lacking = [name for name in ("podman", "runc", "mmdebstrap") if shutil.which(name) is None]
    if lacking or os.getuid() != 0:
        pytest.skip(f"needs root and: {', '.join(lacking)}")
    top = tmp_path_factory.mktemp("image")
    found = Podman(top)
    if (trial := found.call("podman", "info")).returncode:
        pytest.skip(f"Podman cannot run here: {trial.stderr.strip().splitlines()[-1]}")
    if "FWLAB_LIVE_IMAGE" not in os.environ:
        found.build()
    yield found
    if "FWLAB_LIVE_IMAGE" not in os.environ:
        found.done("podman", "rmi", "--all", "--force")


def volume(top: Path, user: int) -> Path:
    folder = top / f"work-{user}"
    folder.mkdir()
    os.chown(folder, user, user)
    return folder


@thorough
def test_it_is_small(podman: Podman) -> None:
    packed = f"podman save {podman.image} | zstd -q -c | wc -c"
    assert int(podman.done("sh", "-c", packed)) <= COMPRESSED * 1_000_000
    filled = f"vagrant up {LAB} >&2 && du -xsm /home | cut -f1"
    assert int(podman.done(*podman.command(1000, script=filled))) <= ADDED


def test_students_get_no_solution(podman: Podman) -> None:
    """What a bundle has is tested without an image; this is about what else lies in it."""
    names = " -o ".join(
        f"-name {name}" for name in ("reference", "mistake", "variants.yml", "instructor.md", "results")
    )
    find = f'find /opt/fwlab /opt/machines "$HOME" -name .venv -prune -o \\( {names} \\) -print'
    assert podman.done(*podman.command(1000, script=find)) == ""
    assert podman.done(*podman.command(1000, script=f"ls labs/{LAB}/rulesets/{EXERCISE}")) == "start"


def test_nothing_is_compiled_as_it_starts(podman: Podman) -> None:
    """Its users cannot keep what they compile, so each command would compile all that it imports."""
    imported = "python -v -c 'import fwlab.cli.main, trex_stl_lib.trex_stl_client, matplotlib.axes' 2>&1"
    lines = podman.done(*podman.command(1000, script=imported)).splitlines()
    taken = [line for line in lines if "code object from '/opt/fwlab" in line]
    assert len(taken) > 500
    assert [line for line in taken if ".pyc" not in line] == []


@pytest.mark.parametrize(
    ("user", "more"),
    [
        pytest.param(1000, (), marks=thorough, id="user"),
        pytest.param(1000, READ_ONLY, marks=thorough, id="read-only"),
        pytest.param(4242, ("--memory=2g",), id="another user with 2 GiB"),
        pytest.param(0, (), id="root"),
    ],
)
def test_anybody_measures_what_is_published(podman: Podman, tmp_path: Path, user: int, more: tuple[str, ...]) -> None:
    work = volume(tmp_path, user)
    done = podman.call(*podman.command(user, f"--volume={work}:/srv/work", *more, script=MEASURED))
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    assert f"{LAB} is up: `fwlab run {LAB}`" in done.stderr
    assert '"verdict": "pass"' in done.stdout
    report = work / "reports" / LAB / "report.html"
    assert report.stat().st_uid == user
    assert (work / LAB / "README.md").stat().st_uid == user


def test_two_containers_measure_at_once(podman: Podman) -> None:
    commands = [podman.command(user, script=MEASURED) for user in (1000, 4242)]
    running = [
        subprocess.Popen(one, env=podman.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for one in commands
    ]
    for process in running:
        out, errors = process.communicate()
        assert process.returncode == 0, errors[-3000:]
        assert '"verdict": "pass"' in out


@thorough
def test_a_host_that_slept_measures_what_is_published(podman: Podman) -> None:
    """All processes but the shell stop, three times."""
    slept = "for _ in 1 2 3; do sleep 4; kill -STOP -1; sleep 45; kill -CONT -1; done"
    measured = f"vagrant up {LAB} >&2 && {{ fwlab run {LAB} raw-drop --json & {slept}; wait $!; }}"
    done = podman.call(*podman.command(1000, script=measured))
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    assert '"verdict": "pass"' in done.stdout


@thorough
def test_sigterm_ends_what_runs(podman: Podman) -> None:
    command = podman.command(1000, script=f"exec fwlab run {LAB}", name="fwlab-live-term")
    process = subprocess.Popen(
        command, env=podman.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    said = ""
    while "vagrant up" not in said:
        line = process.stderr.readline()
        assert line, said
        said += line
    podman.done("podman", "kill", "--signal", "TERM", "fwlab-live-term")
    out, errors = process.communicate()
    assert process.returncode == EXIT_INTERRUPTED, out + said + errors
    assert "everything that this command started has been stopped" in errors


def test_a_volume_of_another_user_is_refused_in_a_sentence(podman: Podman, tmp_path: Path) -> None:
    work = volume(tmp_path, 4242)
    done = podman.call(*podman.command(1000, f"--volume={work}:/srv/work", script="true"))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "fwlab: user 1000 cannot write to /srv/work, which belongs to user 4242\n"
        "  next: podman run --user 4242:4242 …\n"
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--volume={work}:/srv/work:ro", "/srv/work is mounted read-only"),
        ("--tmpfs=/srv/work:size=16k,mode=1777", "cannot be written: No space left on device"),
        ("--tmpfs=/home:size=1m,mode=1777", "/home/1000 cannot be filled: No space left on device"),
        ("--volume={work}:/home/1000/lab", "/home/1000 is not a folder of user 1000"),
    ],
)
def test_a_volume_that_takes_nothing_is_refused_in_a_sentence(
    podman: Podman, tmp_path: Path, words: str, said: str
) -> None:
    done = podman.call(*podman.command(1000, words.format(work=volume(tmp_path, 1000)), script="true"))
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 2


def test_root_without_capabilities_is_refused_in_a_sentence(podman: Podman) -> None:
    done = podman.call(*podman.command(0, "--cap-drop=ALL", script="true"))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(
        "fwlab: root's libvirt needs the capabilities that a container has by default\n  next: "
    )


def test_too_little_memory_is_refused_before_a_machine_starts(podman: Podman) -> None:
    done = podman.call(*podman.command(1000, "--memory=1g", script=f"vagrant up {LAB}"))
    assert done.returncode == EXIT_UNMEASURED, done.stdout + done.stderr
    assert "MiB of the 1024 that this container or job may use are available" in done.stderr
    assert "next: give the container or job more: `podman run --memory=2048m …`" in done.stderr


@thorough
def test_machines_whose_saved_states_do_not_load_boot(podman: Podman) -> None:
    broken = 'for state in ~/.cache/fwlab/saved/*.qcow2.zst; do rm "$state" && echo damaged >"$state"; done'
    done = podman.call(*podman.command(1000, script=f"{broken} && {MEASURED}"))
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    assert done.stderr.count("is damaged: removing it, and booting") == 3
    assert '"verdict": "pass"' in done.stdout


@thorough
def test_a_grading_that_was_killed_goes_on_in_the_next_container(podman: Podman, tmp_path: Path) -> None:
    """With the marks of a class that is graded on a host and not interrupted."""
    work = volume(tmp_path, 1000)
    expected = make(work, [EXERCISE])
    subprocess.run(["chown", "-R", "1000:1000", work], check=True)
    grade = f"fwlab grade {LAB} --submissions /srv/work/class --results /srv/work/graded"
    kept = f"--volume={work}:/srv/work"
    process = subprocess.Popen(
        podman.command(1000, kept, script=grade, name="fwlab-live-kill"),
        env=podman.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )

    def handed_in() -> dict[str, str]:
        """What was not handed in has failed from the start."""
        found = verdicts(work / "graded" / "marks.csv")
        return {exercise: verdict for exercise, verdict in found.items() if exercise in expected}

    while not any(verdict in ("pass", "fail") for verdict in handed_in().values()):
        assert process.poll() is None, "it ended before it was killed"
        time.sleep(1)
    podman.done("podman", "kill", "--signal", "KILL", "fwlab-live-kill")
    process.wait()
    half = handed_in()
    done = podman.call(*podman.command(1000, kept, script=f"{grade} --resume"))
    assert done.returncode == EXIT_FAIL, done.stdout[-2000:] + done.stderr[-3000:]
    assert handed_in() == expected
    assert half != expected, "nothing was left for the second container"


@thorough
def test_runc_runs_it_from_a_root_that_is_only_read(podman: Podman, tmp_path: Path) -> None:
    """As another user, who has an entry neither in passwd nor in group."""
    root = podman.done("podman", "image", "mount", podman.image)
    told = json.loads(podman.done("podman", "image", "inspect", podman.image))[0]["Config"]
    podman.done("runc", "spec", "--bundle", str(tmp_path))
    config = json.loads((tmp_path / "config.json").read_text())
    config["root"] = {"path": root, "readonly": True}
    config["process"] |= {
        "terminal": False,
        "user": {"uid": 4242, "gid": 4242},
        "env": told["Env"],
        "args": [*told["Entrypoint"], "sh", "-c", MEASURED],
        "capabilities": {},
        "rlimits": [{"type": "RLIMIT_NOFILE", "hard": 4096, "soft": 4096}],
    }
    config["mounts"] += [
        {"destination": where, "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "nodev", "mode=1777"]}
        for where in ("/home", "/tmp")
    ]
    (tmp_path / "config.json").write_text(json.dumps(config))
    name = f"fwlab-live-{os.getpid()}"
    try:
        done = podman.call("runc", "run", "--bundle", str(tmp_path), name)
    finally:
        podman.call("runc", "delete", "--force", name)
        podman.call("podman", "image", "unmount", podman.image)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    assert '"verdict": "pass"' in done.stdout


def test_a_students_repository_is_graded_as_its_workflow_does(podman: Podman, tmp_path: Path) -> None:
    """By the script that the workflow calls, as a runner's user."""
    repository, programs = tmp_path / "lab-ada", tmp_path / "bin"
    project = find_project(ROOT)
    write_repository(project, LAB, repository, podman.image)
    lab = load_lab(project, LAB)
    (exercise,) = [one for one in lab.exercises if one.id == EXERCISE]
    for name, text in rulesets(project, lab, exercise, "reference").items():
        path = repository / "work" / EXERCISE / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    programs.mkdir()
    (programs / "id").write_text("#!/bin/sh\necho 1001\n")  # whom a runner runs its commands as
    (programs / "id").chmod(0o755)
    (repository / "graded").mkdir()
    os.chown(repository / "graded", 1001, 1001)
    environment = {**podman.environment, "DOCKER": "podman", "PATH": f"{programs}:{os.environ['PATH']}"}
    command = ["sh", ".github/grade", "lab-ada", "0123456789abcdef"]
    done = subprocess.run(command, cwd=repository, env=environment, capture_output=True, text=True)
    assert done.returncode == EXIT_FAIL, done.stdout[-2000:] + done.stderr[-3000:]  # the other exercises
    assert verdicts(repository / "graded" / "marks.csv")[f"lab-ada/{EXERCISE}"] == "pass"
    assert f"| {EXERCISE}: " in (repository / "graded" / "summary.md").read_text()
