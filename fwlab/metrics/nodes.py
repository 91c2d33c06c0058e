# SPDX-License-Identifier: GPL-2.0-or-later
"""The nodes of a session, and what one measurement hands on to the next."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass

from fwlab.dut.protocol import Dut
from fwlab.generator.echo import Echoes
from fwlab.generator.pacing.paced_load import PacedLoad, Recorder
from fwlab.generator.protocol import Engine, TcpEndpoints
from fwlab.generator.sink import BothEnds, returning
from fwlab.generator.traffic_store import TrafficStore
from fwlab.metrics.saturation import Saturation
from fwlab.model.declared_traffic import Connections, TrafficClass
from fwlab.model.events import Listener
from fwlab.model.results import Clock, Measured


def _no_endpoints(_connections: Connections) -> contextlib.AbstractContextManager[TcpEndpoints]:
    raise ValueError("these nodes have no TCP endpoints")


def _no_echoes(_count: int, _interval_s: float) -> Echoes:
    raise ValueError("these nodes have no probes")


@dataclass(frozen=True)
class Nodes:
    """The three nodes of one session.

    throttle  `throttle(level)` slows the DUT while it is open; `throttle(level, loop=True)` is for a closed loop of
              requests and answers
    levels    how many throttle levels there are; on the host's clock one, which does nothing
    ring      packets that the DUT's receive ring holds
    tcp       `tcp(connections)` sets up generator and sink as TCP endpoints while it is open
    restore   puts the DUT back into its saved state; False if it cannot
    clock     what the DUT's clock counts
    tell      hears of the progress of a long measurement
    echo      `echo(count, interval_s)` sends so many probes from the generator through the DUT to the sink and back
    ns_per_instruction  nanoseconds of the DUT's clock for each instruction; 1 where that clock is the host's
    pacing    plays at exact loads in the DUT's own time; None where that cannot be
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
    tcp: Callable[[Connections], contextlib.AbstractContextManager[TcpEndpoints]] = _no_endpoints
    restore: Callable[[], bool] = lambda: False
    clock: Clock = "instructions"
    tell: Listener = lambda _event: None
    echo: Callable[[int, float], Echoes] = _no_echoes
    ns_per_instruction: int = 1
    pacing: PacedLoad | None = None
    recording: Recorder | None = None


def through(nodes: Nodes, counters: dict[str, int] | None = None) -> tuple[int, int]:
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
