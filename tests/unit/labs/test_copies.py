# SPDX-License-Identifier: GPL-2.0-or-later
"""Frames that leave more often than they came are found, one by one, even if as many others are missing."""

from __future__ import annotations

import numpy as np
import pytest

from fwlab.generator.recording import MIN_FRAMES, KnownFrames, Recording

FRAMES, KEPT = 2 * MIN_FRAMES, 96


def table(frames: int = FRAMES) -> np.ndarray:
    heads = np.zeros((frames, KEPT), dtype=np.uint8)
    heads[:, 12:15] = (8, 0, 0x45)
    heads[:, 30:34] = np.arange(frames, dtype=">u4").view(np.uint8).reshape(frames, 4)
    return heads


def known(frames: int = FRAMES) -> KnownFrames:
    return KnownFrames(table(frames), np.zeros(frames, dtype=np.int64), ["all"])


def recorded(places: np.ndarray, frames: int = FRAMES) -> Recording:
    return Recording(np.arange(len(places)), table(frames)[places % frames])


def taken(rounds: int = 8) -> np.ndarray:
    """What a DUT takes of a flood: as much as its ring holds, then nothing for a while."""
    chance = np.random.Generator(np.random.PCG64(1))
    begins = np.cumsum(1024 + chance.integers(FRAMES // 2, size=rounds * 3))
    return np.concatenate([begin + np.arange(1024) for begin in begins])


def halved_and_doubled(places: np.ndarray) -> np.ndarray:
    """Every other packet is dropped, and the rest sent twice: in each batch of 64, the copies first."""
    batches = places[::2][: len(places) // 2 // 32 * 32].reshape(-1, 32)
    return np.hstack([batches, batches]).ravel()


def test_at_a_light_load_each_frame_leaves_once() -> None:
    came = recorded(np.arange(100))
    assert known().more_than_came(came, recorded(np.arange(100)), recorded(np.zeros(0, dtype=int))) == 0
    assert known().more_than_came(came, recorded(np.arange(50)), recorded(np.arange(50, 100))) == 0
    assert known().more_than_came(came, recorded(np.arange(50).repeat(2))) == 50
    assert known().more_than_came(came, recorded(np.arange(100)), recorded(np.arange(7))) == 7


def test_in_a_flood_a_traffic_comes_again_and_its_frames_are_no_copies() -> None:
    assert known().copies(recorded(taken())) == 0
    every_tenth = np.flatnonzero(taken() % 10 == 0)
    assert known().copies(recorded(taken()[every_tenth])) == 0


def test_nor_where_the_dut_takes_little_and_drops_most_of_it() -> None:
    """As a long list does, in a flood of lab05's ex5: of 599 306 packets it took 25 375, and sent 1904 on."""
    chance = np.random.Generator(np.random.PCG64(2))
    begins = np.cumsum(chance.integers(64, 3000, size=400))
    places = (begins[:, np.newaxis] + np.arange(64)).ravel()
    for apart in (1, 7, 13):
        assert known(MIN_FRAMES).copies(recorded(places[::apart], MIN_FRAMES)) == 0


@pytest.mark.parametrize(
    "doubled", [halved_and_doubled(taken()), taken()[::2].repeat(2)], ids=["in batches", "at once"]
)
def test_in_a_flood_copies_are_found_although_as_many_leave_as_came(doubled: np.ndarray) -> None:
    found = known().copies(recorded(doubled))
    assert abs(found - len(doubled) // 2) < 100


def test_of_a_short_traffic_nothing_is_said() -> None:
    assert known(64).copies(recorded(np.arange(64).repeat(2), 64)) == 0
