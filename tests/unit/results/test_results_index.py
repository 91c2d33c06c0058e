# SPDX-License-Identifier: GPL-2.0-or-later
"""What is under results/ can be traced to the history, is used, and is listed in results/index.yml."""

import subprocess

import pytest
import yaml

from tests import ROOT
from tests.checkout import PROJECT
from tools.results_index import faults, index, known_faults


def _shallow() -> bool:
    words = ["git", "-C", str(ROOT), "rev-parse", "--is-shallow-repository"]
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip() != "false"


@pytest.mark.skipif(_shallow(), reason="needs the whole history")
def test_every_result_is_in_the_history_or_is_listed_with_the_older_ones() -> None:
    """No newer file may join the list, and none may stay there without need."""
    found = faults(PROJECT)
    until, known = known_faults(PROJECT)
    assert known == sorted(found), {name: why for name, (_, why) in found.items() if name not in known}
    assert all(day <= until for day, _ in found.values())


def test_the_index_is_fresh_and_nothing_is_kept_in_vain() -> None:
    text = (ROOT / "results" / "index.yml").read_text()
    assert text == index(PROJECT), "stale: make readme"
    assert [name for name, entry in yaml.safe_load(text).items() if not entry["used_by"]] == []
