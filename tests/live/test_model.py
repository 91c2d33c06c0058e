# SPDX-License-Identifier: GPL-2.0-or-later
"""A core that is modelled beside the DUT: it leaves the clock alone, repeats, and counts what is known of programs."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from fwlab.model.reference_core import ReferenceCore

from .conftest import LAB, ROOT, TOPOLOGY, Checkout, document

pytestmark = pytest.mark.live

CORE = "xeon"
#: Trials of one boot differ by 0.3 % (guides/method.md), so medians of a few may. The results of guides/model.md, from
#: machines that did nothing else before, are closer.
APART = 0.003


@pytest.fixture(scope="module")
def modelling(lab: Checkout) -> Checkout:
    """The checkout with the model's sources."""
    shutil.copytree(ROOT / "model", lab.top / "model")
    return lab


def case_of(lab: Checkout, *words: str) -> dict:
    [case] = document(lab.fwlab("run", LAB, "raw-drop", "--trials", "15", *words, "--json"))["cases"]
    return case


def test_the_clock_does_not_notice_the_model_and_its_cycles_repeat(modelling: Checkout) -> None:
    plain = case_of(modelling)
    found = []
    for _ in range(2):
        case = case_of(modelling, "--model", CORE)
        assert abs(case["median"] / plain["median"] - 1) <= APART, (case["median"], plain["median"])
        [cycles] = [one["median"] for one in case["also"] if one["metric"] == "model_cycles"]
        found.append(cycles)
    assert abs(found[0] / found[1] - 1) <= 0.005 + APART, found


def test_functions_have_all_cycles_of_a_packet_and_the_interpreter_of_a_list_most(modelling: Checkout) -> None:
    found = document(modelling.fwlab("profile", LAB, "nft-rules-1024", "--model", CORE, "--trials", "3", "--json"))
    functions = found["modelled"]
    assert functions[0]["name"] == "nft_do_chain"
    # The functions are counted in whole windows, as the clock counts; their sum is that of a packet.
    assert sum(one["instructions"] for one in functions) == pytest.approx(found["cost"], rel=0.005)
    assert functions[0]["instructions"] > 0.8 * found["cost"]
    assert functions[0]["memory"] > functions[0]["branches"]
    assert found["functions"][0]["name"] == "nft_do_chain", "the samples say the same"


@pytest.fixture(scope="module")
def programs(modelling: Checkout, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict]:
    """What was counted in each program of tests/live/model_known.py."""
    output = tmp_path_factory.mktemp("known") / "known.json"
    environment = modelling.environment
    modelling.environment = {**environment, "PYTHONPATH": str(ROOT)}
    try:
        done = modelling.call(sys.executable, "-m", "tests.live.model_known", modelling.name, str(output), CORE)
    finally:
        modelling.environment = environment
    assert done.returncode == 0, done.stderr[-3000:]
    return {one["program"]: one for one in json.loads(Path(output).read_text())["cores"][CORE]["programs"]}


def waits_for(core: ReferenceCore, kib: int) -> int | None:
    """Latency of the level that holds a ring of this size; None where the ring is so large that some lines stay."""
    for level in (core.l1d, core.l2, core.llc):
        if level and kib <= level.kib / 2:
            return level.latency
        if level and kib < 2 * level.kib:
            return None
    return core.memory_latency


def test_a_chase_of_pointers_waits_for_the_level_that_holds_the_ring(programs: dict[str, dict]) -> None:
    core = TOPOLOGY.cores[CORE]
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
