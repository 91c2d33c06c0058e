# SPDX-License-Identifier: GPL-2.0-or-later
"""From counts to figures: capacity, load time, delivered share; median and spread."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from fwlab.model.metric import Metric
from fwlab.model.results import Measured, TestbedFacts
from fwlab.model.trial import TcpTrial, Trial

#: A trial in which the DUT was idle for more than this share was no overload and says nothing of capacity.
MOST_IDLE = 0.0005
#: The same for TCP connections, a closed loop that any pause of its two ends lets run dry for a moment. Cost is by
#: packets of a busy second, and those are 0.3 % dearer or cheaper at this share.
MOST_IDLE_LOOP = 0.02
#: A trial on the virtual testbed in which something else than packets took more than this share was disturbed.
MOST_OTHER = 0.005
#: The same for TCP connections: after such a pause the first packets are taken outside of ksoftirqd. Trials with 3 % of
#: that lie among those with none.
MOST_OTHER_LOOP = 0.03


def scale(testbed: TestbedFacts) -> int:
    """Instructions-per-nanosecond scale: 2**shift on the virtual testbed, 1 on the host's clock.

    The reference CPU executes one instruction per nanosecond; a virtual clock that passes s ns per
    instruction runs s times slower, so rates are multiplied by s and times divided by it.
    """
    return testbed.ns_per_instruction or 1


def capacity(trial: Trial, testbed: TestbedFacts) -> float:
    """Packets per busy second that the DUT processed (pps), on the reference CPU where virtual."""
    return trial.processed / trial.busy_s * scale(testbed)


def busy_rates(measured: Measured) -> list[float]:
    """Packets per busy second of the DUT's own clock, trial by trial: not brought to the reference CPU."""
    return [trial.processed / trial.busy_s for trial in measured.trials if trial.busy_s > 0]


def connections(trial: TcpTrial, testbed: TestbedFacts) -> float:
    """New connections per busy second that were completed (cps), on the reference CPU where virtual."""
    return trial.completed / trial.busy_s * scale(testbed)


def values(measured: Measured, metric: Metric, testbed: TestbedFacts, traffic_class: str = "") -> list[float]:
    """Every trial's value of the metric, in its unit; empty where it was not measured."""
    if metric is Metric.CAPACITY:
        return [capacity(t, testbed) for t in measured.trials if t.busy_s > 0]
    if metric is Metric.LOAD_TIME:
        return [seconds / scale(testbed) for seconds in measured.loads]
    if metric is Metric.CONNECTIONS:
        return [connections(t, testbed) for t in measured.tcp if t.busy_s > 0]
    if metric is Metric.SURVIVAL:
        tracked = measured.tracked or traffic_class
        shares = [d.survived(tracked, rate) for d in measured.survivals for rate in busy_rates(measured)]
        return [share for share in shares if share is not None]
    if metric is Metric.DELIVERED:
        # All plays together: a median would hide what only one of them shows.
        offered = sum(d.offered.get(traffic_class, 0) for d in measured.deliveries)
        arrived = sum(d.arrived.get(traffic_class, 0) for d in measured.deliveries)
        shares = [arrived / offered] if offered else []
        if not traffic_class:  # of connections, and not of the packets beside them
            shares += [clients.delivered for clients in measured.clients if clients.intended_load is not None]
        return [share for share in shares if share is not None]
    single = {
        Metric.ENTRIES: measured.entries,
        Metric.STATES: measured.states and measured.states.held,
        Metric.STATE_BYTES: measured.states and measured.states.bytes_each,
        Metric.GENERATOR: measured.generator_pps,
    }[metric]
    return [float(single)] if single is not None else []


@dataclass(frozen=True)
class Figure:
    """Median and spread of some trials. `spread` is (max - min) / median, as a ratio."""

    values: list[float]

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def low(self) -> float:
        return min(self.values)

    @property
    def high(self) -> float:
        return max(self.values)

    @property
    def spread(self) -> float:
        return (self.high - self.low) / self.median if self.median else 0.0


def figure(measured: Measured, metric: Metric, testbed: TestbedFacts, traffic_class: str = "") -> Figure | None:
    found = values(measured, metric, testbed, traffic_class)
    return Figure(found) if found else None


def nanoseconds_per_packet(pps: float) -> float:
    """Cost of one packet; on the reference CPU also the number of instructions."""
    return 1e9 / pps
