# SPDX-License-Identifier: GPL-2.0-or-later
"""Unsupported features of TRex are refused by name, with the line of the profile."""

from __future__ import annotations

from pathlib import Path

import pytest

from fwlab.checkout.project import Project
from fwlab.generator.traffic_profile import load_profile
from fwlab.model.errors import BadInput
from tests.fakes import factories


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("STLTaggedPktGroup(7)", "tagged packet groups are not supported"),
        ("STLFlowLatencyStats(7, ieee_1588=True)", "IEEE 1588 time stamps are not supported"),
    ],
)
def test_an_unsupported_feature_is_reported_with_its_line(tmp_path: Path, call: str, message: str) -> None:
    path = tmp_path / "labs/lab90-test/profile.py"
    path.parent.mkdir(parents=True)
    text = factories.PROFILE.replace("pps=1000))", f"pps=1000),\n            flow_stats={call})")
    path.write_text(text)
    with pytest.raises(BadInput) as refused:
        load_profile(Project(tmp_path), path)
    place = "labs/lab90-test/profile.py, line 8: stream 1: flow_stats"
    assert refused.value.message == f"{place}: {message}; use STLFlowStats or STLFlowLatencyStats"
