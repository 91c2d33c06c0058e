# SPDX-License-Identifier: GPL-2.0-or-later
"""Survival: the share of one traffic class that gets through while the load is a multiple of what the DUT forwards.

The multiple refers to the DUT's own clock: at 2, twice as many packets arrive in one of its seconds as the baseline
forwards in a busy one. On the virtual testbed that load is played (fwlab/generator/pacing), and the class is counted
where it reaches the DUT and where it leaves it.

No generator can keep such a load where the DUT's clock is the host's. There the same mix is played flat out, so that
the DUT's ring is always full. Two counts then remain that no host can disturb: the packets of this mix that the DUT
processes in a busy second, and the share of the class, among the packets that it received, that reaches the sink. A
full ring treats all classes alike, so at any load above the DUT's rate a class survives in the proportion of the two.
"""

import statistics
import time
from collections.abc import Sequence
from types import MappingProxyType

from fwlab.generator.pacing.paced_load import Load
from fwlab.generator.protocol import traffic_guard
from fwlab.judge.clocks import CLOCKS
from fwlab.metrics.capacity import FLOOD, busy_rates
from fwlab.metrics.measurement import (
    MeasurableMetric,
    MeasurementSpec,
    MeasuringSession,
    Nodes,
    Phase,
    Step,
    link_counters,
    require,
)
from fwlab.metrics.plays import play_paced
from fwlab.model.errors import CannotMeasure
from fwlab.model.metric import Display, Tolerance, TrafficKind
from fwlab.model.results import Clock, Deliveries, Measured, TestbedFacts, Trouble
from fwlab.model.trial import Delivery

#: A trial at an exact load lasts until this many packets of the class have been offered, and at least as long as the
#: case says, but no longer than this (s of the DUT's clock).
IN_A_TRIAL, MAX_TRIAL_S = 1000, 2.0
#: A play flat out ends when the DUT has received enough packets, or after this time (real seconds); it is polled this
#: often (s).
MAX_S, POLL_S = 15.0, 0.2
#: It lasts for at least this many ring lengths, so that packets received before the ring was full do not matter, ...
RINGS = 8
#: ... and for enough packets of the class that chance (at most the square root of their number) moves the surviving
#: share by no more than this, within these bounds.
CHANCE = 0.01
MIN_OF_CLASS, MAX_OF_CLASS = 300, 1000
#: If the sink counts less than this share of what the DUT sent on, it did not keep up. It misses packets of all
#: classes alike: its counts give the share of a class, and the DUT's counter gives the total.
KEPT_UP = 0.9
#: Fewer packets of the class give no reliable share.
MIN_TAKEN = 100
NO_LOAD = "the load is a multiple of the capacity of {}, which was not measured"
#: The mix of a traffic is computed from this many packets.
MIX = 100_000


class Survival(MeasurableMetric):
    """Share of a traffic class that reaches the sink while the DUT is offered a multiple of what it can forward."""

    name = "survival"
    unit = "ratio"
    position = 50
    display = Display(
        "survival",
        "%",
        100.0,
        significant=5,
        trimmed=True,
        table="sweep",
        listed=False,
        caption="Survival: the share of one traffic class that reaches the sink during an attack. Loads "
        "are multiples of what the DUT can forward without a filter.",
        x_label="{parameter}, times the capacity of {baseline}",
    )
    #: Of some thousand packets of the class at ten times capacity, few pass: 0.4 points of standard deviation in twelve
    #: runs (results/lab05-drop-early/2026-11-27-3-repeatability.json.gz).
    tolerance = Tolerance(absolute=0.03)
    needs = MappingProxyType(
        {
            "victim_class": "victim_class, the class whose packets survive or not",
            "total_load": "total_load, a multiple of the baseline",
        }
    )
    of_baseline = True
    invalidated_by = "any class"
    keeps_ruleset = True  # a sweep over the load alone: a long ruleset takes longer to load than to measure

    def values(self, measured: Measured, testbed: TestbedFacts, traffic_class: str = "") -> list[float]:
        tracked = traffic_class or measured.victim_class or ""
        if measured.paced:
            shares = [trial.survived(tracked) for play in measured.paced for trial in play.trials]
            return [min(1.0, share) for share in shares if share is not None]
        shares = [d.survived(tracked, rate) for d in measured.survivals for rate in busy_rates(measured)]
        return [share for share in shares if share is not None]

    def counts(self, measured: Measured, traffic_class: str = "") -> tuple[int, int] | None:
        tracked = traffic_class or measured.victim_class or ""
        trials = [trial for play in measured.paced for trial in play.trials]
        left = sum(trial.left(tracked) for trial in trials)
        offered = sum(trial.offered.get(tracked, 0) for trial in trials)
        return (min(left, offered), offered) if offered else None

    def steps(self, spec: MeasurementSpec, played: TrafficKind, clock: Clock) -> Sequence[Step]:
        return [SURVIVE_PACED] if CLOCKS[clock].paced else [FLOOD, SURVIVE]


METRIC = Survival()


def survive_paced(session: MeasuringSession, spec: MeasurementSpec, so_far: Measured) -> Measured:
    """Play the load by the DUT's own clock; the baseline was measured before."""
    nodes, pps = session.nodes, _load(session, spec)
    if pps is None:
        return so_far.troubled([NO_LOAD.format(spec.baseline)])
    mix = nodes.store.offered(spec.traffic_name, MIX)
    of_class = max(1, mix[require(spec.victim_class, "victim_class")]) / MIX
    trial_s = max(spec.trial.seconds, min(MAX_TRIAL_S, IN_A_TRIAL / (of_class * pps)))
    load = Load(pps=pps, settle_s=spec.trial.settle, trials=spec.trial.count, trial_s=trial_s, rotated=True)
    play = play_paced(nodes, spec.traffic_name, load)
    return so_far.plus(Deliveries(paced=[play]), Trouble(problems=play.problems, suspects=play.suspects))


def _load(session: MeasuringSession, spec: MeasurementSpec) -> float | None:
    """The load (pps of the DUT's clock), a multiple of the baseline's capacity; None if that was not measured."""
    base = session.result(spec.baseline)
    unit = None if base is None or base.problems else _rate(base)
    return None if unit is None else require(spec.total_load, "total_load") * unit


def survive(session: MeasuringSession, spec: MeasurementSpec, so_far: Measured) -> Measured:
    """Play the mix flat out, after the trials of capacity with it; the baseline was measured before."""
    nodes, load = session.nodes, _load(session, spec)
    if load is None:
        return so_far.troubled([NO_LOAD.format(spec.baseline)])
    wanted = _enough(nodes, spec, (_rate(so_far) or 0.0) / load)
    problems = []
    for level in range(so_far.throttle_level, nodes.levels):
        delivery = _play(nodes, spec, load, level, wanted)
        counted, sent_on = sum(delivery.arrived.values()), delivery.sent_on or 0
        # At a further level the sink gets more of the host's time, and fewer packets to count.
        if counted >= KEPT_UP * sent_on:
            break
    else:
        problems.append(f"the sink counted {counted} of {sent_on} packets that the DUT sent on")
    # The class's share of all packets that the DUT received.
    received = (delivery.taken or 0) * delivery.offered[require(spec.victim_class, "victim_class")] / delivery.sent
    if received < MIN_TAKEN:
        problems.append(
            f"the DUT took {received:.0f} packets of {spec.victim_class}; at least {MIN_TAKEN} say something"
        )
    return so_far.plus(Deliveries(survivals=[delivery])).troubled(problems)


def _rate(measured: Measured) -> float | None:
    """Packets per busy second of the DUT's clock, in the trials of capacity. None without any."""
    rates = busy_rates(measured)
    return statistics.median(rates) if rates else None


def _enough(nodes: Nodes, spec: MeasurementSpec, survives: float) -> int:
    """How many packets the DUT should receive in a play if about this share of the load finds room in its ring."""
    mix = nodes.store.offered(spec.traffic_name, MIX)
    of_class = min(MAX_OF_CLASS, max(MIN_OF_CLASS, (min(1.0, survives) / CHANCE) ** 2))
    in_mix = max(1, mix[require(spec.victim_class, "victim_class")])
    return max(RINGS * nodes.ring, round(of_class * MIX / in_mix))


def _play(nodes: Nodes, spec: MeasurementSpec, load: float, level: int, wanted: int) -> Delivery:
    """Play flat out until the DUT has received the wanted packets, counted at the DUT and at the sink."""
    nodes.sink.load_counters(nodes.classes)
    before = link_counters(nodes)
    with nodes.throttle(level), traffic_guard(nodes.engine.start()) as playback:
        deadline = time.monotonic() + MAX_S
        while link_counters(nodes)[0] - before[0] < wanted and time.monotonic() < deadline:
            time.sleep(POLL_S)
        played = playback.stop()
    arrived = nodes.sink.settled_counts()
    received, sent_on = (after - then for after, then in zip(link_counters(nodes), before, strict=True))
    if not (played.sent and received):
        raise CannotMeasure("no packet reached the DUT", "fwlab doctor")
    return Delivery(
        intended_load=round(load, 1),
        sent=played.sent,
        offered=nodes.store.offered(spec.traffic_name, played.sent),
        arrived=arrived,
        taken=received,
        sent_on=sent_on,
    )


SURVIVE_PACED = Step(Phase.SURVIVAL, survive_paced, despite_problems=False)
SURVIVE = Step(Phase.SURVIVAL, survive, despite_problems=False)
