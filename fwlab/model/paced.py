# SPDX-License-Identifier: GPL-2.0-or-later
"""What became of a load that the DUT's own clock has paced: counts at the DUT's NICs, by traffic class."""

from pydantic import Field

from fwlab.model.declared import Frozen
from fwlab.model.trial import Trial


class PacedTrial(Frozen):
    """One part of a play: frames that passed the DUT's NICs in this time.

    duration_s  seconds of the DUT's clock
    offered     frames of the traffic that reached its first NIC, by traffic class; `other` belong to none
    forwarded   frames that it sent by its last NIC
    returned    frames that it sent by its first NIC
    """

    duration_s: float = Field(gt=0)
    offered: dict[str, int]
    forwarded: dict[str, int]
    returned: dict[str, int] = {}

    def left(self, traffic_class: str) -> int:
        """Frames of the class that left the DUT, by either NIC."""
        return self.forwarded.get(traffic_class, 0) + self.returned.get(traffic_class, 0)

    def survived(self, traffic_class: str) -> float | None:
        """Share of the class that left the DUT, by either NIC; None if none of it was offered."""
        offered = self.offered.get(traffic_class, 0)
        return self.left(traffic_class) / offered if offered else None


class PacedPlay(Frozen):
    """One play at a constant load, and its account: every frame was offered, and left the DUT or did not.

    load       packets per second of the DUT's clock
    tick_s     the frames of one tick reached the DUT together
    offered    frames that were to reach the DUT's first NIC
    received   frames that did
    forwarded, returned  frames that left by its last and its first NIC, by class, until it had processed all it took
    errors     ICMP "fragmentation needed" that left by the first NIC, by the class of the frame that they are about
    foreign    frames that left and are not the traffic's as routing leaves them, by what is wrong with them
    taken      frames that it took from its receive ring; the ring had no room for the rest
    trials     one after the other, within the play
    watched    what the DUT itself saw of the play; None if it did not look
    transit_s  from the first NIC to the last, by the DUT's clock: for frames of all trials, in equal steps from the
               shortest to the longest time; empty unless they were asked for
    problems   why the load was not as it should have been
    suspects   those of the problems that a ruleset may cause; they are not kept
    """

    load: float = Field(gt=0)
    tick_s: float = Field(gt=0)
    offered: int = Field(ge=0)
    received: int = Field(ge=0)
    forwarded: dict[str, int]
    returned: dict[str, int]
    errors: dict[str, int] = {}
    foreign: dict[str, int] = {}
    taken: int | None = None
    trials: list[PacedTrial]
    watched: Trial | None = None
    transit_s: list[float] = []
    problems: list[str] = []
    suspects: list[str] = Field(default=[], exclude=True)
