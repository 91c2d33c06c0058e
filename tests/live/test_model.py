# SPDX-License-Identifier: GPL-2.0-or-later
"""A core that is modelled beside the DUT: it leaves the clock alone, repeats, and counts what is known of programs."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from fwlab_coresim.attach import reject_other_qemu
from fwlab_coresim.cores import ReferenceCore, reference_cores
from fwlab_coresim.counts import Modelled
from fwlab_coresim.figures import core_figures
from fwlab_coresim.functions import function_costs
from fwlab_coresim.metric import counted

from fwlab.checkout.project import find_project
from fwlab.measure.provenance import host_facts
from fwlab.metrics.call_stacks import shares
from fwlab.model.errors import CannotMeasure
from fwlab.model.results import Measured, Run
from tools.core_ratios import modelled_cases

from .conftest import ROOT, Checkout
from .model_cases import CASES, PLAIN, PROFILED

pytestmark = pytest.mark.live

CORE = "xeon"
#: The clock does not notice the model. Without it, the trials of iptables-rules-1024 are up to 0.26 % apart in all runs
#: under results/lab03-ipset, and their medians up to 0.1 %.
SAME_CLOCK = 0.003
#: Instructions of another boot.
SAME_INSTRUCTIONS = 0.005
#: Cycles of another boot (guides/model.md, "How well it repeats").
SAME_CYCLES = 0.03


@pytest.fixture(scope="module")
def modelling(request: pytest.FixtureRequest) -> Checkout:
    """The checkout. Skips where the host's QEMU is not one that the model fits."""
    try:
        reject_other_qemu(host_facts().qemu)
    except CannotMeasure as error:
        pytest.skip(str(error))
    lab: Checkout = request.getfixturevalue("lab")
    return lab


def module(checkout: Checkout, name: str, output: Path, *words: str) -> dict:
    """What a module of these tests wrote that was run in the checkout, on its machines and the core."""
    environment = checkout.environment
    checkout.environment = {**environment, "PYTHONPATH": str(ROOT)}
    try:
        done = checkout.call(sys.executable, "-m", f"tests.live.{name}", checkout.name, str(output), CORE, *words)
    finally:
        checkout.environment = environment
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(output.read_text())


@pytest.fixture(scope="module")
def runs(
    modelling: Checkout, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Run]:
    """The cases of model_cases.py that the chosen tests need, `plain` and `modelled`."""
    chosen = {item.callspec.params.get("case") for item in request.session.items if hasattr(item, "callspec")}
    cases = [case for case in CASES.values() if case in chosen | {PROFILED}]
    found = module(modelling, "model_cases", tmp_path_factory.mktemp("cases") / "runs.json", *cases)
    return {name: Run.model_validate(run) for name, run in found.items()}


def the_case(run: Run, name: str) -> Measured:
    case = run.case(name)
    assert case is not None
    assert not case.problems, case.problems
    return case


def instructions(run: Run, name: str) -> list[float]:
    """Instructions per packet by the clock, trial by trial."""
    nanoseconds = run.testbed.ns_per_instruction
    assert nanoseconds
    return [one.busy_s * 1e9 / nanoseconds / one.processed for one in the_case(run, name).trials]


def least_disturbed(run: Run, name: str) -> tuple[float, Modelled]:
    """Packets of a trial, and what the model counted in it. What disturbs a trial only adds instructions."""
    found = counted(the_case(run, name), run.testbed)
    assert found, "the model saw the same windows as the clock"
    return min(found, key=lambda pair: pair[1].instructions / pair[0])


@pytest.mark.parametrize("case", PLAIN)
def test_the_clock_does_not_notice_the_model(runs: dict[str, Run], case: str) -> None:
    plain, modelled = (instructions(runs[name], case) for name in ("plain", "modelled"))
    # A busy host disturbs trials by some tenths of a per cent, with the model or without. So the ranges are compared.
    assert min(modelled) <= max(plain) * (1 + SAME_CLOCK)
    assert max(modelled) >= min(plain) * (1 - SAME_CLOCK)


@pytest.mark.parametrize(
    ("lab_id", "case"),
    [pytest.param(*item, marks=() if item[1] in PLAIN else pytest.mark.thorough) for item in CASES.items()],
)
def test_a_case_of_each_lab_takes_the_cycles_of_its_committed_result(
    runs: dict[str, Run], lab_id: str, case: str
) -> None:
    core, committed = reference_cores()[CORE], modelled_cases(find_project(ROOT), lab_id)[CORE][case]
    packets, found = least_disturbed(runs["modelled"], case)
    assert found.instructions / packets == pytest.approx(committed.instructions, rel=SAME_INSTRUCTIONS)
    assert core.cycles(found) / packets == pytest.approx(committed.cycles, rel=SAME_CYCLES)
    assert found.memory_wait / core.cycles(found) == pytest.approx(committed.memory, abs=SAME_CYCLES)


def test_functions_have_all_cycles_of_a_packet_and_the_walk_through_a_list_most(runs: dict[str, Run]) -> None:
    run = runs["modelled"]
    case = the_case(run, PROFILED)
    packet = core_figures(case, run)
    assert packet is not None
    functions = function_costs(case, run.testbed)
    assert functions[0].name == "ipt_do_table"
    # The functions are counted in whole windows, as the clock counts; their sum is that of a packet.
    assert sum(one.instructions for one in functions) == pytest.approx(packet.instructions, rel=0.005)
    assert sum(one.cycles for one in functions) == pytest.approx(packet.cycles, rel=0.005)
    assert functions[0].instructions > 0.8 * packet.instructions
    assert functions[0].memory > functions[0].branches
    assert shares(case.stacks)[0].name == "ipt_do_table", "the samples say the same"


@pytest.fixture(scope="module")
def programs(modelling: Checkout, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict]:
    """What was counted in each program of tests/live/model_known.py."""
    found = module(modelling, "model_known", tmp_path_factory.mktemp("known") / "known.json")
    return {one["program"]: one for one in found["cores"][CORE]["programs"]}


def waits_for(core: ReferenceCore, kib: int) -> int | None:
    """Latency of the level that holds a ring of this size; None where the ring is so large that some lines stay."""
    for level in (core.l1d, core.l2, core.llc):
        if level and kib <= level.kib / 2:
            return level.latency
        if level and kib < 2 * level.kib:
            return None
    return core.memory_latency


def test_a_chase_of_pointers_waits_for_the_level_that_holds_the_ring(programs: dict[str, dict]) -> None:
    core = reference_cores()[CORE]
    seen = set()
    for name, found in programs.items():
        latency = waits_for(core, int(name.split()[1]) >> 10) if name.startswith("chase") else None
        if latency is not None:
            waited = found["counted"].get("load_wait", 0) / found["times"]
            assert waited == pytest.approx(latency - core.l1d.latency, rel=0.05, abs=0.2), name
            seen.add(latency)
    assert len(seen) == 4, "all levels and memory"


def test_branches_and_calls_are_mispredicted_where_nothing_tells_them(programs: dict[str, dict]) -> None:
    def share(name: str, kind: str) -> float:
        return programs[name]["counted"].get(kind, 0) / programs[name]["times"]

    assert share("branch 0", "direction_misses") < 0.01
    assert share("branch 1", "direction_misses") == pytest.approx(0.5, abs=0.05)
    for power in range(7):
        # The targets before tell the next one. Of 32 in turns, two may share an entry of the table.
        assert share(f"indirect {1 << power}", "target_misses") < 0.1
