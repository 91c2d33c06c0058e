# SPDX-License-Identifier: GPL-2.0-or-later
"""One measurement: what to measure (a case, or an exercise with one ruleset), the nodes, and its steps.

A metric names the steps that it needs; one that several need is taken once.
"""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Protocol, TypeVar

from fwlab.dut.protocol import Dut
from fwlab.generator.echo import Echoes
from fwlab.generator.pacing.paced_load import PacedLoad, Recorder
from fwlab.generator.protocol import Engine, TcpEndpoints
from fwlab.generator.sink import BothEnds, returning
from fwlab.generator.traffic_store import TrafficStore
from fwlab.metrics.saturation import Saturation
from fwlab.model.case import Trials
from fwlab.model.declared_traffic import Connections, TrafficClass
from fwlab.model.events import EventSink
from fwlab.model.metric import Metric, TrafficKind
from fwlab.model.results import Clock, Measured
from fwlab.model.ruleset import RulesetFile
from fwlab.own.bench_client import Start

T = TypeVar("T")


@dataclass(frozen=True)
class MeasurementSpec:
    """What to measure, with which ruleset and which traffic.

    metrics  names of metrics; the first is the main one
    each     load the ruleset by one command per rule
    trial    how many trials, and how long each is at least
    victim_class  the traffic class that survival is about
    total_load  for survival: as a multiple of the baseline's capacity
    baseline the case whose capacity that is; it is measured earlier in the same session
    state_packets  packets to play before the DUT's states are counted
    sampled  also sample the DUT under load, function by function
    reload_each_attempt  load the ruleset again before each attempt at trials
    interleaved  the paired baseline: a case whose trials alternate with this one's where the DUT's clock is the host's
    cpus     CPUs that the DUT must have
    nic      model of NIC that it must have in addition to the usual one
    accounted  of an exercise: what the DUT sends in the flood is recorded where QEMU sees each frame, connections are
             counted in a flood as well, and the ruleset must let new logins in
    apart    the ruleset is loaded in a network namespace of its own, and nothing of it is the DUT's
    compared_with  of a ruleset apart: the rules that it is compared with, those of the exercise's start
    remarks  what to say of the ruleset in addition to the verdict
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
    total_load: float | None = None
    baseline: str | None = None
    state_packets: int | None = None
    sampled: bool = False
    reload_each_attempt: bool = False
    cpus: int = 1
    nic: str | None = None
    accounted: bool = False
    load_dependent: bool = False
    apart: bool = False
    compared_with: list[RulesetFile] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    interleaved: "MeasurementSpec | None" = None
    decided: Callable[[Measured], bool] = lambda _so_far: False

    def asks_for(self, metric: str) -> bool:
        """Whether this metric is to be measured."""
        return metric in self.metrics

    @property
    def on_dut(self) -> list[RulesetFile]:
        """The files that the DUT itself loads."""
        return [] if self.apart else self.files

    @property
    def traffic_name(self) -> str:
        """The traffic's name. Raises ValueError if the specification has none, which loading a lab rules out."""
        return require(self.traffic, "traffic")


def require(value: T | None, name: str) -> T:
    """A value that loading a lab has checked to be there. Raises ValueError otherwise."""
    if value is None:
        raise ValueError(f"the specification lacks {name}")
    return value


def _absent(*_: object) -> Any:
    raise ValueError("these nodes have neither TCP endpoints nor probes")


@dataclass(frozen=True)
class Nodes:
    """The three nodes of one session.

    throttle  `throttle(level)` slows the DUT while it is open; `throttle(level, loop=True)` is for a closed loop of
              requests and answers
    levels    number of throttle levels; 1, which does nothing, on the host's clock
    ring      packets that the DUT's receive ring holds
    tcp       `tcp(connections)` sets up generator and sink as TCP endpoints while it is open
    restore   puts the DUT back into its saved state; False if it cannot
    clock     what the DUT's clock counts
    emit      receives events about the progress of a long measurement
    echo      `echo(count, interval_s)` sends `count` probes from the generator through the DUT to the sink and back
    ns_per_instruction  nanoseconds of the DUT's clock for each instruction; 1 where that clock is the host's
    pacing    plays at exact loads in the DUT's own time; None where that cannot be
    bench     makes network namespaces on the DUT, each with rules of its own
    recording  `recording(store, traffic)` counts what the DUT sends while it is open, by each frame that passes its
              NICs; None where QEMU does not see them, so that sink and generator count
    """

    dut: Dut
    engine: Engine
    sink: BothEnds
    store: TrafficStore
    classes: dict[str, TrafficClass]
    throttle: Callable[..., contextlib.AbstractContextManager[object]]
    levels: int
    ring: int = 1024
    tcp: Callable[[Connections], contextlib.AbstractContextManager[TcpEndpoints]] = _absent
    restore: Callable[[], bool] = lambda: False
    clock: Clock = "instructions"
    emit: EventSink = lambda _event: None
    echo: Callable[[int, float], Echoes] = _absent
    ns_per_instruction: int = 1
    pacing: PacedLoad | None = None
    recording: Recorder | None = None
    bench: Callable[[], Start] = _absent


def link_counters(nodes: Nodes, counters: dict[str, int] | None = None) -> tuple[int, int]:
    """Packets that the DUT received on its first link and sent on its last, since it booted; `counters`: by then.

    Where classes are counted at the generator, what it sent back by its first link counts as sent on, too.
    """
    counters = counters or nodes.dut.counters()
    received = next(name for name in counters if name.endswith(".rx_packets"))
    sent = [counters[name] for name in counters if name.endswith(".tx_packets")]
    return counters[received], sum(sent) if returning(nodes.classes) else sent[-1]


class MeasuringSession:
    """The nodes, the throttle levels that the last measurement needed, and all earlier results."""

    def __init__(self, nodes: Nodes) -> None:
        self.nodes = nodes
        self._saturation: dict[str, Saturation] = {}
        self._results: dict[str, Measured] = {}

    def saturation(self, kind: str) -> Saturation:
        """The search for a throttle level, one for each kind of load: a flood needs other levels than a closed loop."""
        return self._saturation.setdefault(kind, Saturation(self.nodes.levels))

    def result(self, spec_id: str | None) -> Measured | None:
        """The last result of this specification in this session."""
        return self._results.get(spec_id or "")

    def keep(self, measured: Measured) -> None:
        """Keep a result for later measurements that refer to it."""
        self._results[measured.id] = measured


#: The most packets that are played at a light load.
LIGHT_PACKETS = 8192


class Phase(IntEnum):
    """When a step is taken: steps run in ascending order of these numbers."""

    STATES = 10  # first: other metrics are then measured with these states, not while they are created
    BEFORE_FLOOD = 20
    FLOOD = 30
    FUNCTIONS = 35  # what a model of the core counted in the trials, by function of the kernel
    PROFILE = 40
    AFTER_FLOOD = 50
    COMPARING = 55
    PRICING = 56
    SURVIVAL = 60
    LIGHT_LOAD = 70
    FLAT_OUT = 71
    SEARCH = 72
    LOSS_CURVE = 73
    LATENCY = 74
    STATES_IN_FLOOD = 80  # empties the table
    TRACKED = 85  # and so does this
    LAST = 90
    UPDATE = 92  # loads the ruleset again, without its update and with it
    WITHOUT_RULESET = 95  # removes the ruleset

    @property
    def max_packets(self) -> int | None:
        """The most packets that a step of this phase plays; None if there is no limit."""
        return LIGHT_PACKETS if self in (Phase.BEFORE_FLOOD, Phase.AFTER_FLOOD, Phase.TRACKED, Phase.UPDATE) else None


@dataclass(frozen=True)
class Step:
    """One thing to do on the nodes.

    run      is given the session, the specification and the result so far, and returns that plus what it found
    despite_problems  take this step although an earlier one found a problem
    """

    phase: Phase
    run: Callable[[MeasuringSession, MeasurementSpec, Measured], Measured]
    despite_problems: bool = True


CONNECTIONS: frozenset[TrafficKind] = frozenset({"connections"})
ANY_TRAFFIC: frozenset[TrafficKind] = frozenset({"packets", "connections"})
WITH_OR_WITHOUT: frozenset[TrafficKind] = frozenset({"packets", "connections", "none"})


class MeasurableMetric(Metric, Protocol):
    """A metric that can be registered. A subclass defines `name`, `unit`, `display` and `steps`, and what differs.

    steps          how it is measured while a kind of traffic is played, on a DUT with this clock; none if loading the
                   ruleset measures it
    keeps_ruleset  whether a case of this metric alone may use the ruleset as the previous case has left it
    times_loading  whether it is measured as the ruleset is loaded, so that the DUT must have nothing of it before
    takes_ruleset  whether the ruleset is gone from the DUT when this has been measured
    apart          whether it loads the ruleset in a network namespace of its own
    """

    steps: Callable[[MeasurementSpec, TrafficKind, Clock], Sequence[Step]]
    keeps_ruleset: bool = False
    takes_ruleset: bool = False
    times_loading: bool = False
    apart: bool = False
