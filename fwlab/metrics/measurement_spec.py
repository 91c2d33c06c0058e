# SPDX-License-Identifier: GPL-2.0-or-later
"""The specification of one measurement: a case, or an exercise with one ruleset."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from fwlab.model.case import Trials
from fwlab.model.results import Measured
from fwlab.model.ruleset import RulesetFile

T = TypeVar("T")


def never(_measured: Measured) -> bool:
    """Measure all that is asked for."""
    return False


@dataclass(frozen=True)
class MeasurementSpec:
    """What to measure, with which ruleset and which traffic.

    metrics  names of metrics; the first is the main one
    each     load the ruleset by one command per rule
    trial    how many trials, and how long each is at least
    victim_class  the traffic class that survival is about
    offered  for survival: the load, as a multiple of the baseline's capacity
    baseline the case whose capacity that is; it is measured earlier in the same session
    state_packets  packets to play before the DUT's states are counted
    sampled  also sample the DUT under load, function by function
    fresh    load the ruleset again before each attempt at trials
    beside   a case to measure in turns with this one where the DUT's clock is the host's
    cpus     CPUs that the DUT must have
    nic      model of NIC that it must have beside the usual one
    accounted  of an exercise: what the DUT sends in the flood is recorded where QEMU sees each frame, connections are
             counted in a flood as well, and the ruleset must let new logins in
    remarks  what to say of the ruleset beside the verdict
    load_dependent  the ruleset may treat a packet differently before the flood and after it
    decided  asked before each step: whether what was measured so far is enough
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
    victim_class: str | None = None
    offered: float | None = None
    baseline: str | None = None
    state_packets: int | None = None
    sampled: bool = False
    fresh: bool = False
    cpus: int = 1
    nic: str | None = None
    accounted: bool = False
    load_dependent: bool = False
    remarks: list[str] = field(default_factory=list)
    beside: "MeasurementSpec | None" = None
    decided: Callable[[Measured], bool] = never

    def asks_for(self, *metrics: str) -> bool:
        """Whether any of these metrics is to be measured."""
        return not set(metrics).isdisjoint(self.metrics)

    @property
    def traffic_name(self) -> str:
        """The traffic's name. Raises ValueError if the specification has none, which loading a lab rules out."""
        return given(self.traffic, "traffic")


def given(value: T | None, name: str) -> T:
    """A value that loading a lab has checked to be there. Raises ValueError otherwise."""
    if value is None:
        raise ValueError(f"the specification lacks {name}")
    return value
