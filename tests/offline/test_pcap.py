# SPDX-License-Identifier: GPL-2.0-or-later
"""Capture files: what is written is what is read, by us and by scapy."""

from __future__ import annotations

import struct

import pytest
from scapy.utils import RawPcapReader

from fwlab.generator.pcap import read_pcap, write_pcap
from fwlab.model.errors import BadInput

FRAMES, TIMES = [b"one" * 20, b"another" * 9], [1_234_567, 5_000_000_999]


@pytest.mark.parametrize(("nanoseconds", "times"), [(False, [1_234_000, 5_000_000_000]), (True, TIMES)])
def test_frames_come_back(tmp_path, nanoseconds, times):
    assert write_pcap(tmp_path / "a.pcap", FRAMES, TIMES, nanoseconds=nanoseconds) == 2
    assert read_pcap(tmp_path / "a.pcap") == (FRAMES, times)
    with RawPcapReader(str(tmp_path / "a.pcap")) as reader:
        assert [data for data, _ in reader] == FRAMES


def test_captures_of_the_other_byte_order_are_read(tmp_path):
    head = struct.pack(">IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    (tmp_path / "b.pcap").write_bytes(head + struct.pack(">IIII", 3, 7, 2, 2) + b"ab")
    assert read_pcap(tmp_path / "b.pcap") == ([b"ab"], [3_000_007_000])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"not a capture at all, truly not", "not a pcap file"),
        (struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 9, 1) + b"x", "ends in the middle of frame 1"),
    ],
)
def test_other_files_are_refused(tmp_path, content, message):
    (tmp_path / "c.pcap").write_bytes(content)
    with pytest.raises(BadInput) as error:
        read_pcap(tmp_path / "c.pcap")
    assert error.value.message == f"{tmp_path}/c.pcap: {message}"


def test_a_file_that_cannot_be_written_leaves_nothing(tmp_path):
    with pytest.raises(BadInput) as error:
        write_pcap(tmp_path / "none" / "d.pcap", FRAMES, TIMES)
    assert error.value.message == f"{tmp_path}/none/d.pcap: cannot be written: No such file or directory"
    assert list(tmp_path.iterdir()) == []
