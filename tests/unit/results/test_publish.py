# SPDX-License-Identifier: GPL-2.0-or-later
"""results/LAB/published.json.gz: a run of every case, in which later runs of some cases replace these."""

import subprocess
from pathlib import Path

import pytest

from fwlab.checkout.project import Project
from fwlab.measure.provenance import commit, trees
from fwlab.measure.saved_runs import load_run, published_runs
from fwlab.model.errors import BadInput
from fwlab.model.results import Run
from tests import ROOT
from tests.checkout import lab_named
from tools.publish import merged, publish
from tools.results_index import untraceable

LAB = lab_named("lab03-ipset")
WHOLE = load_run(ROOT / "results" / LAB.id / "2026-11-20-full.json.gz", LAB.id)


def later(*cases: str, hour: int = 10, **changed: object) -> Run:
    """A run of these cases, a day after the whole one. They took `hour` seconds."""
    found = [case.model_copy(update={"wall_s": float(hour)}) for case in WHOLE.cases if case.id in cases]
    return WHOLE.model_copy(update={"started": f"2026-11-21T{hour}:00:00+00:00", "cases": found, **changed})


def test_a_run_of_every_case_replaces_what_is_there() -> None:
    again = WHOLE.model_copy(update={"started": "2026-11-21T10:00:00+00:00"})
    assert merged(LAB, None, WHOLE) == WHOLE
    assert merged(LAB, merged(LAB, WHOLE, later("raw-drop")), again) == again


def test_a_run_of_some_cases_replaces_these_and_its_conditions_are_kept() -> None:
    once = merged(LAB, WHOLE, later("raw-drop", "ipset-1", commit="a" * 12))
    twice = merged(LAB, once, later("raw-drop", hour=11, commit="b" * 12))
    assert [(one.commit, one.cases) for one in twice.added] == [("a" * 12, ["ipset-1"]), ("b" * 12, ["raw-drop"])]
    assert [twice.case(name).wall_s for name in ("raw-drop", "ipset-1")] == [11.0, 10.0]
    known = {case.id for case in WHOLE.cases}
    assert [case.id for case in twice.cases] == [case for case in LAB.cases if case in known]
    assert twice.commit == WHOLE.commit
    assert merged(LAB, twice, later("raw-drop", hour=11, commit="b" * 12)) == twice, "kept again"


def test_what_does_not_fit_is_rejected() -> None:
    other = later("raw-drop").dut.model_copy(update={"kernel": "7.0.0"})
    with pytest.raises(BadInput, match=r"kernel 7\.0\.0"):
        merged(LAB, WHOLE, later("raw-drop", dut=other))
    with pytest.raises(BadInput, match="is older than the published one"):
        merged(LAB, WHOLE, later("raw-drop", started="2026-11-19T10:00:00+00:00"))


class TestHistory:
    @pytest.fixture
    def project(self, tmp_path: Path) -> Project:
        """A checkout with two commits."""
        for number in ("1", "2"):
            folder = tmp_path / "labs" / LAB.id
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "lab.yml").write_text(number)
            (tmp_path / "topology.yml").write_text("")
            for words in (
                ["init", "-q"],
                ["add", "."],
                ["-c", "user.name=a", "-c", "user.email=a", "commit", "-qm", "a"],
            ):
                subprocess.run(["git", *words], cwd=tmp_path, check=True)
        return Project(tmp_path)

    def test_a_run_of_the_checkout_can_be_traced(self, project: Project) -> None:
        found = trees(project, LAB.id)
        assert set(found) == {"topology.yml", f"labs/{LAB.id}"}
        run = WHOLE.model_copy(update={"commit": commit(project), "trees": found})
        assert untraceable(project, run) is None
        assert "has another tree" in untraceable(project, run.model_copy(update={"trees": {"topology.yml": "0" * 40}}))

    def test_changed_files_and_unknown_commits_are_rejected(self, project: Project) -> None:
        (project.root / "topology.yml").write_text("changed")
        (project.root / "README.md").write_text("")
        for name, why in ((commit(project), "files differed"), ("0" * 12, "not in the history"), ("unknown", "not in")):
            run = WHOLE.model_copy(update={"commit": name})
            with pytest.raises(BadInput, match=why) as rejected:
                publish(project, LAB, run)
            assert rejected.value.hint.startswith("git commit")
        assert published_runs(project, LAB) == []
