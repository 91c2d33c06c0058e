# SPDX-License-Identifier: GPL-2.0-or-later
"""What the model counts by place, the functions that the places belong to, and the stacks weighted by it."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from fwlab_coresim.counters import CorePlaces
from fwlab_coresim.counts import CycleCounts, Modelled
from fwlab_coresim.functions import PARTS, function_costs, weighted
from fwlab_coresim.metric import FUNCTIONS

from fwlab.dut.agent_client import PROGRAMS, AgentDut
from fwlab.dut.linux.agent.perf_samples import UNKNOWN, names_of
from tests.fakes.model_program import SMALL, needs_compiler, run
from tests.unit.coresim.test_model_cycles import CORE, facts, measured, named, trial

WORDS = [f"{key}={value}" for key, value in SMALL.items()]
#: Two blocks of the kernel, and one of a program.
FIRST, SECOND, PROGRAM = 0xFFFFFFFF81000000, 0xFFFFFFFFC0000040, 0x400000


def counts(instructions: int, **waits: int) -> dict[str, int]:
    return spent(instructions, **waits).model_dump()


def spent(instructions: int, **waits: int) -> CycleCounts:
    return CycleCounts(**{**dict.fromkeys(CycleCounts.model_fields, 0), "instructions": instructions, **waits})


@needs_compiler
def test_each_block_has_what_was_counted_while_it_ran(tmp_path: Path) -> None:
    path = tmp_path / "places"
    path.touch()
    places = CorePlaces(path)
    outside = [f"run {FIRST:x}", "b 1000 0"]
    first = [f"run {FIRST:x}", "b 7 1", "l 10000"]
    second = [f"run {SECOND:x}", "b 5 0", "f 20000"]
    program = [f"run {PROGRAM:x}", "b 3 0"]
    window = [*outside, "window 1", *first, *second, *first, *program, "window 0", *outside]
    assert run(WORDS, [f"places {path}", *window]).returncode == 0
    found = places.since()
    assert found.keys() == {FIRST, SECOND, PROGRAMS}
    # The first load misses the TLB and all caches; the second finds everything.
    assert (found[FIRST].instructions, found[FIRST].locked_wait, found[FIRST].load_wait) == (14, 30, 196)
    assert (found[SECOND].instructions, found[SECOND].load_wait) == (5, 0)
    assert found[SECOND].fetch_wait > 0
    assert found[PROGRAMS] == spent(3)
    places.begin()
    assert places.since() == {}


@needs_compiler
def test_the_places_of_a_window_add_up_to_its_counters(tmp_path: Path) -> None:
    """However many blocks there are: those without a place of their own count at address 0."""
    path = tmp_path / "places"
    path.touch()
    blocks = 70_000
    commands = [word for number in range(blocks) for word in (f"run {FIRST + 16 * number:x}", "b 2 0")]
    done = run(WORDS, [f"places {path}", "window 1", *commands, "window 0", "p"])
    assert done.returncode == 0
    found = CorePlaces(path).since()
    assert sum(one.instructions for one in found.values()) == 2 * blocks
    assert found[PROGRAMS].instructions > 0


SYMBOLS = """\
ffffffff81000000 T _stext
ffffffff81000000 T startup
ffffffff81000100 t ipt_do_table
ffffffff81000180 d some_data
ffffffffc0000000 t nft_do_chain\t[nf_tables]
ffffffffc0000900 t bpf_prog_1\t[bpf]
"""


def test_an_address_belongs_to_the_last_function_that_begins_before_it() -> None:
    addresses = [0xFFFFFFFF80000000, FIRST, FIRST + 0xFF, FIRST + 0x190, SECOND, 0xFFFFFFFFC0000900]
    names = [UNKNOWN, "_stext", "_stext", "ipt_do_table", "nft_do_chain", "bpf_prog_1"]
    assert names_of(addresses, SYMBOLS.splitlines()) == names


def test_functions_are_the_sums_of_their_blocks() -> None:
    places = {1: counts(10, load_wait=5), 2: counts(20), 3: counts(1, branch_wait=9), PROGRAMS: counts(4)}
    agent: Any = SimpleNamespace(
        _model=SimpleNamespace(places=lambda: places), ask=lambda *_, **__: {"functions": ["slow", "slow", "worse"]}
    )
    found = AgentDut.modelled_functions(agent)
    assert found["slow"] == counts(30, load_wait=5)
    session: Any = SimpleNamespace(nodes=SimpleNamespace(dut=SimpleNamespace(modelled_functions=lambda: found)))
    kept = FUNCTIONS.run(session, None, measured(trial(1)))
    assert list(kept.functions) == ["worse", "slow", "[programs]"], "most waits first"
    assert FUNCTIONS.run(session, None, measured()).functions == {}


def test_costs_are_per_packet_of_the_valid_trials() -> None:
    """Functions were counted in a trial that is not valid, too: twice what the valid one has."""
    one = measured(trial(1000, processed=10)).model_copy(
        update={"functions": {"slow": counts(1600, load_wait=400), "quick": counts(400, branch_wait=80)}}
    )
    slow, quick = function_costs(one, facts(core=named()))
    assert (slow.name, slow.instructions, slow.memory, slow.cycles) == ("slow", 80, 20, 80 / 4 + 20)
    assert (quick.instructions, quick.branches, quick.waits) == (20, 4, 4)
    assert function_costs(one, facts()) == []
    assert function_costs(measured(), facts(core=named())) == []


def test_stacks_are_weighted_by_their_innermost_function() -> None:
    functions = {"read": counts(0, load_wait=300), "hash": counts(400), "idle": counts(0, branch_wait=100)}
    one = measured().model_copy(update={"functions": functions})
    stacks = {"net;read": 3, "net;list;read": 1, "net;hash": 50}
    assert weighted(stacks, one, CORE, waits=True) == {
        "net;read": PARTS * 3 // 4 * 3 // 4,
        "net;list;read": PARTS * 3 // 4 // 4,
        "idle": PARTS // 4,
    }
    cycles = weighted(stacks, one, CORE, waits=False)
    assert cycles["net;hash"] == PARTS * 100 // 500


def test_windows_and_places_have_the_same_first_counters() -> None:
    assert list(Modelled.model_fields)[: len(CycleCounts.model_fields)] == list(CycleCounts.model_fields)
