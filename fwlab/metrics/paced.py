# SPDX-License-Identifier: GPL-2.0-or-later
"""A play at an exact load of the DUT's own time, as a step of a measurement."""

from collections.abc import Callable

from fwlab.dut.protocol import Drained
from fwlab.generator.pacing.paced_load import Load
from fwlab.metrics.nodes import Nodes, through
from fwlab.model.errors import CannotMeasure, Hindered
from fwlab.model.trial import PacedPlay, Trial

#: A play whose load was not as it should have been is repeated so often.
TRIES = 2


def play_paced(nodes: Nodes, traffic: str, load: Load, *, watch_s: float = 0.0) -> PacedPlay:
    """Play this traffic, which the engine need not have, at this load.

    watch_s  for so long the DUT itself counts, from when the load has settled (s of its clock)

    Raises CannotMeasure. A play whose load was not as it should have been has problems.
    """
    if nodes.pacing is None:
        raise CannotMeasure(
            "a load in the DUT's own time needs the virtual testbed, socket links and a DUT that runs Linux",
            "unset FWLAB_LINK and FWLAB_DUT; vagrant destroy -f LAB; vagrant up LAB",
        )
    for _ in range(TRIES):
        before = nodes.dut.drain()  # what an earlier play left in the ring would be counted
        seen: list[Trial] = []
        after: list[Drained] = []
        with nodes.dut.never_idle():
            if watch_s:
                nodes.dut.arm(
                    windows=1,
                    window_s=watch_s,
                    packets=1,
                    idle_share=1.0,
                    other_share=1.0,
                    max_unsaturated=0,
                    settle_s=load.settle_s,
                )
            done = _looking(nodes, seen if watch_s else None, after)
            play = nodes.pacing.play(nodes.store, traffic, load, until_done=done)
        counts = zip(_counted(nodes, after[-1]), _counted(nodes, before), strict=True)
        taken, dropped = (now - then for now, then in counts)
        # QEMU 7.2 leaves out memory barriers, so a NIC can miss that there is something to send.
        stalled = [f"the DUT's NIC stalled: {dropped} packets found no room in its queue"] if dropped > 0 else []
        faults = {"problems": [*play.problems, *stalled], "suspects": [*play.suspects, *stalled]}
        play = play.model_copy(update={"taken": taken, "watched": seen[0] if seen else None, **faults})
        if not play.problems:
            break
    return play


def failed(play: PacedPlay) -> CannotMeasure:
    """The error for a play whose load was not as it should have been."""
    kind = Hindered if play.problems == play.suspects else CannotMeasure
    return kind("; ".join(play.problems), "fwlab doctor")


def _counted(nodes: Nodes, drained: Drained) -> tuple[int, int]:
    """Packets that the DUT took in, and that its queues dropped, since it booted."""
    return through(nodes, drained.counters)[0], drained.queue_drops


def _looking(nodes: Nodes, seen: list[Trial] | None, after: list[Drained]) -> Callable[[], None]:
    """What waits until the DUT has processed what it took, and keeps its counts; first its own trial, if `seen`."""

    def done() -> None:
        if seen is not None:
            seen.extend(nodes.dut.collect(timeout=600).valid)
        after.append(nodes.dut.drain())

    return done
