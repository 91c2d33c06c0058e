# SPDX-License-Identifier: GPL-2.0-or-later
"""The table of what has been run where."""

import json
from pathlib import Path
from typing import Any

import pytest

from fwlab.checkout.project import Project, find_project
from fwlab.checkout.raw_results import SUFFIX, read_document, write_document
from tests import ROOT
from tools.where_run import setups_of

PUBLISHED = find_project(ROOT).root / "results" / "lab03-ipset" / "2026-11-20-full.json.gz"


def project(top: Path, **runs: dict[str, Any]) -> Project:
    """A project whose results are a published run with other facts, by file name."""
    folder = top / "results" / "lab03-ipset"
    for name, changes in runs.items():
        run = json.loads(read_document(PUBLISHED))
        changed = run | changes | {"testbed": run["testbed"] | changes.get("testbed", {})}
        write_document(folder / f"{name}{SUFFIX}", json.dumps(changed))
    return Project(top)


def rows(found: str, *words: str) -> list[str]:
    return [line for line in found.splitlines() if all(f"| {word} |" in line for word in words)]


LATER = {"started": "2027-01-02T00:00:00+00:00"}
HOST = json.loads(read_document(PUBLISHED))["host"]
EMULATED = HOST | {"host_class": "arm64-host"}
NESTED = HOST | {"cpu": "AMD EPYC", "cores": 1, "host_class": "nested-host"}


def test_a_setup_that_never_ran_has_an_empty_row(tmp_path: Path) -> None:
    found = setups_of(project(tmp_path))
    assert rows(found, "real, KVM", "sriov", "linux") == ["| real, KVM | sriov | linux | never | | | |"]
    assert not rows(found, "virtual, KVM")


@pytest.mark.parametrize(
    ("runs", "parts"),
    [
        (
            {"old": {}, "new": LATER, "graded": {"started": "2027-01-03T00:00:00+00:00", "cases": []}},
            ["| 2027-01-02 |", "lab03, `raw-drop`: 325.", "`results/lab03-ipset/new.json.gz` |"],
        ),
        ({"own": {}, "arm64": {"host": EMULATED, **LATER}}, ["`results/lab03-ipset/own.json.gz` |"]),
        ({"arm64": {"host": EMULATED}}, ["| QEMU for arm64, emulated on "]),
        ({"nested": {"host": NESTED}}, ["| emulated AMD, 1 core; "]),
    ],
    ids=["newest of cases", "host before emulated", "arm64", "nested"],
)
def test_one_run_stands_for_its_setup(tmp_path: Path, runs: dict[str, dict[str, Any]], parts: list[str]) -> None:
    (row,) = rows(setups_of(project(tmp_path, **runs)), "virtual, TCG", "socket", "linux")
    assert [part for part in parts if part not in row] == []


def test_a_run_over_two_kinds_of_links_counts_for_both(tmp_path: Path) -> None:
    mixed = {"testbed": {"name": "real", "accelerator": "kvm", "link": "socket, virtio"}}
    found = setups_of(project(tmp_path, mixed=mixed))
    assert [len(rows(found, "real, KVM", link, "linux")[0].split("never")) for link in ("socket", "virtio")] == [1, 1]


def test_links_of_a_plug_in_get_rows_of_their_own(tmp_path: Path) -> None:
    assert (
        len(rows(setups_of(project(tmp_path, tube={"testbed": {"link": "tube"}})), "virtual, TCG", "tube", "linux"))
        == 1
    )


def test_other_documents_are_no_runs(tmp_path: Path) -> None:
    made = project(tmp_path)
    write_document(tmp_path / "results" / "lab03-ipset" / f"bench{SUFFIX}", '{"spreads": {}}')
    assert "bench" not in setups_of(made)
