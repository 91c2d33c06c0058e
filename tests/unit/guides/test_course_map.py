# SPDX-License-Identifier: GPL-2.0-or-later
"""Which lab builds on which."""

import pytest

from fwlab.model.errors import BadInput
from tools.labs import labs_before, order, tree_lines


def test_every_lab_has_a_row_with_what_comes_before_and_after() -> None:
    rows = {row.split(" | ")[0].lstrip("| "): row for row in order().strip().splitlines()[2:]}
    row = next(row for name, row in rows.items() if name.startswith("[lab03-ipset]"))
    _, first, later = row.split(" | ")[1:4]
    assert first == "[lab01](../labs/lab01-forwarding/README.md)"
    assert "[lab09](../labs/lab09-classifiers/README.md)" in later


def test_labs_before_are_in_order() -> None:
    assert labs_before({"lab01-a": [], "lab02-b": [], "lab03-c": ["lab02-b", "lab01-a"]})["lab03-c"] == [
        "lab01-a",
        "lab02-b",
    ]


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


def test_the_tree_has_each_lab_once_below_the_last_that_it_needs() -> None:
    needs = {"lab01": [], "lab02": ["lab01"], "lab03": ["lab01", "lab02"], "lab04": ["lab01"], "lab05": []}
    assert tree_lines(needs) == ["lab01", "├── lab02", "│   └── lab03", "└── lab04", "lab05"]
