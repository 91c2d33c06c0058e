# SPDX-License-Identifier: GPL-2.0-or-later
"""The model's branch prediction, its decoding of branches, and what locks cost."""

import random

import pytest

from tests.fakes.model_program import SMALL, counted, needs_compiler, run

pytestmark = needs_compiler

OTHER, CONDITIONAL, JUMP, CALL, INDIRECT_JUMP, INDIRECT_CALL, RETURN, RETPOLINE = range(8)
LOOP, AFTER, TARGET = 0x1000, 0x1002, 0x900


def ended(kind: int, branch: int, after: int, target: int, following: int) -> str:
    return f"e {kind} {branch:x} {after:x} {target:x} {following:x}"


def conditional(*taken: bool) -> list[str]:
    return [ended(CONDITIONAL, LOOP, AFTER, TARGET, TARGET if one else AFTER) for one in taken]


def test_a_loop_is_predictable() -> None:
    """Sixteen turns and out, a thousand times: longer than the history, so the way out is missed each time."""
    found = counted([*conditional(*([True] * 15 + [False]) * 1000), "p"])[0]
    assert found["conditional"] == 16_000
    assert 1000 <= found["direction_misses"] <= 1020
    assert found["branch_wait"] == 16 * found["direction_misses"]
    short = counted([*conditional(*([True] * 4 + [False]) * 1000), "p"])[0]
    assert short["direction_misses"] < 40, "the history shows where the loop ends"


def test_a_random_branch_is_not() -> None:
    draw = random.Random(1)
    found = counted([*conditional(*(draw.random() < 0.5 for _ in range(20_000))), "p"])[0]
    assert found["direction_misses"] == pytest.approx(10_000, rel=0.05)


def test_an_interrupt_tells_nothing_about_a_branch() -> None:
    found = counted([ended(CONDITIONAL, LOOP, AFTER, TARGET, 0x7000), "p"])[0]
    assert found["conditional"] == found["direction_misses"] == 0


def calls(depth: int) -> list[str]:
    """So many nested calls, and their returns."""
    down = [ended(CALL, 0x1000 * n, 0x1000 * n + 5, 0x1000 * (n + 1), 0x1000 * (n + 1)) for n in range(1, depth + 1)]
    up = [ended(RETURN, 0x1000 * n + 0x80, 0x1000 * n + 0x81, 0, 0x1000 * n + 5) for n in range(depth, 0, -1)]
    return down + up


@pytest.mark.parametrize(("depth", "missed"), [(1, 0), (8, 0), (9, 1), (20, 12)])
def test_returns_are_predicted_as_deep_as_the_stack(depth: int, missed: int) -> None:
    found = counted([*calls(depth), "p"])[0]
    assert (found["returns"], found["return_misses"]) == (depth, missed)


@pytest.mark.parametrize("targets", [1, 2, 4, 8, 16, 32, 64])
@pytest.mark.parametrize("history", [0, 2, 4, 8])
def test_an_indirect_call_is_predicted_if_its_target_repeats_or_the_path_tells(targets: int, history: int) -> None:
    """Targets in turns. By its address alone a branch has one target; the last targets tell the next."""
    around = [ended(INDIRECT_CALL, LOOP, AFTER, 0, 0x5000 + 0x140 * (n % targets)) for n in range(64 * 50)]
    found = counted([*around, "p", *around, "p"], targets=f"4096:{history}")[1]
    share = found["target_misses"] / found["indirect"]
    assert share <= 0.05 if targets == 1 or history else share == 1.0


def test_random_targets_are_missed() -> None:
    draw = random.Random(2)
    around = [ended(INDIRECT_CALL, LOOP, AFTER, 0, 0x5000 + 0x140 * draw.randrange(64)) for _ in range(5000)]
    found = counted([*around, "p"], targets="4096:2")[0]
    assert found["target_misses"] / found["indirect"] > 0.9


def retpoline(caller: int, target: int) -> list[str]:
    """A call of the thunk, its own call, and the return that goes to the target; then the function's return."""
    return [
        ended(CALL, caller, caller + 5, 0x9000, 0x9000),
        ended(CALL, 0x9000, 0x9005, 0x900A, 0x900A),
        ended(RETPOLINE, 0x900E, 0x900F, 0, target),
        ended(RETURN, target + 0x10, target + 0x11, 0, caller + 5),
    ]


def test_a_retpoline_is_mispredicted_or_priced_as_the_call_that_it_replaces() -> None:
    twice = [*retpoline(0x1000, 0x5000), *retpoline(0x2040, 0x6000)]
    price = counted([*twice, *twice, "p"])[0]
    assert (price["retpolines"], price["target_misses"], price["return_misses"]) == (4, 4, 0)
    # By the place of the call: two calls through one thunk have a target each.
    predicted = counted([*twice, "p", *twice, "p"], retpolines_predicted="1")[1]
    assert (predicted["retpolines"], predicted["target_misses"], predicted["return_misses"]) == (2, 0, 0)


def test_blocks_count_instructions_and_locks() -> None:
    found = counted(["b 10 0", "b 7 2", "p"])[0]
    assert (found["instructions"], found["locked"], found["locked_wait"]) == (17, 2, 2 * 15)


#: Bytes of an instruction at 0x1000: kind, target, locked, writes the stack's top.
INSTRUCTIONS = {
    "7405": (CONDITIONAL, 0x1007, 0, 0),
    "75fe": (CONDITIONAL, 0x1000, 0, 0),
    "2e7405": (CONDITIONAL, 0x1008, 0, 0),
    "0f8400010000": (CONDITIONAL, 0x1106, 0, 0),
    "e2f0": (CONDITIONAL, 0xFF2, 0, 0),
    "eb10": (JUMP, 0x1012, 0, 0),
    "e9fbffffff": (JUMP, 0x1000, 0, 0),
    "e800000000": (CALL, 0x1005, 0, 0),
    "ffd0": (INDIRECT_CALL, 0, 0, 0),
    "41ffd3": (INDIRECT_CALL, 0, 0, 0),
    "ff1425d0a0a000": (INDIRECT_CALL, 0, 0, 0),
    "ffe0": (INDIRECT_JUMP, 0, 0, 0),
    "3effe0": (INDIRECT_JUMP, 0, 0, 0),
    "ff24c5d0a0a000": (INDIRECT_JUMP, 0, 0, 0),
    "fff0": (OTHER, 0, 0, 0),  # push
    "ff00": (OTHER, 0, 0, 0),  # inc
    "c3": (RETURN, 0, 0, 0),
    "c20800": (RETURN, 0, 0, 0),
    "f3c3": (RETURN, 0, 0, 0),
    "cf": (OTHER, 0, 0, 0),  # iret: far
    "0f05": (OTHER, 0, 0, 0),  # syscall: far
    "f0ff07": (OTHER, 0, 1, 0),  # lock incl (%rdi)
    "f0480fc107": (OTHER, 0, 1, 0),  # lock xadd
    "8707": (OTHER, 0, 1, 0),  # xchg with memory
    "87c7": (OTHER, 0, 0, 0),  # xchg of registers
    "48890424": (OTHER, 0, 0, 1),
    "4c891c24": (OTHER, 0, 0, 1),
    "4889442408": (OTHER, 0, 0, 0),
    "0f1f840000000000": (OTHER, 0, 0, 0),
}


def decoded(*instructions: str) -> list[list[int]]:
    words = [f"{key}={value}" for key, value in SMALL.items()]
    done = run(words, [f"d 1000 {one}" for one in instructions])
    assert done.returncode == 0, done.stderr
    return [[int(part, 16) for part in line.split()] for line in done.stdout.splitlines()]


def test_branches_are_recognised() -> None:
    assert [tuple(found[:4]) for found in decoded(*INSTRUCTIONS)] == list(INSTRUCTIONS.values())


def test_only_marks_are_marks() -> None:
    found = decoded("0f1f840001464d4d", "0f1f84000146574d", "0f1f84000246574d", "0f1f84000346574d", "90")
    assert [one[4] for one in found] == [0, 0x4D574601, 0x4D574602, 0, 0]
