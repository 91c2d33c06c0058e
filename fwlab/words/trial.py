# SPDX-License-Identifier: GPL-2.0-or-later
"""One trial: one load, one duration, counts. Ratios and rates are derived, never stored."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class Trial(BaseModel):
    """Counts of one trial (RFC 2544, section 23; here under overload: RFC 2285, FRMOL).

    duration_s     length, in seconds of the DUT's clock
    busy_s         of these, how long the DUT's CPU was not idle
    processed      packets that the DUT took from its receive ring, forwarded or filtered
    forwarded      packets that it sent on
    intended_load  packets per second asked of the generator; None is flat out
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    duration_s: float = Field(ge=0)
    busy_s: float = Field(ge=0)
    processed: int = Field(ge=0)
    forwarded: int = Field(default=0, ge=0)
    intended_load: float | None = None

    @property
    def busy_share(self) -> float:
        return self.busy_s / self.duration_s if self.duration_s else 0.0


class Delivery(BaseModel):
    """What became of a counted number of packets at a load that the DUT can carry.

    sent      packets that left the generator
    offered   of these, how many belong to each traffic class (from the frame table)
    arrived   packets that reached the sink, by traffic class
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    intended_load: float
    sent: int
    offered: dict[str, int]
    arrived: dict[str, int]

    def delivered(self, traffic_class: str) -> float | None:
        """Share of the class that arrived; None where none of it was offered."""
        offered = self.offered.get(traffic_class, 0)
        return self.arrived.get(traffic_class, 0) / offered if offered else None
