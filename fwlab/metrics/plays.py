# SPDX-License-Identifier: GPL-2.0-or-later
"""Play packets at a load, by the host's clock or the DUT's own, and see them through the DUT."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from fwlab.dut.protocol import Drained
from fwlab.generator.pacing.paced_load import Load, Sent
from fwlab.generator.protocol import traffic_guard
from fwlab.metrics.measurement import Nodes, link_counters, require
from fwlab.model.errors import CannotMeasure, Hindered
from fwlab.model.trial import PacedPlay, Trial

#: The DUT may send a few packets of its own (neighbour and group discovery), which the sink does not count.
STRAY = 2
#: If the flood did not show what the DUT carries, it is watched for at least this long (s) and this many packets,
#: which are counted in bursts of 64. Watching begins with the first packet: a busy host may take seconds to start the
#: engine.
RATE_S, RATE_PACKETS = 0.8, 256
#: Counters are polled this often, and for this long (s).
LOOK_S, PATIENCE_S = 0.05, 20.0
#: The last packets arrive within this time (s).
SETTLED_S = 0.5
#: Maximum number of plays until one had the load that it should have had.
TRIES = 2


@dataclass(frozen=True)
class Passage:
    """Packets that were sent, that the DUT took in on its first link, and that it sent on by its last.

    duration_s  how long the generator took to send them
    before      both of the DUT's counters when the first packet was sent
    """

    sent: int
    taken: int
    sent_on: int
    limited: str | None
    duration_s: float = 0.0
    before: tuple[int, int] = (0, 0)

    @property
    def lost_before(self) -> int:
        """Packets lost between generator and DUT."""
        return max(0, self.sent - self.taken)

    def unsent(self, count: int) -> list[str]:
        """That the generator did not send all of `count` packets; empty if it did."""
        return [f"the generator sent {self.sent} of {count} packets"] if self.sent < count else []

    def losses(self, what: str = "packets were lost on their way to the DUT") -> list[str]:
        """How many packets were lost before the DUT; empty if none was."""
        return [f"{self.lost_before} of {self.sent} {what}"] if self.lost_before else []


def nothing() -> None:
    """Count nothing more."""


def play(nodes: Nodes, traffic: str, load: float, count: int, *, then: Callable[[], object] = nothing) -> Passage:
    """Play `count` packets from the beginning of the traffic, and see them through the DUT.

    load  packets per second, of the DUT's clock where that counts instructions
    then  counts on the DUT what may time out there, as soon as the DUT has processed what it took. Its clock goes on
          while the play is ended, which a busy host may take long for.

    Raises CannotMeasure if a load in the DUT's own time was not as it should have been.
    """
    if nodes.pacing is not None:
        return _play_paced(nodes, traffic, load, count, then)[0]
    before = link_counters(nodes)
    played = nodes.engine.start(load=load, count=count).wait(timeout=count / load * 4 + 60)
    taken, sent_on = _settled(nodes, before, played.sent)
    then()
    return Passage(played.sent, taken, sent_on, played.limited, played.duration_s, before)


def play_recorded(
    nodes: Nodes, traffic: str, load: float, count: int, *, then: Callable[[], object] = nothing
) -> tuple[Passage, Sent]:
    """The same, and what the DUT sent meanwhile."""
    if nodes.pacing is not None:
        return _play_paced(nodes, traffic, load, count, then)
    nodes.dut.drain()  # what an earlier load left in the ring would be counted
    with require(nodes.recording, "recording")(nodes.store, traffic) as sent:
        passage = play(nodes, traffic, load, count, then=then)
        return passage, sent()


def _play_paced(
    nodes: Nodes, traffic: str, load: float, count: int, then: Callable[[], object]
) -> tuple[Passage, Sent]:
    paced = play_paced(nodes, traffic, Load.of_count(count, load), then=then)
    if paced.problems:
        raise failed(paced)
    sent_on = sum(paced.forwarded.values())
    passage = Passage(paced.offered, require(paced.taken, "taken"), sent_on, None, paced.trials[0].duration_s)
    return passage, Sent(paced.forwarded, paced.returned, paced.errors, paced.foreign)


def _settled(nodes: Nodes, before: tuple[int, int], sent: int) -> tuple[int, int]:
    """Packets taken in and sent on since `before`, once all that were sent are through, or no more can be expected.

    What was taken in has been sent on or dropped by the next look: the DUT serves both in one go.
    """
    deadline = time.monotonic() + SETTLED_S
    earlier = None
    while True:
        taken, sent_on = (after - then for after, then in zip(link_counters(nodes), before, strict=True))
        if time.monotonic() > deadline or (taken >= sent and taken == earlier):
            return taken, sent_on
        if taken < sent:
            time.sleep(LOOK_S)
        earlier = taken


def real_rate(nodes: Nodes, seconds: float = RATE_S) -> float:
    """Packets per real second that the DUT processes flat out and not slowed, measured over at least `seconds`."""
    with traffic_guard(nodes.engine.start()) as playing:
        before, began = once_taken(nodes, STRAY, link_counters(nodes)[0])
        time.sleep(seconds)
        after, ended = once_taken(nodes, RATE_PACKETS, before)
        playing.stop()
    if after == before:
        raise CannotMeasure("no packet reached the DUT", "fwlab doctor")
    return (after - before) / (ended - began)


def once_taken(nodes: Nodes, count: int, since: int) -> tuple[int, float]:
    """Wait until the DUT has taken in more than `count` packets since it had `since`: how many then, and when."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        taken, now = link_counters(nodes)[0], time.monotonic()
        if taken > since + count or now > deadline:
            return taken, now
        time.sleep(LOOK_S)


def play_paced(
    nodes: Nodes, traffic: str, load: Load, *, watch_s: float = 0.0, then: Callable[[], object] = nothing
) -> PacedPlay:
    """Play this traffic, which the engine need not have, at this load. `then` as in `play`.

    watch_s  how long the DUT itself counts, from when the load has settled (s of its clock)

    Raises CannotMeasure. A play whose load was not as it should have been has problems.
    """
    if nodes.pacing is None:
        raise CannotMeasure(
            "a load in the DUT's own time needs the virtual testbed, socket links and a DUT that runs Linux",
            "unset FWLAB_LINK and FWLAB_DUT; vagrant destroy -f LAB; vagrant up LAB",
        )
    seen: list[Trial] = []
    after: list[Drained] = []

    def done() -> None:
        """Wait until the DUT has processed what it took, and keep its counts; first its own trial, if it counts."""
        if watch_s:
            seen.extend(nodes.dut.collect(timeout=600).valid)
        after.append(nodes.dut.drain())
        then()

    for _ in range(TRIES):
        before = nodes.dut.drain()  # what an earlier play left in the ring would be counted
        seen.clear()
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
            play = nodes.pacing.play(nodes.store, traffic, load, until_done=done)
        taken = link_counters(nodes, after[-1].counters)[0] - link_counters(nodes, before.counters)[0]
        dropped = after[-1].queue_drops - before.queue_drops
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
