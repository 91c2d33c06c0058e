# SPDX-License-Identifier: GPL-2.0-or-later
"""The steps of a measurement. A metric names those that it needs; one that several need is taken once."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum

from fwlab.metrics.measurement_spec import MeasurementSpec
from fwlab.metrics.nodes import MeasuringSession
from fwlab.model.results import Measured

#: The most packets that are played at a light load.
LIGHT_PACKETS = 8192


class Phase(IntEnum):
    """The order of steps."""

    STATES = 10  # first: other metrics are then measured with these states, not while they are created
    BEFORE_FLOOD = 20
    FLOOD = 30
    FUNCTIONS = 35  # of the trials
    PROFILE = 40
    AFTER_FLOOD = 50
    SURVIVAL = 60
    LIGHT_LOAD = 70
    FLAT_OUT = 71
    SEARCH = 72
    LOSS_CURVE = 73
    LATENCY = 74
    STATES_IN_FLOOD = 80  # empties the table
    LAST = 90
    WITHOUT_RULESET = 95  # takes the ruleset away

    @property
    def most_packets(self) -> int | None:
        """The most packets that a step of this phase plays; None if there is no limit."""
        return LIGHT_PACKETS if self in (Phase.BEFORE_FLOOD, Phase.AFTER_FLOOD) else None


@dataclass(frozen=True)
class Step:
    """One thing to do on the nodes.

    run      is given the session, the specification and the result so far, and returns that plus what it found
    despite_problems  take this step although an earlier one found a problem
    """

    phase: Phase
    run: Callable[[MeasuringSession, MeasurementSpec, Measured], Measured]
    despite_problems: bool = True
