# SPDX-License-Identifier: GPL-2.0-or-later
"""The replay engine reports a load that it cannot reach, and starts nothing for a load that is none."""

import json
import subprocess
from types import SimpleNamespace

import pytest

from fwlab.generator.replay import Replay, ReplayPlayback
from fwlab.model.errors import BadInput


def test_a_load_that_it_cannot_reach_is_reported() -> None:
    report = json.dumps({"sent": 5000, "attempted": 5100, "duration_s": 10.0})
    process = subprocess.Popen(
        ["sh", "-c", f"read -r _; echo '{report}'"], stdin=-1, stdout=-1, stderr=-1, start_new_session=True
    )
    played = ReplayPlayback(SimpleNamespace(), process, 1000).stop()
    assert played.limited == "generator limited: asked for 1,000 pps, it sent 500"


@pytest.mark.parametrize("load", [0, -5, float("nan"), float("inf")])
def test_an_invalid_load_starts_nothing(load: float) -> None:
    engine = Replay(SimpleNamespace(), "eth0")  # a node that anything would fail on
    with pytest.raises(BadInput, match="sends nothing") as caught:
        engine.start(load=load)
    assert caught.value.hint
