# SPDX-License-Identifier: GPL-2.0-or-later
"""Our frames are TRex's frames: the recordings in data/trex-vectors."""

from __future__ import annotations

import json

import pytest

from fwlab.traffic import DEFAULT_LIMIT, expand
from tests import DATA
from tests.fakes.captures import read_pcap

VECTORS = DATA / "trex-vectors"
NAMES = sorted(path.stem for path in VECTORS.glob("*.json"))


@pytest.mark.parametrize("name", NAMES)
def test_frames_and_times_equal_trexs(name):
    form = json.loads((VECTORS / f"{name}.json").read_text())
    frames = expand(form["streams"], limit=form["packet_limit"] or DEFAULT_LIMIT)
    recorded, recorded_ns = read_pcap(VECTORS / f"{name}.pcap")
    assert [frame.hex() for frame in frames] == [frame.hex() for frame in recorded]
    assert max(abs(mine - theirs) for mine, theirs in zip(frames.times_ns, recorded_ns, strict=True)) <= 1000
