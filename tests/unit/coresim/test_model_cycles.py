# SPDX-License-Identifier: GPL-2.0-or-later
"""The metric model_cycles, and the table of what was modelled."""

import json

import pytest
from fwlab_coresim.cores import ReferenceCore, reference_cores
from fwlab_coresim.counts import Modelled
from fwlab_coresim.figures import HEADS, core_figures
from fwlab_coresim.kind import WARM_S
from fwlab_coresim.metric import MAX_APART, METRIC
from pydantic import ValidationError

from fwlab.checkout.project import find_project, load_topology
from fwlab.measure import core_models
from fwlab.measure.context import RunContext
from fwlab.measure.core_models import modelled_specs
from fwlab.measure.plan import case_specs
from fwlab.model.errors import BadInput
from fwlab.model.registry import Registry
from fwlab.model.results import Measured, ModelledCore, TestbedFacts
from fwlab.model.trial import TcpTrial, Trial
from fwlab.testbed.selection import TestbedRequest
from tests.checkout import lab_named

CORE = reference_cores()["xeon"]


def facts(**changed: object) -> TestbedFacts:
    given = {"name": "virtual", "accelerator": "tcg", "clock": "instructions", "ns_per_instruction": 4}
    return TestbedFacts(**{**given, "forced": False, "link": "socket", "engine": "replay", **changed})  # type: ignore[arg-type]


def named() -> ModelledCore:
    return ModelledCore(name="xeon", **CORE.model_dump())


def trial(instructions: int, *, processed: int = 10, busy_s: float = 4e-6, **waits: int) -> Trial:
    counts = {**dict.fromkeys(Modelled.model_fields, 0), "instructions": instructions, **waits}
    return Trial(duration_s=busy_s, busy_s=busy_s, processed=processed, modelled=counts)


def measured(*trials: Trial) -> Measured:
    return Measured(id="one", title="", ruleset="", ruleset_hash="", trials=list(trials), also=["model_cycles"])


def test_cycles_are_instructions_at_full_width_and_waits() -> None:
    found = trial(1000, load_wait=300, fetch_wait=100, tlb_wait=50, branch_wait=160, locked_wait=15)
    assert METRIC.values(measured(found), facts(core=named())) == [(1000 / 4 + 625) / 10]
    assert METRIC.values(measured(found), facts()) == [], "no core, no cycles"
    assert METRIC.values(measured(Trial(duration_s=1, busy_s=1, processed=1)), facts(core=named())) == []


def test_trials_of_a_modelled_core_begin_when_its_caches_are_warm() -> None:
    lab = lab_named("lab03-ipset")
    context = RunContext(find_project(), load_topology(find_project()), lab, TestbedRequest("virtual"), core="xeon")
    specs = modelled_specs("xeon", case_specs(context, ["raw-drop", "ipset-random"], None))
    assert [spec.trial.settle for spec in specs] == [WARM_S, 2]
    assert all(spec.asks_for("model_cycles") for spec in specs)
    [sized] = modelled_specs("xeon", case_specs(context, ["ipset-1000"], None))
    assert not sized.asks_for("load_time"), "it is that of a run without the model"
    [spec] = modelled_specs("", case_specs(context, ["raw-drop"], None))
    assert spec.trial.settle == lab.trials.settle
    assert not spec.asks_for("model_cycles")


def test_of_connections_each_has_its_cycles() -> None:
    one = trial(1000, load_wait=300)
    carried = TcpTrial(duration_s=4e-6, busy_s=4e-6, completed=2.5, concurrent=9, packets=30, modelled=one.modelled)
    found = measured().model_copy(update={"tcp": [carried], "trials": []})
    assert METRIC.values(found, facts(core=named())) == [(1000 / 4 + 300) / 2.5]
    assert METRIC.trials(found) == [carried]
    again = TcpTrial.model_validate_json(carried.model_dump_json())
    assert again.modelled == one.modelled
    assert "modelled" not in carried.model_copy(update={"modelled": None}).model_dump()


def test_a_window_that_is_not_the_clocks_says_nothing() -> None:
    within, beyond = round(1000 * (1 + MAX_APART / 2)), round(1000 * (1 + MAX_APART * 2))
    assert len(METRIC.values(measured(trial(within), trial(beyond)), facts(core=named()))) == 1


def test_results_without_a_model_are_written_as_before() -> None:
    assert "modelled" not in json.loads(Trial(duration_s=1, busy_s=1, processed=1).model_dump_json())
    assert "core" not in json.loads(facts().model_dump_json())
    again = TestbedFacts.model_validate_json(facts(core=named()).model_dump_json())
    assert again.core == named()
    kept = Trial.model_validate_json(trial(7).model_dump_json())
    assert kept.modelled is not None
    assert kept.modelled["instructions"] == 7


def test_the_table_says_what_waits() -> None:
    from types import SimpleNamespace

    run = SimpleNamespace(testbed=facts(core=named()))
    one = trial(1000, load_wait=500, branch_wait=250, l1d_misses=20, direction_misses=5, return_misses=5)
    found = core_figures(measured(one), run)  # type: ignore[arg-type]
    assert found is not None
    assert (found.cycles, found.memory, found.branches, found.l1d, found.mispredicted) == (100, 0.5, 0.25, 2, 1)
    assert len(found.cells()) == len(HEADS)
    assert core_figures(measured(), run) is None  # type: ignore[arg-type]


def test_every_parameter_names_its_source() -> None:
    data = CORE.model_dump()
    del data["sources"]["l2"]
    with pytest.raises(ValidationError, match="these differ: l2"):
        ReferenceCore(**data)
    for core in reference_cores().values():
        assert all(core.sources.values())


def test_every_parameter_reaches_the_model() -> None:
    """Otherwise it would have no effect."""
    plain = (CORE.words(), CORE.cycles(modelled := Modelled(**trial(1000).modelled)))
    for name, value in CORE.model_dump(exclude={"title", "sources"}).items():
        fields = value if isinstance(value, dict) else {"": value}
        for field, old in fields.items():
            new = "mispredicted" if old == "predicted" else not old if old in (0, 1) else old * 2
            value = getattr(CORE, name).model_copy(update={field: new}) if field else new
            changed = CORE.model_copy(update={name: value})
            assert (changed.words(), changed.cycles(modelled)) != plain, (name, field)


def test_without_the_distribution_a_core_is_refused_and_nothing_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core_models, "core_models", lambda: Registry("core model", []))
    with pytest.raises(BadInput, match="no model of a core is installed") as refused:
        core_models.model_of("xeon")
    assert refused.value.hint == "pip install ./coresim"
    assert core_models.known_cores() == {}
    assert core_models.core_profile(measured(trial(1000)), facts(core=named())) is None


def test_counts_of_another_model_are_refused_by_name() -> None:
    other = trial(1000).model_copy(update={"modelled": {"instructions": 1000, "sleep": 1}})
    with pytest.raises(BadInput, match="counts of another model of a core: fetch_wait"):
        METRIC.values(measured(other), facts(core=named()))
    with pytest.raises(BadInput, match="xeon: not a core of this model: width"):
        METRIC.values(measured(trial(1000)), facts(core=ModelledCore(name="xeon", title="x")))
