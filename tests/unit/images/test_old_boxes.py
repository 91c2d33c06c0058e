# SPDX-License-Identifier: GPL-2.0-or-later
"""Of each image two generations stay: in the cache, among the bases, and in Vagrant's folder."""

from __future__ import annotations

import os
from pathlib import Path

from fwlab.images.boxes import remove_old

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
