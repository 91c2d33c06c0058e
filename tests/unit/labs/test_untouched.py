# SPDX-License-Identifier: GPL-2.0-or-later
"""A start that nobody changed is recognized, whatever its layout; any change of a rule counts as work."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from fwlab.grading.submissions import Submissions
from fwlab.grading.works import MAX_COMMENTS, untouched

START = "*raw\n# block them\n-A PREROUTING -s 198.18.20.66 -j DROP\n-A PREROUTING -j ACCEPT\nCOMMIT\n"


@pytest.fixture
def submissions() -> Iterator[Submissions]:
    with contextlib.closing(Submissions()) as opened:
        yield opened


@pytest.mark.parametrize(
    ("files", "same"),
    [
        ({"rules.iptables": START}, True),
        ({"rules.iptables": f"# mine\n\n{START.replace(' -j', '   -j')}"}, True),
        ({"mine.iptables": START, "notes.txt": "done"}, True),
        ({"rules.iptables": "# nothing\n"}, True),
        ({"rules.iptables": START.replace("66", "67")}, False),
        ({"rules.iptables": "\n".join(START.splitlines()[::-1])}, False),
        ({"rules.iptables": START, "b.nft": "add table ip b\n"}, False),
        ({"rules.iptables": START + "#" * (MAX_COMMENTS + 1)}, False),
    ],
)
def test_an_unchanged_start(
    setting: SimpleNamespace, submissions: Submissions, tmp_path: Path, files: dict[str, str], same: bool
) -> None:
    (exercise,) = setting.lab.exercises
    start, own = setting.lab.folder / "rulesets" / exercise.id / "start", tmp_path / "own"
    for folder, texts in ((start, {"rules.iptables": START}), (own, files)):
        folder.mkdir(parents=True)
        for name, text in texts.items():
            (folder / name).write_text(text)
    handed_in = submissions.copied(exercise.id, own, "ada")
    assert untouched(setting, exercise, handed_in) is same


def test_a_lab_without_a_start(setting: SimpleNamespace, submissions: Submissions, tmp_path: Path) -> None:
    (exercise,) = setting.lab.exercises
    handed_in = submissions.copied(exercise.id, tmp_path, "ada")
    assert not untouched(setting, exercise, handed_in)
