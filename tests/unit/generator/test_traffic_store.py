# SPDX-License-Identifier: GPL-2.0-or-later
"""Frame tables: their maximum length, and which of them stay cached on the generator."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from fwlab.generator import frame_table
from fwlab.generator import replay as replay_module
from fwlab.generator.frame_table import MAX_FRAMES, write_table
from fwlab.generator.replay import FOLDER, Replay
from fwlab.generator.traffic_store import TrafficStore
from fwlab.model.errors import BadInput
from fwlab.traffic.frame_loop import TABLE_FRAMES
from tests.checkout import PROJECT, TOPOLOGY, lab_named


class FakeGenerator:
    """A node that interprets the few commands it is given, and keeps the files in memory."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {f"{FOLDER}/left": b"by a session before"}
        self.opened: list[str] = []

    def run(self, command: str, *, data: bytes, timeout: float) -> str:
        made, removed, put = command.split("; ")
        assert made == f"mkdir -p {FOLDER}"
        for name in removed.removeprefix("rm -f").split():
            for path in [path for path in self.files if name in (path, f"{FOLDER}/*")]:
                del self.files[path]
        self.files[put.rpartition(" > ")[2]] = gzip.decompress(data)
        return ""

    def launch(self, command: str) -> SimpleNamespace:
        self.opened.append(command)
        return SimpleNamespace()


@pytest.fixture
def replay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """An engine that may cache ten bytes, and a function that makes it use a table of a given size."""
    monkeypatch.setattr(replay_module, "CACHE_BYTES", 10)
    node = FakeGenerator()
    engine = Replay(node, "eth0")

    def use(name: str, size: int) -> FakeGenerator:
        (tmp_path / name).write_bytes(name[:1].encode() * size)
        engine.use(SimpleNamespace(path=lambda traffic: tmp_path / traffic), name)
        engine.start()
        return node

    return use


def test_a_cached_table_is_not_copied_again(replay) -> None:
    replay("a", 4)
    held = dict(replay("b", 4).files)
    node = replay("a", 4)
    assert node.files == held == {f"{FOLDER}/1": b"aaaa", f"{FOLDER}/2": b"bbbb"}
    assert [command.partition("--table ")[2].split()[0][-1] for command in node.opened] == ["1", "2", "1"]


@pytest.mark.parametrize(
    ("played", "kept"),
    [
        (["a4", "b4", "a4", "c4"], {b"aaaa", b"cccc"}),
        (["a4", "b4", "a4", "c4", "b8"], {b"b" * 8}),
        (["a4", "b40"], {b"b" * 40}),
        (["a4", "b40", "c4"], {b"cccc"}),
    ],
)
def test_the_least_recently_used_table_is_removed_first(replay, played: list[str], kept: set[bytes]) -> None:
    for table in played:
        node = replay(table[0], int(table[1:]))
    assert set(node.files.values()) == kept


def test_a_traffic_that_is_not_played_is_not_copied(tmp_path: Path) -> None:
    node = FakeGenerator()
    before = dict(node.files)
    Replay(node, "eth0").use(SimpleNamespace(path=lambda traffic: tmp_path / traffic), "absent")
    assert node.files == before


# ---- the length of a table ----------------------------------------------------------------------------------------


def test_a_table_that_the_generator_cannot_hold_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frame_table, "MAX_BYTES", 1 << 20)
    frames = [number.to_bytes(2, "big").ljust(1500, b"x") for number in range(2000)]
    with pytest.raises(BadInput, match=r"2 MiB of frames, more than 1"):
        write_table(tmp_path / "t", frames)
    write_table(tmp_path / "t", frames[:1] * 2000)  # identical frames are stored once


@pytest.fixture
def flood() -> TrafficStore:
    return TrafficStore(PROJECT, TOPOLOGY, lab_named("lab03-ipset"))


@pytest.mark.parametrize(
    ("fills", "most"), [([None], TABLE_FRAMES), ([7, 250_000, None], 250_000), ([5_000_000], MAX_FRAMES)]
)
def test_a_loop_is_long_enough_for_the_states_of_a_case(fills: list[int | None], most: int) -> None:
    cases = {str(n): SimpleNamespace(traffic="flood", state_packets=fill) for n, fill in enumerate(fills)}
    tables = TrafficStore(PROJECT, TOPOLOGY, lab_named("lab03-ipset").model_copy(update={"cases": cases}))
    assert tables._max_frames("flood") == most
    assert tables._max_frames("flood-one-source") == TABLE_FRAMES


def test_packets_offered_are_counted_by_the_classes_of_the_lab(flood: TrafficStore) -> None:
    """Names and counts come from one set of classes, the lab's own."""
    frames = len(flood.table("flood").frames)
    once, twice = flood.offered("flood", frames), flood.offered("flood", 2 * frames)
    assert list(once) == [*lab_named("lab03-ipset").classes, "other"]
    assert sum(once.values()) == frames
    assert twice == {name: 2 * count for name, count in once.items()}


def test_packets_in_bunches_are_counted_as_uneven(flood: TrafficStore) -> None:
    """In batches of 64 packets. The first class has 8 of each 64; the second has 64 of each 512."""
    numbers = np.full(5120, -1)
    numbers[::8] = 0
    numbers.reshape(-1, 512)[:, :64] = 1
    flood._classified["flood"] = numbers
    # Seven bursts of none and one of 64: a mean of 8 and a variance of 448.
    assert flood.dispersion("flood") == {list(lab_named("lab03-ipset").classes)[1]: 56.0}
    numbers[:] = -1
    numbers[::8] = 0
    assert flood.dispersion("flood") == {}


def test_a_capture_has_the_classic_format(tmp_path: Path) -> None:
    frames, times = [b"one" * 20, b"another" * 9], [1_234_567, 5_000_000_999]
    frame_table.write_pcap(tmp_path / "a.pcap", frames, times)
    expected = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    for frame, us in zip(frames, (1234, 5_000_000), strict=True):
        expected += struct.pack("<IIII", *divmod(us, 1_000_000), len(frame), len(frame)) + frame
    assert (tmp_path / "a.pcap").read_bytes() == expected
    with pytest.raises(BadInput, match="d.pcap: cannot be written: No such file or directory"):
        frame_table.write_pcap(tmp_path / "none" / "d.pcap", frames, times)
