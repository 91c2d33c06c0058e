# SPDX-License-Identifier: GPL-2.0-or-later
"""One thing to measure, and the nodes to measure it on: what the methods beside this file are given."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field

from fwlab.dut.protocol import Dut
from fwlab.generator.protocol import Engine, TcpEndpoints
from fwlab.generator.sink import Sink
from fwlab.generator.traffic_store import TrafficStore
from fwlab.model.case import Trials
from fwlab.model.declared_traffic import Connections, TrafficClass
from fwlab.model.ruleset import RulesetFile


@dataclass(frozen=True)
class Task:
    """What to measure: a case, or an exercise with one ruleset.

    each     the ruleset is loaded by one command for each rule
    trial    how many trials, and how long each is at least
    tracked  the traffic class that survival is about; `offered` the load, in multiples of the baseline's capacity
    baseline the case that this capacity is taken from; it is measured before, in the same session
    fill     packets to play before the DUT's states are counted
    sampled  whether the DUT is sampled under load, function by function
    fresh    whether the ruleset is loaded anew before each attempt at trials
    load_dependent  whether it may do something else to a packet before the flood than after it
    """

    id: str
    title: str
    ruleset: str
    files: list[RulesetFile]
    metrics: list[str]
    traffic: str | None = None
    parameters: dict[str, int | float | str] = field(default_factory=dict)
    each: bool = False
    trial: Trials = field(default_factory=Trials)
    tracked: str | None = None
    offered: float | None = None
    baseline: str | None = None
    fill: int | None = None
    sampled: bool = False
    fresh: bool = False
    load_dependent: bool = False

    def wants(self, *metrics: str) -> bool:
        return not set(metrics).isdisjoint(self.metrics)


@dataclass(frozen=True)
class Nodes:
    """The three nodes of one session.

    `slowed(step)` slows the DUT while the generator plays, by one of `steps` steps; `slowed(step, loop=True)` as a
    closed loop of answers needs it. On the host's clock there is one step, which does nothing. `restored()` puts the
    DUT back into its saved state; False where it cannot. `ring` is how many packets the DUT's receive ring holds.
    `tcp(connections)` sets generator and sink up for TCP connections while it is open.
    """

    dut: Dut
    engine: Engine
    sink: Sink
    tables: TrafficStore
    classes: dict[str, TrafficClass]
    slowed: Callable[..., contextlib.AbstractContextManager]
    steps: int
    ring: int = 1024
    tcp: Callable[[Connections], contextlib.AbstractContextManager[TcpEndpoints]] | None = None
    restored: Callable[[], bool] = lambda: False
