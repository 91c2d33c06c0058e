# SPDX-License-Identifier: GPL-2.0-or-later
"""The disk of a base, compressed in the cache and unpacked for a build."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from fwlab.images.boxes import BuildError
from fwlab.images.build import BASE_DISK, pack_base, share_file, unpack_base
from fwlab.images.programs import Subprocesses

pytestmark = pytest.mark.skipif(shutil.which("zstd") is None, reason="there is no zstd")
#: A disk of which all but two pieces is empty.
SIZE = 64 << 20


def test_a_disk_comes_back_as_it_was_and_its_holes_take_no_room(tmp_path: Path) -> None:
    disk, log = tmp_path / "disk.raw", tmp_path / "log"
    piece = random.Random(3).randbytes(1 << 20)
    with disk.open("wb") as file:
        for place in (0, SIZE - len(piece)):
            file.seek(place)
            file.write(piece)
    before = disk.read_bytes()
    packed = pack_base(Subprocesses(), disk, log, "sink")
    assert not disk.exists()
    assert packed == tmp_path / BASE_DISK
    assert packed.stat().st_size < 1.1 * len(piece)  # the second piece repeats the first, 63 MiB before
    unpacked = unpack_base(Subprocesses(), packed, tmp_path / "base.raw", log, "sink")
    assert unpacked.read_bytes() == before
    assert unpacked.stat().st_blocks * 512 < 4 * len(piece)


def test_a_damaged_disk_is_an_error_that_names_the_image(tmp_path: Path) -> None:
    packed = tmp_path / BASE_DISK
    packed.write_bytes(b"not zstd")
    with pytest.raises(BuildError, match="sink: unpacking its base"):
        unpack_base(Subprocesses(), packed, tmp_path / "base.raw", tmp_path / "log", "sink")


def test_bases_share_a_file_that_is_the_same(tmp_path: Path) -> None:
    bases = [tmp_path / "bases" / name for name in ("dut-1", "sink-2", "sink-3")]
    for base, content in zip(bases, (b"kernel 1", b"kernel 1", b"kernel 2"), strict=True):
        made = tmp_path / "vmlinuz"
        made.write_bytes(content)
        base.mkdir(parents=True)
        share_file(made, base)
        assert (base / "vmlinuz").read_bytes() == content
        assert not made.exists()
    numbers = [(base / "vmlinuz").stat().st_ino for base in bases]
    assert numbers[0] == numbers[1] != numbers[2]
