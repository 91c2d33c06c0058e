# SPDX-License-Identifier: GPL-2.0-or-later
"""Boxes of earlier files: of each image two generations stay, and no new machine is made from an outdated one."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

from fwlab.checkout.project import Project
from fwlab.cli import doctor
from fwlab.images.boxes import content_key, outdated, remove_old
from fwlab.images.build import FULL
from fwlab.testbed.own_machines import own_machines
from tests import ROOT
from tests.fakes.image_build import SETTINGS

KEYS = ("000000000001", "000000000002", "000000000003")


def filled(cache: Path, vagrants: Path) -> None:
    """Three generations of two images, the first one the oldest."""
    for age, key in enumerate(KEYS):
        for image in ("sink", "dut-linux"):
            made = cache / f"boxes/{image}-{key}.box"
            folders = (cache / f"bases/{image}-{key}", vagrants / f"fwlab-{image}-{key}")
            for folder in (made.parent, *folders):
                folder.mkdir(parents=True, exist_ok=True)
            made.touch()
            made.with_name(f"{made.name}.json").touch()
            for path in (made, *folders):
                os.utime(path, (age, age))


def keys(paths: list[Path]) -> set[str]:
    return {path.name.split(".")[0].split("-")[-1] for path in paths}


def test_the_oldest_goes_unless_it_is_used(tmp_path: Path) -> None:
    cache, vagrants = tmp_path / "cache", tmp_path / "boxes"
    filled(cache, vagrants)
    (vagrants / "somebody-elses").mkdir()
    used = {"sink": {"box": f"fwlab-sink-{KEYS[0]}", "path": str(cache / f"boxes/sink-{KEYS[0]}.box")}}
    remove_old(cache, vagrants, used)
    assert keys([*cache.glob("boxes/dut-linux-*"), *vagrants.glob("fwlab-dut-linux-*")]) == set(KEYS[1:])
    assert keys([*cache.glob("boxes/sink-*"), *vagrants.glob("fwlab-sink-*")]) == {KEYS[0], KEYS[2]}
    assert keys(list(cache.glob("bases/*"))) == set(KEYS[1:])
    assert (vagrants / "somebody-elses").is_dir()


def test_a_box_of_other_files_is_outdated(checkout: Path) -> None:
    settings = {"dut-linux": {**SETTINGS, "kernel": FULL}, "generator": SETTINGS, "sink": SETTINGS}
    boxes = {
        image: {"key": content_key(checkout, image, one), "settings": one, "manifest": {"kernel": "6.1"}}
        for image, one in settings.items()
    }
    state = Project(checkout).state
    state.mkdir()
    (state / "images.json").write_text(json.dumps(boxes))
    assert outdated(checkout, boxes, boxes) == []
    assert doctor._images(Project(checkout)).ok
    (checkout / "engine/main.c").write_text("another engine")
    assert outdated(checkout, boxes, boxes) == ["generator"]
    assert outdated(checkout, boxes, ["sink", "dut-freebsd"]) == []
    found = doctor._images(Project(checkout))
    assert (found.ok, found.next) == (False, "make boxes")
    assert found.says.startswith("generator: ")
    del boxes["generator"]["settings"]  # as it was listed before
    assert outdated(checkout, boxes, boxes) == []


def test_a_workers_copy_has_the_files_that_boxes_are_compared_with(checkout: Path) -> None:
    shutil.copy(ROOT / "topology.yml", checkout)
    (checkout / "labs/lab01-one").mkdir(parents=True)
    (checkout / "labs/lab01-one/lab.yml").touch()
    with own_machines(Project(checkout)) as own:
        assert content_key(own.root, "generator", SETTINGS) == content_key(checkout, "generator", SETTINGS)
