# SPDX-License-Identifier: GPL-2.0-or-later
"""The container image: what it is made from, and its entry point with its folders below a temporary one."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from fwlab.grading.student_bundle import OWN, bundle_files
from tests import ROOT
from tests.checkout import LAB_IDS, PROJECT, lab_named

ENTER = ROOT / "provision/image/enter"
NOBODY = "65534"


class Image:
    def __init__(self, top: Path) -> None:
        self.home = top / "home" / NOBODY
        self.home.parent.mkdir()
        self.work = top / "work"
        self.work.mkdir()
        program, machines = top / "fwlab", top / "machines"
        for folder in ("labs/lab03-ipset/work", ".venv", "guides", "provision"):
            (program / folder).mkdir(parents=True)
        (program / "labs/lab03-ipset/work/README.md").write_text("Your files\n")
        for name in ("Vagrantfile", "topology.yml", "pyproject.toml"):
            (program / name).touch()
        for folder in ("saved", "images", "boxes"):
            (machines / folder).mkdir(parents=True)
        for name in ("images.json", "made-of", "saved/dut.zst", "saved/dut.key", "images/disk"):
            (machines / name).write_text("of this image")
        self.replaced = {
            "top=/opt/fwlab machines=/opt/machines": f"top={program} machines={machines}",
            "user=$(id -u)": f"user={NOBODY}",
            "for home in /home /tmp none": f"for home in {self.home.parent} none",
            "work=/srv/work\n": f"work={self.work}\n",
            "/run/.containerenv": f"{top / 'containerenv'}",
            "/proc/self/uid_map": f"{top / 'uid_map'}",
            'mountpoint -q "$work"': "false",
            '[ -w "$1" ]': '[ ! -e "$1/.locked" ]',  # root may write everywhere
        }
        self.top = top
        (top / "uid_map").write_text("         0          0 4294967295\n")

    def enter(self, *command: str) -> subprocess.CompletedProcess[str]:
        text = ENTER.read_text()
        for old, new in self.replaced.items():
            assert text.count(old) == 1
            text = text.replace(old, new)
        (self.top / "enter").write_text(text)
        words = ["sh", str(self.top / "enter"), *command]
        return subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)

    def refused(self) -> list[str]:
        """The lines of its only output."""
        done = self.enter("pwd")
        assert (done.returncode, done.stdout) == (2, "")
        return done.stderr.splitlines()


@pytest.fixture
def image(tmp_path: Path) -> Image:
    return Image(tmp_path)


@pytest.fixture
def mounted(image: Image) -> Image:
    """With a volume for a student's work."""
    image.replaced['mountpoint -q "$work"'] = "true"
    return image


def test_it_is_made_from_what_a_students_bundle_is_and_from_nothing_else() -> None:
    files = set(bundle_files(PROJECT, [lab_named(lab_id) for lab_id in LAB_IDS])) - set(OWN) | set(OWN.values())
    let_in = re.findall(r"^!/([^/\n]+)$", (ROOT / ".dockerignore").read_text(), re.MULTILINE)
    assert sorted(let_in) == sorted({name.partition("/")[0] for name in files})
    linked = set(re.findall(r'"\$top/([^"]+)"', ENTER.read_text()))
    assert linked - {".venv"} <= set(let_in)
    assert {"labs", "Vagrantfile", "guides"} <= linked


def test_a_home_is_made_and_found_again(image: Image) -> None:
    for _ in range(2):
        done = image.enter("pwd")
        assert (done.returncode, done.stdout, done.stderr) == (0, f"{image.home}/lab\n", "")
    assert (image.home / "lab/labs/lab03-ipset").is_dir()
    assert (image.home / ".cache/fwlab/saved/dut.key").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("made_of", [None, "of another image"])
def test_a_folder_of_another_image_is_one_sentence(image: Image, made_of: str | None) -> None:
    """Without the file it was mounted; with another one it lies on a volume that another image filled."""
    kept = image.home / "lab/.fwlab/made-of"
    kept.parent.mkdir(parents=True)
    if made_of:
        kept.write_text(made_of)
    assert image.refused() == [
        f"fwlab: {image.home}/lab does not belong to this image",
        '  next: mount only your work: docker run -v "$PWD/work:/srv/work" …',
    ]


def test_a_home_that_takes_nothing_is_one_sentence(image: Image) -> None:
    (image.top / "machines/made-of").unlink()
    assert image.refused() == [
        f"fwlab: {image.home} cannot be filled: No such file or directory",
        "  next: make room there, or docker run --tmpfs /home:mode=1777 …",
    ]
    assert not (image.home / "lab").exists(), "half a folder was taken for a whole one"


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives folders away")
def test_a_home_of_somebody_else_is_one_sentence(image: Image) -> None:
    """Docker makes the parents of what is mounted, as root."""
    image.home.mkdir()
    os.chown(image.home, 4242, 4242)
    assert image.refused()[0] == f"fwlab: {image.home} is not a folder of user {NOBODY}"


def test_work_is_kept_on_the_volume(mounted: Image) -> None:
    assert mounted.enter("true").returncode == 0
    answer = mounted.work / "lab03-ipset/ex1/rules.nft"
    answer.parent.mkdir()
    answer.write_text("a rule")
    subprocess.run(["rm", "-r", mounted.home], check=True)  # as with the next container
    assert mounted.enter("cat", "labs/lab03-ipset/work/ex1/rules.nft").stdout == "a rule"
    assert (mounted.work / "lab03-ipset/README.md").read_text() == "Your files\n"
    assert (mounted.home / "lab/reports").resolve() == mounted.work / "reports"


@pytest.mark.parametrize("place", ["", "lab03-ipset", "reports"])
@pytest.mark.parametrize(
    ("owner", "podman", "uid_map", "hint"),
    [
        (4242, False, "0 0 4294967295", "docker run --user 4242:4242 …"),
        (4242, True, "0 0 4294967295", "podman run --user 4242:4242 …"),
        (0, True, "0 1000 1\n1 100000 65536", 'podman run --userns=keep-id --user "$(id -u):$(id -g)" …'),
        (int(NOBODY), False, "0 0 4294967295", "chmod u+rwx it on the host; where SELinux is in force: docker run -v "),
    ],
    ids=["docker", "podman", "podman without root", "the user's own"],
)
@pytest.mark.skipif(os.getuid() != 0, reason="only root gives folders away")
def test_a_volume_that_may_not_be_written_is_one_sentence(
    mounted: Image, place: str, owner: int, podman: bool, uid_map: str, hint: str
) -> None:
    locked = mounted.work / place
    locked.mkdir(exist_ok=True)
    (locked / ".locked").touch()
    os.chown(locked, owner, owner)
    (mounted.top / "uid_map").write_text(f"{uid_map}\n")
    if podman:
        (mounted.top / "containerenv").touch()
    said, advised = mounted.refused()
    assert said == f"fwlab: user {NOBODY} cannot write to {locked}, which belongs to user {owner}"
    assert advised.startswith(f"  next: {hint}")
