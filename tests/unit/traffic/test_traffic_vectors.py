# SPDX-License-Identifier: GPL-2.0-or-later
"""Our frames are TRex's frames: the recordings in data/trex-vectors."""

from __future__ import annotations

import base64
import json

import pytest

from fwlab.traffic import DEFAULT_LIMIT, expand
from tests import DATA
from tests.fakes.captures import read_pcap

VECTORS = DATA / "trex-vectors"
NAMES = sorted(path.stem for path in VECTORS.glob("*.json"))
#: Recordings with uncleared memory as padding, and one of another packet: see their README.
UNCLEARED = {"udp_1pkt_simple_mac_dst", "udp_1pkt_simple_mac_dst_src"}
OTHER_PACKET = "flow_stats"


def play(name: str) -> tuple[dict, list[bytes], list[int], list[bytes], list[int]]:
    form = json.loads((VECTORS / f"{name}.json").read_text())
    frames = expand(form["streams"], limit=form["packet_limit"] or DEFAULT_LIMIT)
    recorded, recorded_ns = read_pcap(VECTORS / f"{name}.pcap")
    return form, list(frames), [int(time) for time in frames.times_ns], recorded, recorded_ns


def test_all_vectors_are_there():
    assert len(NAMES) == 23


@pytest.mark.parametrize("name", NAMES)
def test_times_equal_trexs_to_a_microsecond(name):
    _, frames, times, recorded, recorded_ns = play(name)
    assert len(frames) == len(recorded)
    assert all(abs(mine - theirs) <= 1000 for mine, theirs in zip(times, recorded_ns, strict=True))


@pytest.mark.parametrize("name", sorted(set(NAMES) - UNCLEARED - {OTHER_PACKET}))
def test_frames_equal_trexs(name):
    _, frames, _, recorded, _ = play(name)
    for number, (mine, theirs) in enumerate(zip(frames, recorded, strict=True), start=1):
        assert mine.hex() == theirs.hex(), f"frame {number}"


@pytest.mark.parametrize("name", sorted(UNCLEARED))
def test_frames_equal_trexs_except_for_the_padding(name):
    form, [mine], _, [theirs], _ = play(name)
    size = len(base64.b64decode(form["streams"][0]["packet"]["binary"]))
    assert (len(mine), mine[:size]) == (len(theirs), theirs[:size])
    assert mine[size:] == bytes(60 - size)


def test_flow_statistics_mark_the_packet_as_trex_does():
    _, [mine], _, [theirs], _ = play(OTHER_PACKET)
    identification = slice(18, 20)
    assert mine[:12] == theirs[:12]
    assert mine[identification] == theirs[identification] == b"\xff\x00"
