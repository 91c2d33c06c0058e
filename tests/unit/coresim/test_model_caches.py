# SPDX-License-Identifier: GPL-2.0-or-later
"""The model's caches and TLBs: traces with known answers, the staircase of each core, and an independent model."""

import random
from collections import OrderedDict

import pytest
from fwlab_coresim.cores import reference_cores

from tests.fakes.model_program import SMALL, counted, needs_compiler, run

pytestmark = needs_compiler

CORES = reference_cores()
KIB, MIB = 1 << 10, 1 << 20
#: Addresses in those parts of the kernel's address space that have pages of 2 MiB.
DIRECT_MAP, MEMORY_MAP, TEXT = 0xFFFF888000000000, 0xFFFFEA0000000000, 0xFFFFFFFF81000000


def loads(*lines: int) -> list[str]:
    return [f"l {line * 64:x}" for line in lines]


def test_a_load_waits_for_the_level_that_has_the_line() -> None:
    first, second, third = counted(["l 0", "p", "l 0", "p", *loads(2, 4), "l 0", "p"])
    assert (first["load_wait"], first["l2_misses"], first["llc_misses"]) == (200 - 4, 2, 2)  # the walk misses, too
    assert first["tlb_wait"] == 9 + 200
    assert second["load_wait"] == second["tlb_wait"] == 0
    assert third["load_wait"] == 2 * (200 - 4) + 14 - 4


@pytest.mark.parametrize("start", [DIRECT_MAP, MEMORY_MAP, TEXT])
def test_large_pages_are_those_of_the_direct_map_the_memory_map_and_the_text(start: int) -> None:
    within = [f"l {start + offset:x}" for offset in range(0, 2 * MIB, 4096)]
    assert counted([*within, "p"])[0]["dtlb_misses"] == 1
    small = [f"l {offset:x}" for offset in range(0, 2 * MIB, 4096)]
    assert counted([*small, "p"])[0]["dtlb_misses"] == len(small)


def test_large_pages_walk_if_the_second_tlb_has_none() -> None:
    pages = [f"l {DIRECT_MAP + (page << 21):x}" for page in range(4)]
    assert counted([*pages, *pages, "p"], stlb_large="0")[0]["walks"] == 8
    assert counted([*pages, *pages, "p"])[0]["walks"] == 4


@pytest.mark.parametrize("name", CORES)
def test_the_staircase_shows_the_declared_sizes_and_latencies(name: str) -> None:
    """Chase pointers through 16 KiB to 64 MiB of large pages: every level that holds it all has its latency."""
    core = CORES[name]
    levels = [cache for cache in (core.l1d, core.l2, core.llc) if cache]
    seen = {}
    for kib in [16 << power for power in range(13)] + [level.kib for level in levels]:
        lines = kib * KIB // 64
        once = f"sweep l {DIRECT_MAP:x} 64 {lines}"
        _, warm = counted([f"{once} 1", "p", f"{once} 2", "p"], core.words())
        seen[kib] = warm["load_wait"] / warm["loads"] + core.l1d.latency
    for kib, latency in seen.items():
        fitting = [level.latency for level in levels if kib <= level.kib]
        # Walks bring a few lines of page tables, which take a line of the data's here and there.
        assert latency == pytest.approx(fitting[0] if fitting else core.memory_latency, rel=0.02), (kib, latency)


class Lru:
    """An independent cache: an ordered dictionary for each set."""

    def __init__(self, blocks: int, ways: int) -> None:
        self.ways, self.sets = ways, [OrderedDict[object, None]() for _ in range(blocks // ways)]

    def use(self, index: int, key: object) -> bool:
        lines = self.sets[index % len(self.sets)]
        found = key in lines
        lines[key] = None
        lines.move_to_end(key)
        if len(lines) > self.ways:
            lines.popitem(last=False)
        return found


def by_hand(trace: list[tuple[str, int, int]]) -> dict[str, int]:
    """What the small core with a last level counts, in plain Python."""
    l1i, l1d, l2, llc = Lru(4, 2), Lru(4, 2), Lru(16, 4), Lru(66, 11)
    itlb, dtlb, stlb = Lru(4, 4), Lru(4, 4), Lru(16, 4)
    names = ("l1i_misses", "l1d_misses", "l2_misses", "llc_misses", "itlb_misses", "dtlb_misses", "walks")
    count = dict.fromkeys((*names, "load_wait", "fetch_wait", "tlb_wait"), 0)

    def below(line: int) -> int:
        if l2.use(line, line):
            return 14 - 4
        count["l2_misses"] += 1
        if llc.use(line, line):
            return 55 - 4
        count["llc_misses"] += 1
        return 200 - 4

    for kind, address, physical in trace:
        page, wait = address >> 12, 0
        tlb, name = (itlb, "itlb_misses") if kind == "f" else (dtlb, "dtlb_misses")
        if not tlb.use(page, page):
            count[name] += 1
            wait = 9
            if not stlb.use(page, page):
                count["walks"] += 1
                wait += 4 + below(((1 << 61) | page << 3) >> 6)
        count["tlb_wait"] += wait if kind != "s" else 0
        cache, name = (l1i, "l1i_misses") if kind == "f" else (l1d, "l1d_misses")
        if not cache.use(address >> 6, address >> 6):
            count[name] += 1
            wait = below(physical >> 6)
            if kind != "s":
                count["load_wait" if kind == "l" else "fetch_wait"] += wait
    return count


@pytest.mark.parametrize("seed", range(5))
def test_a_random_trace_counts_what_another_model_counts(seed: int) -> None:
    draw = random.Random(seed)
    trace = []
    for _ in range(20_000):
        address = draw.randrange(1 << draw.choice((8, 10, 12, 14, 17)))
        trace.append((draw.choice("llsf"), address, address ^ (draw.randrange(4) << 20)))
    commands = [f"{kind} {address:x} {physical:x}" for kind, address, physical in trace]
    found = counted([*commands, "p"], llc="4224:11:55")[0]
    wanted = by_hand(trace)
    assert {name: found[name] for name in wanted} == wanted
    assert found["loads"] == sum(kind == "l" for kind, *_ in trace)


def test_a_wrong_parameter_is_refused() -> None:
    words = [f"{key}={value}" for key, value in SMALL.items()]
    assert run(words, []).returncode == 0
    sizes = ("l2=1024:3:14", "l2=1000:3:14", "directions=1000:8", "returns=65")
    for wrong in (*sizes, "memory=3", "memory=x", "l1d=256:2", "nothing=1"):
        assert run([*words, wrong], []).returncode == 2, wrong
