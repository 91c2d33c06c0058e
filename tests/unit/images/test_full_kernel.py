# SPDX-License-Identifier: GPL-2.0-or-later
"""Boxes with Debian's full kernel are other boxes. Those with the cloud kernel, and their keys, stay what they were."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from fwlab.checkout.project import Project
from fwlab.images import build as full_kernel
from fwlab.images.boxes import LINUX_IMAGES, BuildError, base_key, content_key, kernels_of_boxes
from fwlab.images.build import Builder
from fwlab.images.programs import Subprocesses
from fwlab.images.sources import CloudImage, base_settings
from fwlab.model.errors import BadInput


def builder(checkout: Path, full: bool) -> Builder:
    return Builder(Project(checkout), checkout / "cache", Subprocesses(), print, full=full)


@pytest.mark.parametrize("image", LINUX_IMAGES)
def test_only_the_full_kernel_changes_the_key(checkout: Path, image: str) -> None:
    usual = content_key(checkout, image, base_settings(None))
    assert builder(checkout, False).key(image) == usual
    full = builder(checkout, True).key(image)
    assert full != usual
    script = checkout / full_kernel.SCRIPTS / "35-virtual-functions.sh"
    script.write_text(script.read_text() + "# changed\n")
    assert builder(checkout, False).key(image) == usual
    assert builder(checkout, True).key(image) != full
    settings = base_settings(None)
    assert base_key(checkout, image, settings) != base_key(checkout, image, settings | {"kernel": full_kernel.FULL})


def test_images_are_made_from_a_copy_that_names_the_other_package(checkout: Path, tmp_path: Path) -> None:
    before = (checkout / "provision/common/packages.txt").read_text()
    build = full_kernel.base_builder(checkout, "sink", tmp_path / "work")
    copy = build.parents[2]
    packages = (copy / "provision/common/packages.txt").read_text().splitlines()
    assert (full_kernel.FULL in packages, full_kernel.CLOUD in packages) == (True, False)
    assert len(packages) == len(before.splitlines())
    assert (copy / "provision/common/35-virtual-functions.sh").exists()
    assert (copy / "provision/sink/packages.txt").exists()
    assert (checkout / "provision/common/packages.txt").read_text() == before
    (tmp_path / "stage").mkdir()
    staged = builder(checkout, True)._staged("sink", tmp_path / "stage")
    assert full_kernel.FULL in (staged / "common/packages.txt").read_text().splitlines()
    (tmp_path / "usual").mkdir()
    staged = builder(checkout, False)._staged("sink", tmp_path / "usual")
    assert (staged / "common/packages.txt").read_text() == before
    assert not (staged / "common/35-virtual-functions.sh").exists()


def test_a_changed_list_of_packages_is_named(checkout: Path, tmp_path: Path) -> None:
    shutil.copytree(checkout / "provision", tmp_path / "copy")
    (tmp_path / "copy/common/packages.txt").write_text("linux-image-rt-amd64\n")
    with pytest.raises(BuildError, match="linux-image-cloud-amd64 is not in it"):
        full_kernel.put_full_kernel(checkout, tmp_path / "copy")


@pytest.mark.parametrize(("value", "wanted"), [("", False), ("cloud", False), ("full", True)])
def test_the_variable_chooses(monkeypatch: pytest.MonkeyPatch, value: str, wanted: bool) -> None:
    monkeypatch.setenv("FWLAB_KERNEL", value)
    assert full_kernel.full_kernel_wanted(None) is wanted


def test_a_wrong_choice_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FWLAB_KERNEL", "rt")
    with pytest.raises(BadInput, match="FWLAB_KERNEL=rt: must be cloud or full"):
        full_kernel.full_kernel_wanted(None)
    monkeypatch.setenv("FWLAB_KERNEL", "full")
    with pytest.raises(BadInput, match="a cloud image brings its own kernel"):
        full_kernel.full_kernel_wanted(CloudImage(None))  # type: ignore[arg-type]


def test_the_kernels_of_the_boxes_are_read_from_their_list(tmp_path: Path) -> None:
    project = Project(tmp_path)
    assert kernels_of_boxes(project) == []
    project.state.mkdir()
    boxes = {"sink": {"manifest": {"kernel": "6.1.0-56-amd64"}}, "dut-linux": {}}
    (project.state / "images.json").write_text(json.dumps(boxes))
    assert kernels_of_boxes(project) == ["6.1.0-56-amd64", ""]
