# SPDX-License-Identifier: GPL-2.0-or-later
"""The image's entry point, with its folders below a temporary one: it starts only with the boxes of its image."""

import subprocess
from pathlib import Path

import pytest

from tests import ROOT


class Image:
    def __init__(self, top: Path) -> None:
        self.home = top / "home" / "65534"
        self.home.parent.mkdir()
        program, machines = top / "fwlab", top / "machines"
        for folder in ("labs/lab03-ipset/work", ".venv", "guides", "provision", "results"):
            (program / folder).mkdir(parents=True)
        for name in ("Vagrantfile", "topology.yml", "pyproject.toml", "README.md"):
            (program / name).touch()
        for folder in ("saved", "images", "boxes"):
            (machines / folder).mkdir(parents=True)
        for name in ("images.json", "saved/dut.zst", "saved/dut.key", "images/disk"):
            (machines / name).write_text("of this image")
        text = (ROOT / "provision/image/enter").read_text()
        places = {
            "top=/opt/fwlab machines=/opt/machines": f"top={program} machines={machines}",
            "user=$(id -u)": "user=65534",
            "for home in /home /tmp none": f"for home in {self.home.parent} none",
        }
        for old, new in places.items():
            assert text.count(old) == 1
            text = text.replace(old, new)
        self.program = top / "enter"
        self.program.write_text(text)

    def enter(self, *command: str) -> subprocess.CompletedProcess[str]:
        words = ["sh", str(self.program), *command]
        return subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)


@pytest.fixture
def image(tmp_path: Path) -> Image:
    return Image(tmp_path)


def test_a_home_is_made_and_found_again(image: Image) -> None:
    for _ in range(2):
        done = image.enter("pwd")
        assert (done.returncode, done.stdout, done.stderr) == (0, f"{image.home}/lab\n", "")
    assert (image.home / "lab/labs/lab03-ipset").is_dir()


@pytest.mark.parametrize("boxes", [None, "of another image"])
def test_a_folder_with_other_boxes_is_one_sentence(image: Image, boxes: str | None) -> None:
    """Without boxes it was mounted; with others it lies on a volume that another image filled."""
    listed = image.home / "lab/.fwlab/images.json"
    listed.parent.mkdir(parents=True)
    if boxes:
        listed.write_text(boxes)
    done = image.enter("pwd")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [
        f"fwlab: {image.home}/lab has other boxes than this image",
        '  next: mount only your work: docker run -v "$PWD/work:/srv/work" …',
    ]
