# SPDX-License-Identifier: GPL-2.0-or-later
"""Content keys, the cache that uses only what it verified, and the list of a checkout's boxes."""

import json
import shutil
from pathlib import Path

import pytest

from fwlab.checkout.project import Project
from fwlab.cli import doctor
from fwlab.host.published_file import PublishedFile, need_room
from fwlab.images import boxes
from fwlab.images.boxes import IMAGES, LINUX_IMAGES, content_key, kernels_of_boxes, outdated
from fwlab.images.build import FULL, Builder
from fwlab.images.programs import Subprocesses
from fwlab.images.sources import CloudImage, Tarball
from fwlab.model.errors import BuildError
from fwlab.testbed.own_machines import own_machines
from tests import ROOT

LINUX = set(LINUX_IMAGES)
#: The settings of a content key without a cloud image.
SETTINGS = {"base_url": "", "base_checksum": ""}
FREEBSD_SETTINGS = SETTINGS | {"system": "freebsd"}


def cloud(url: str, digest: str) -> CloudImage:
    return CloudImage(PublishedFile("cloud image", url, "sha512", digest * 128, "URL", "SUM"))


def keys(checkout: Path, **builder: object) -> dict[str, str]:
    made = Builder(Project(checkout), checkout / "cache", Subprocesses(), print, **builder)
    return {image: made.key(image) for image in LINUX_IMAGES} | {
        "dut-freebsd": content_key(checkout, "dut-freebsd", FREEBSD_SETTINGS)
    }


def changed(before: dict[str, str], after: dict[str, str]) -> set[str]:
    return {image for image in IMAGES if before[image] != after[image]}


@pytest.mark.parametrize(
    ("path", "usual", "full_kernel", "from_a_cloud_image"),
    [
        ("provision/common/60-ssh.sh", LINUX, LINUX, LINUX),
        ("provision/dut-linux/packages.txt", {"dut-linux"}, {"dut-linux"}, {"dut-linux"}),
        ("provision/dut-freebsd/30-pf.sh", {"dut-freebsd"}, {"dut-freebsd"}, {"dut-freebsd"}),
        ("provision/dut-freebsd/cleanup", {"dut-freebsd"}, {"dut-freebsd"}, {"dut-freebsd"}),
        ("provision/cleanup", LINUX, LINUX, LINUX),
        ("packer/locals.pkr.hcl", set(IMAGES), set(IMAGES), set(IMAGES)),
        ("packer/base/dpkg.cfg", LINUX, LINUX, LINUX),
        ("packer/full-kernel/35-virtual-functions.sh", set(), LINUX, set()),
        ("packer/cloud/05-cloud-image.sh", set(), set(), LINUX),
        ("engine/Makefile", {"generator"}, {"generator"}, {"generator"}),
        ("provision/host/packages.txt", set(), set(), set()),
        ("packer/build", set(), set(), set()),
    ],
)
def test_a_key_changes_with_the_files_of_its_image(
    checkout: Path, path: str, usual: set[str], full_kernel: set[str], from_a_cloud_image: set[str]
) -> None:
    kinds = ({}, {"full": True}, {"base": cloud("/a", "a")})
    before = [keys(checkout, **kind) for kind in kinds]
    (checkout / path).write_text((checkout / path).read_text() + "\n# changed\n")
    after = [keys(checkout, **kind) for kind in kinds]
    assert list(map(changed, before, after)) == [usual, full_kernel, from_a_cloud_image]


@pytest.mark.parametrize(
    ("builder", "images"),
    [
        ({"full": True}, LINUX),
        ({"base": cloud("/a", "a")}, LINUX),
        ({"tarball": Tarball("c" * 64, "v9.99", None)}, {"generator"}),
    ],
    ids=["full kernel", "cloud image", "TRex"],
)
def test_a_key_changes_with_what_the_image_has_in_it(builder: dict[str, object], images: set[str]) -> None:
    assert changed(keys(ROOT), keys(ROOT, **builder)) == images


def test_a_key_depends_on_content_and_executable_bits_and_not_on_paths(checkout: Path) -> None:
    plain = content_key(checkout, "sink", SETTINGS)
    assert plain == content_key(ROOT, "sink", SETTINGS) == keys(checkout)["sink"]
    one, moved, other = (keys(checkout, base=cloud(*of))["sink"] for of in (("/a", "a"), ("/b", "a"), ("/a", "b")))
    assert one == moved != other
    before = boxes.base_key(checkout, "sink", SETTINGS)
    assert boxes.base_key(checkout, "sink", SETTINGS | {"kernel": FULL}) != before
    (checkout / "provision/run").chmod(0o644)
    assert content_key(checkout, "sink", SETTINGS) != plain
    assert boxes.base_key(checkout, "sink", SETTINGS) != before


def test_a_worker_has_the_files_that_boxes_are_compared_with(checkout: Path) -> None:
    shutil.copy(ROOT / "topology.yml", checkout)
    (checkout / "labs/lab01-one").mkdir(parents=True)
    (checkout / "labs/lab01-one/lab.yml").touch()
    with own_machines(Project(checkout)) as own:
        assert content_key(own.root, "generator", SETTINGS) == content_key(checkout, "generator", SETTINGS)


# ---- the cache ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("damaged", "content", "used"),
    [
        ("", None, True),
        ("box", b"box" * 999, False),
        ("box", b"xox" + b"box" * 999, False),
        ("box", None, False),
        ("record", None, False),
        ("record", b"{", False),
        ("record", b"[]", False),
    ],
    ids=["whole", "cut", "altered", "gone", "no record", "bad record", "empty record"],
)
def test_only_a_whole_box_is_used(tmp_path: Path, damaged: str, content: bytes | None, used: bool) -> None:
    made, box = tmp_path / "work.box", tmp_path / "boxes" / "sink-0123.box"
    made.write_bytes(b"box" * 1000)
    boxes.publish(made, box, {"manifest": {"kernel": "6.1"}})
    if damaged:
        path = {"box": box, "record": boxes.record_path(box)}[damaged]
        path.unlink()
        if content is not None:
            path.write_bytes(content)
    found = boxes.cached(box)
    assert (found and found["manifest"]) == ({"kernel": "6.1"} if used else None)


def test_too_little_space_is_reported_with_place_and_size(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match=f"{tmp_path}: .* needs {(1 << 60) >> 20} MiB") as caught:
        need_room(tmp_path, 1 << 60)
    assert "FWLAB_CACHE" in caught.value.hint


def test_a_second_build_of_an_image_waits_and_can_be_stopped(tmp_path: Path) -> None:
    lock, asked = tmp_path / "locks" / "sink", []

    def stopped() -> bool:
        asked.append(lock)
        return len(asked) > 1

    with boxes.locked(lock, stopped), pytest.raises(BuildError, match="sink"), boxes.locked(lock, stopped):
        pytest.fail("two builds held one lock")
    assert len(asked) == 2
    with boxes.locked(lock, lambda: True):
        pass


# ---- the list ----------------------------------------------------------------------------------------------------


def test_a_box_of_other_files_is_outdated(checkout: Path) -> None:
    settings = {"dut-linux": {**SETTINGS, "kernel": FULL}, "generator": SETTINGS, "sink": SETTINGS}
    listed = {
        image: {"key": content_key(checkout, image, one), "settings": one, "manifest": {"kernel": f"6.1-{image}"}}
        for image, one in settings.items()
    }
    project = Project(checkout)
    assert kernels_of_boxes(project) == []
    project.state.mkdir()
    (project.state / "images.json").write_text(json.dumps(listed | {"old": {}}))
    assert kernels_of_boxes(project) == ["6.1-dut-linux", "6.1-generator", "6.1-sink", ""]
    assert outdated(checkout, listed, listed) == []
    assert doctor._images(project).ok
    (checkout / "engine/main.c").write_text("another engine")
    assert outdated(checkout, listed, listed) == ["generator"]
    assert outdated(checkout, listed, ["sink", "dut-freebsd"]) == []
    found = doctor._images(project)
    assert (found.ok, found.next, found.says.partition(":")[0]) == (False, "make boxes", "generator")
    del listed["generator"]["settings"]  # as it was listed before
    assert outdated(checkout, listed, listed) == []
