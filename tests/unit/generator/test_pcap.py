# SPDX-License-Identifier: GPL-2.0-or-later
"""Capture files: other programs read what we write, byte for byte as before."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from fwlab.generator.frame_table import write_pcap
from fwlab.model.errors import BadInput
from tests.fakes.captures import read_pcap

FRAMES, TIMES = [b"one" * 20, b"another" * 9], [1_234_567, 5_000_000_999]


def test_frames_and_times_can_be_read_back(tmp_path: Path) -> None:
    write_pcap(tmp_path / "a.pcap", FRAMES, TIMES)
    assert read_pcap(tmp_path / "a.pcap") == (FRAMES, [1_234_000, 5_000_000_000])


@pytest.mark.parametrize("frames", [[], FRAMES])
def test_the_file_has_the_classic_format(tmp_path: Path, frames: list[bytes]) -> None:
    write_pcap(tmp_path / "a.pcap", frames, TIMES[: len(frames)])
    expected = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    for frame, time_ns in zip(frames, TIMES, strict=False):
        seconds, rest = divmod(time_ns, 1_000_000_000)
        expected += struct.pack("<IIII", seconds, rest // 1000, len(frame), len(frame)) + frame
    assert (tmp_path / "a.pcap").read_bytes() == expected


def test_a_file_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(BadInput) as error:
        write_pcap(tmp_path / "none" / "d.pcap", FRAMES, TIMES)
    assert error.value.message == f"{tmp_path}/none/d.pcap: cannot be written: No such file or directory"
    assert list(tmp_path.iterdir()) == []
