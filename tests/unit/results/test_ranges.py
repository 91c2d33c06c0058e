# SPDX-License-Identifier: GPL-2.0-or-later
"""ranges.yml is generated from a run: medians, and ranges that follow from them."""

import shutil
from pathlib import Path

import pytest
import yaml

from fwlab.checkout.project import Project
from fwlab.judge.statistics import figure
from fwlab.judge.verdicts import judge_cases
from fwlab.measure.labs import load_lab
from fwlab.measure.saved_runs import published_runs
from fwlab.metrics.registry import METRICS
from fwlab.model.errors import BadInput
from fwlab.model.lab import Lab
from fwlab.model.ranges import MetricRanges, Ranges
from fwlab.model.results import Run
from tests import ROOT
from tests.checkout import PROJECT, lab_named
from tests.fakes.factories import TEXTS, a_lab, a_run, measured
from tests.fakes.published import NAMES, lab_of
from tools.ranges import as_yaml, renewed, write_ranges

SOURCE = "results/lab99-made-up/published.json.gz"


def a_judged_lab(**cases: dict) -> Lab:
    """A lab that judges raw-drop and set-1. `cases` adds fields to cases, by id with _ in place of -."""
    raw = a_lab().model_dump(by_alias=True, mode="json", exclude_defaults=True)
    for case in raw["cases"]:
        case.update(cases.get(case["id"].replace("-", "_"), {}))
    raw["expectations"] = [{"id": "made-up", "cases": ["raw-drop", "set-1"], **TEXTS}]
    return Lab.model_validate(raw)


LAB = a_judged_lab()


def judged_by(lab: Lab, run: Run) -> Lab:
    """The lab with this run's ranges, written and read back."""
    text = as_yaml(lab, renewed(lab, run, SOURCE))
    return lab.with_ranges(Ranges.model_validate(yaml.safe_load(text)))


def test_a_range_surrounds_the_median_and_a_ratios_is_twice_as_wide() -> None:
    run = a_run([measured(LAB, "raw-drop", 299_000, 300_000, 301_000), measured(LAB, "set-1", 270_000)])
    (found,) = judged_by(LAB, run).expectations
    assert found.virtual == {"raw-drop": (295_500, 304_500), "set-1": (265_900, 274_100)}
    assert (found.ratio_to, found.ratio) == ("raw-drop", {"set-1": (0.873, 0.927)})
    assert (found.kernel, found.source) == ("6.1", [SOURCE, "S1"])


def test_each_number_is_written_once() -> None:
    run = a_run([measured(LAB, "raw-drop", 300_000), measured(LAB, "set-1", 270_000)])
    text = as_yaml(LAB, renewed(LAB, run, SOURCE))
    assert [line for line in text.splitlines() if not line.startswith("#")] == [
        "virtual:",
        '  kernel: "6.1"',
        f"  source: {SOURCE}",
        "  metrics:",
        "    capacity:",
        "      tolerance: 0.015",
        "      ratio_tolerance: 0.03",
        "      medians:",
        "        raw-drop: 300000",
        "        set-1: 270000",
    ]


def test_cases_not_measured_keep_median_kernel_and_source() -> None:
    both = a_run([measured(LAB, "raw-drop", 300_000), measured(LAB, "set-1", 270_000)])
    first = judged_by(LAB, both)
    later = a_run([measured(LAB, "set-1", 280_000)])
    later = later.model_copy(update={"dut": later.dut.model_copy(update={"kernel": "6.12.3-amd64"})})
    ranges = renewed(first, later, "results/later.json")
    medians = ranges.virtual.metrics["capacity"].medians
    assert medians["set-1"].model_dump(exclude_none=True) == {"median": 280_000}
    kept = {"median": 300_000, "kernel": "6.1", "source": SOURCE}
    assert medians["raw-drop"].model_dump(exclude_none=True) == kept
    assert {e.kernel: [*e.virtual] for e in first.with_ranges(ranges).expectations} == {
        "6.1": ["raw-drop"],
        "6.12": ["set-1"],
    }


@pytest.mark.parametrize(
    ("trials", "reload_spread", "expected"),
    [
        ((123_457,), 0, (121_600, 125_400)),
        ((296_000, 300_000, 305_000), 0, (291_000, 309_000)),
        ((300_000,), 0.025, (292_500, 307_500)),
    ],
    ids=["rounded outwards", "spread of the trials", "declared spread of reloads"],
)
def test_a_range_is_as_wide_as_the_largest_spread(
    trials: tuple[int, ...], reload_spread: float, expected: tuple[int, int]
) -> None:
    """Trials share one load of the ruleset, and may agree better than two loads do."""
    lab = a_judged_lab(raw_drop={"reload_spread": reload_spread})
    (found,) = judged_by(lab, a_run([measured(lab, "raw-drop", *trials)])).expectations
    assert found.virtual == {"raw-drop": expected}


def test_a_ratios_range_is_as_wide_as_the_declared_spread() -> None:
    lab = a_judged_lab(raw_drop={"reload_spread": 0.025}, set_1={"reload_spread": 0.04})
    run = a_run([measured(lab, "raw-drop", 300_000), measured(lab, "set-1", 300_000)])
    (found,) = judged_by(lab, run).expectations
    assert found.ratio == {"set-1": (0.96, 1.04)}


@pytest.mark.parametrize(
    ("median", "own", "between"), [(0.5, None, (0.48, 0.52)), (0.5, 0.03, (0.47, 0.53)), (0.99, None, (0.97, 1.0))]
)
def test_a_range_of_shares_has_an_absolute_margin_and_stays_in_0_to_1(
    median: float, own: float | None, between: tuple[float, float]
) -> None:
    table = MetricRanges.model_validate({"margin": 0.02, "medians": {"x": {"median": median, "tolerance": own}}})
    assert table.absolute("x") == between


def test_doubtful_figures_give_no_range() -> None:
    run = a_run([measured(LAB, "raw-drop", 280_000, 300_000)])
    with pytest.raises(BadInput, match=r"raw-drop is in doubt: the trials are 6\.9% apart"):
        renewed(LAB, run, SOURCE)


def on_kvm(run: Run, host_class: str | None) -> Run:
    testbed = run.testbed.model_copy(
        update={"name": "real", "accelerator": "kvm", "ns_per_instruction": None, "ranges": "host_class"}
    )
    host = run.host.model_copy(update={"host_class": host_class})
    return run.model_copy(update={"testbed": testbed, "host": host})


def test_a_run_on_the_real_testbed_gives_ranges_of_its_host_class() -> None:
    run = on_kvm(a_run([measured(LAB, "raw-drop", 300_000)]), "epyc-7003")
    lab = judged_by(LAB, run)
    (found,) = lab.expectations
    assert [*found.hosts] == ["epyc-7003"]
    assert not found.virtual
    assert not found.ratio
    assert [v.outcome.value for v in judge_cases(lab, run, METRICS)] == ["pass"]
    assert judge_cases(lab, on_kvm(run, "another"), METRICS) == []


def test_a_host_without_a_class_gives_no_range() -> None:
    with pytest.raises(BadInput, match="on a host without a class") as refused:
        renewed(LAB, on_kvm(a_run([measured(LAB, "raw-drop", 300_000)]), None), SOURCE)
    assert "FWLAB_HOST_CLASS" in refused.value.hint


# ---- the labs' own --------------------------------------------------------------------------------------------

each_measured = pytest.mark.parametrize("name", NAMES)


@pytest.mark.parametrize("name", dict.fromkeys(name.partition(":")[0] for name in NAMES))
def test_the_ranges_of_a_lab_are_those_of_its_own_raw_results(name: str, tmp_path: Path) -> None:
    """Nothing in the file was typed by hand, and nothing is out of date."""
    lab = lab_named(name)
    (tmp_path / "labs" / name).mkdir(parents=True)
    (tmp_path / "results").symlink_to(ROOT / "results")
    path = write_ranges(Project(tmp_path), lab)
    assert path.read_text() == (lab.folder / "ranges.yml").read_text()


def test_an_unpublished_run_gives_no_range(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="a range needs raw results") as refused:
        write_ranges(Project(tmp_path), LAB)
    assert "make figures LAB=lab99-made-up" in refused.value.hint


@each_measured
def test_every_expected_case_has_its_range(name: str) -> None:
    lab_id, _, system = name.partition(":")
    lab, runs = lab_of(name), published_runs(PROJECT, lab_named(lab_id))
    run = next(run for run in runs if system in ("", run.dut.system))
    for declared in lab.declared_expectations:
        cases = lab.cases_named(declared.cases)
        ranges = [found for found in lab.expectations if found.id == declared.id]
        absolute = {case: between for found in ranges for case, between in found.virtual.items()}
        ratio = {case for found in ranges for case in found.ratio}
        assert sorted(absolute) == (sorted(cases) if declared.absolute else []), declared.id
        assert ratio == ({*cases} - {declared.ratio_to} if declared.ratio_to else set()), declared.id
        for case, (low, high) in absolute.items():
            median = figure(run.case(case), METRICS[declared.metric], run.testbed).median
            assert low <= median <= high
            assert high <= low * 1.11 or high - low <= 0.0601
        assert all((ROOT / source).is_file() for found in ranges for source in found.source[:1])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("virtual: {", ":2: not YAML"),
        ("[]", ": the fields are missing"),
        ("virtual: { kernel: '6.1', metrics: {} }", ": virtual.source: this field is missing"),
        ("virtual: { kernel: 6.1.0-5, source: x, metrics: {} }", ": virtual.kernel: 6.1.0-5 does not have the form"),
        (
            "virtual: { kernel: '6.1', source: x, metrics: { speed: { tolerance: 0.1, medians: {} } } }",
            ": virtual.metrics.speed.[key]: unknown metric 'speed'",
        ),
        (
            "virtual: { kernel: '6.1', source: x, metrics: { capacity: { medians: {} } } }",
            ": virtual.metrics.capacity: give either tolerance or margin",
        ),
        (
            "virtual: { kernel: '6.1', source: x, metrics: { capacity: { tolerance: 0.1, medians: { a: .nan } } } }",
            ": virtual.metrics.capacity.medians.a.median: ",
        ),
        (
            "virtual: { kernel: '6.1', source: x, metrics: { capacity: { tolerance: 0.1, medians: { a: fast } } } }",
            ": virtual.metrics.capacity.medians.a: fields belong here",
        ),
    ],
)
def test_a_damaged_file_is_named(text: str, says: str, tmp_path: Path) -> None:
    shutil.copytree(PROJECT.labs / "lab03-ipset", tmp_path / "labs" / "lab03-ipset", ignore=lambda *_: ["rulesets"])
    (tmp_path / "labs" / "lab03-ipset" / "ranges.yml").write_text(f"{text}\n")
    with pytest.raises(BadInput) as refused:
        load_lab(Project(tmp_path), "lab03-ipset")
    assert refused.value.message.startswith(f"labs/lab03-ipset/ranges.yml{says}")
    assert "make ranges LAB=lab03-ipset" in refused.value.hint


def test_a_lab_without_the_file_judges_no_case(tmp_path: Path) -> None:
    """So an author can measure first, and a deleted file can be generated again."""
    shutil.copytree(PROJECT.labs / "lab03-ipset", tmp_path / "labs" / "lab03-ipset", ignore=lambda *_: ["rulesets"])
    (tmp_path / "labs" / "lab03-ipset" / "ranges.yml").unlink()
    assert load_lab(Project(tmp_path), "lab03-ipset").expectations == []
