# SPDX-License-Identifier: GPL-2.0-or-later
"""Which lab builds on which."""

import pytest

from fwlab.model.errors import BadInput
from tools.labs import labs_before


@pytest.mark.parametrize(
    ("needs", "says"),
    [
        ({"lab01-a": ["lab09-z"]}, "labs/lab01-a/lab.yml: needs.labs: there is no lab lab09-z"),
        ({"lab01-a": ["lab01-a"]}, "wait for each other: lab01-a"),
        ({"lab01-a": ["lab02-b"], "lab02-b": ["lab01-a"], "lab03-c": []}, "wait for each other: lab01-a"),
    ],
)
def test_an_unknown_lab_and_a_circle_are_refused(needs: dict[str, list[str]], says: str) -> None:
    with pytest.raises(BadInput, match=says):
        labs_before(needs)
