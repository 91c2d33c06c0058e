# SPDX-License-Identifier: GPL-2.0-or-later
"""The table of what has been run where."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fwlab.checkout.project import Project, find_project
from tests import ROOT
from tools.where_run import table

PUBLISHED = find_project(ROOT).root / "results" / "lab03-ipset" / "2026-11-20-full.json"


def project(top: Path, **runs: dict[str, Any]) -> Project:
    """A project whose results are a published run with other facts, by file name."""
    folder = top / "results" / "lab03-ipset"
    folder.mkdir(parents=True)
    for name, changes in runs.items():
        run = json.loads(PUBLISHED.read_text())
        run["testbed"] |= changes.pop("testbed", {})
        (folder / f"{name}.json").write_text(json.dumps(run | changes))
    return Project(top)


def rows(found: str, *words: str) -> list[str]:
    return [line for line in found.splitlines() if all(f"| {word} |" in line for word in words)]


def test_a_setup_that_never_ran_has_an_empty_row(tmp_path: Path) -> None:
    found = table(project(tmp_path))
    assert rows(found, "real, KVM", "sriov", "linux") == ["| real, KVM | sriov | linux | never | | | |"]
    assert not rows(found, "virtual, KVM")


def test_the_newest_run_of_cases_stands_for_its_setup(tmp_path: Path) -> None:
    later = {"started": "2027-01-02T00:00:00+00:00"}
    graded = {"started": "2027-01-03T00:00:00+00:00", "cases": []}
    (row,) = rows(table(project(tmp_path, old={}, new=later, graded=graded)), "virtual, TCG", "socket", "linux")
    assert "| 2027-01-02 |" in row
    assert "lab03, `raw-drop`: 325." in row
    assert row.endswith("`results/lab03-ipset/new.json` |")


def test_a_run_over_two_kinds_of_links_counts_for_both(tmp_path: Path) -> None:
    mixed = {"testbed": {"name": "real", "accelerator": "kvm", "link": "socket, virtio"}}
    found = table(project(tmp_path, mixed=mixed))
    assert [len(rows(found, "real, KVM", link, "linux")[0].split("never")) for link in ("socket", "virtio")] == [1, 1]


def test_links_of_a_plug_in_get_rows_of_their_own(tmp_path: Path) -> None:
    assert len(rows(table(project(tmp_path, tube={"testbed": {"link": "tube"}})), "virtual, TCG", "tube", "linux")) == 1


def test_other_documents_are_no_runs(tmp_path: Path) -> None:
    made = project(tmp_path)
    (tmp_path / "results" / "lab03-ipset" / "bench.json").write_text('{"spreads": {}}')
    assert "bench.json" not in table(made)


def test_a_host_that_was_emulated_is_called_so(tmp_path: Path) -> None:
    host = json.loads(PUBLISHED.read_text())["host"] | {"cpu": "AMD EPYC", "cores": 1, "host_class": "nested-host"}
    (row,) = rows(table(project(tmp_path, nested={"host": host})), "virtual, TCG", "socket", "linux")
    assert "| emulated AMD, 1 core; " in row


def test_a_newer_run_on_an_emulated_host_does_not_replace_one_on_a_host(tmp_path: Path) -> None:
    host = json.loads(PUBLISHED.read_text())["host"] | {"host_class": "arm64-host"}
    later = {"host": host, "started": "2027-01-02T00:00:00+00:00"}
    (row,) = rows(table(project(tmp_path / "both", own={}, arm64=dict(later))), "virtual, TCG", "socket", "linux")
    assert row.endswith("`results/lab03-ipset/own.json` |")
    (row,) = rows(table(project(tmp_path / "one", arm64=dict(later))), "virtual, TCG", "socket", "linux")
    assert "| QEMU for arm64, emulated on " in row
