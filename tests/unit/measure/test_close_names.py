# SPDX-License-Identifier: GPL-2.0-or-later
"""A mistyped case is answered with those that come close, not with a hundred names."""

from __future__ import annotations

import pytest

from fwlab.measure.plan import chosen_cases
from fwlab.model.errors import BadInput
from tests.checkout import lab_named


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("raw-rule-10", "close to it: raw-rules-10, raw-rules-100"),
        ("xdb", "close to it: xdp"),
        ("qqqq", "it has 1"),
    ],
)
def test_of_many_cases_only_the_close_ones_are_named(name: str, says: str) -> None:
    lab = lab_named("lab05-drop-early")
    with pytest.raises(BadInput, match=f"^lab05-drop-early has no case {name}; {says}") as refused:
        chosen_cases(lab, [name])
    assert len(refused.value.message) < 200
