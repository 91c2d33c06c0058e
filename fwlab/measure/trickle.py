# SPDX-License-Identifier: GPL-2.0-or-later
"""A trickle of a ruleset's traffic while somebody looks at the DUT: enough to move its counters, and no more.

The DUT must still answer a shell. A ruleset that takes long over each packet gets fewer of them.
"""

import contextlib
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

from fwlab.generator.protocol import TcpEndpoints, traffic_guard
from fwlab.metrics.measurement import Nodes, link_counters
from fwlab.model.declared_traffic import Connections
from fwlab.model.events import Warned

#: Packets per real second, at most, and at most this share of what the DUT processes in a real second; at least one.
MAX_PPS, SHARE, MIN_PPS = 300.0, 0.2, 1.0
#: The first packets, which any ring holds, show what the DUT processes. They are played at this load (pps), and watched
#: for at most this time (s), ...
FIRST_PACKETS, FIRST_LOAD, PATIENCE_S = 256, 2000.0, 10.0
#: ... and looked at this often (s).
LOOK_S = 0.05
#: Connections per second, and seconds of one call of the client: as long, at most, as it takes to stop.
CPS, PIECE_S = 10.0, 2.0


@contextlib.contextmanager
def trickle(nodes: Nodes, traffic: str) -> Iterator[str]:
    """Play this traffic, which the engine already has, while the context is open; yields what is played, in words.

    By then the DUT has received packets; if none arrived, a warning is emitted.
    """
    connections = nodes.store.connections(traffic)
    if connections is None:
        pps = light_load(nodes)
        with _packets(nodes, pps):
            yield f"{pps:.0f} packets per second of {traffic}"
    else:
        with _visitors(nodes, connections) as others:
            yield f"{CPS:g} connections per second of {traffic}{others}"


@contextlib.contextmanager
def _packets(nodes: Nodes, pps: float) -> Iterator[None]:
    with traffic_guard(nodes.engine.start(load=pps)) as playing:
        yield
        playing.stop()


def light_load(nodes: Nodes) -> float:
    """Packets per second that leave the DUT time for a shell, by what it makes of the first few."""
    came: list[tuple[float, int]] = []
    before = link_counters(nodes)[0]
    with traffic_guard(nodes.engine.start(load=FIRST_LOAD, count=FIRST_PACKETS)) as playing:
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end and (not came or came[-1][1] < FIRST_PACKETS):
            taken = link_counters(nodes)[0] - before
            if taken and (not came or taken > came[-1][1]):
                came.append((time.monotonic(), taken))
            else:
                time.sleep(LOOK_S)
        playing.stop()
    if not came:
        nodes.emit(Warned("no packet reached the DUT"))
        return MIN_PPS
    (began, first), (ended, last) = came[0], came[-1]
    if last > first:
        carried = (last - first) / (ended - began)
    else:
        carried = FIRST_LOAD if last >= FIRST_PACKETS else last / PATIENCE_S
    return max(MIN_PPS, min(MAX_PPS, SHARE * carried))


@contextlib.contextmanager
def _visitors(nodes: Nodes, connections: Connections) -> Iterator[str]:
    """Connections, and the background packets declared with them; yields these in words."""
    background = connections.background
    if background is None:
        nodes.engine.close()  # the clients need the generator's link, which an engine may hold
    else:
        nodes.engine.use(nodes.store, background)
        nodes.sink.set_flows(nodes.store.flows(background))
    nodes.sink.load_counters(nodes.classes, connections)
    with contextlib.ExitStack() as stack:
        words = ""
        if background is not None:
            pps = min(MAX_PPS, connections.background_pps or MAX_PPS)
            stack.enter_context(_packets(nodes, pps))
            words = f" and {pps:.0f} packets per second of {background}"
        endpoints = stack.enter_context(nodes.tcp(connections))
        before = link_counters(nodes)[0]
        visiting = stack.enter_context(_visits(endpoints))
        end = time.monotonic() + PATIENCE_S
        while link_counters(nodes)[0] == before and not visiting.done() and time.monotonic() < end:
            time.sleep(LOOK_S)
        yield words


@contextlib.contextmanager
def _visits(endpoints: TcpEndpoints) -> Iterator[Future[None]]:
    """Connections at a low rate, opened in pieces while the context is open. Raises the client's error at its end."""
    ended = threading.Event()

    def visit() -> None:
        while not ended.is_set():
            endpoints.at_rate(CPS, int(CPS * PIECE_S))

    with ThreadPoolExecutor(1) as pool:
        visiting = pool.submit(visit)
        try:
            yield visiting
        finally:
            ended.set()
    visiting.result()
