# SPDX-License-Identifier: GPL-2.0-or-later
"""The registry of traffic engines, and which of them plays: the one asked for, else the first that the image holds.

Where that one cannot play the traffic as it is declared, the next one does.
"""

from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from fwlab.checkout.project import Project
from fwlab.generator.protocol import Engine, EngineKind, TcpEndpoints, TcpEndpointsFactory
from fwlab.generator.tcp_endpoints import tcp_endpoints
from fwlab.generator.traffic_store import FIRST_LINK, TrafficStore
from fwlab.host.ssh import Ssh
from fwlab.model.declared_traffic import Connections
from fwlab.model.errors import BadInput, CannotMeasure
from fwlab.model.registry import Registry, discover
from fwlab.model.topology import Topology
from fwlab.testbed.selection import Testbed

AUTO = "auto"
#: `replay`, `trex`, and those that entry points add. No other module of this package may import this one.
ENGINES: Registry[EngineKind] = discover("engine", "fwlab.generator", "ENGINE", "fwlab.engines", EngineKind)


@dataclass(frozen=True)
class Choice:
    """The chosen engine, and why. `asked`: it was asked for by name."""

    name: str
    why: str
    asked: bool = False


def choose(project: Project, wanted: str = AUTO) -> Choice:
    """Raises BadInput for an unknown engine, CannotMeasure for one that the generator's image lacks."""
    if wanted == AUTO:
        return _first_available(project)
    if wanted not in ENGINES:
        *names, last = [AUTO, *ENGINES]
        raise BadInput(f"unknown engine {wanted}", f"use {', '.join(names)} or {last}")
    found = ENGINES[wanted].availability(project)
    if not found.available:
        raise CannotMeasure(found.reason, found.hint)
    return Choice(wanted, "asked for", asked=True)


def _first_available(project: Project) -> Choice:
    """The first available engine. The reason is why a better one is missing, or else its own."""
    missing: list[str] = []
    for engine in (engine for engine in ENGINES.values() if engine.automatic):
        found = engine.availability(project)
        if found.available:
            return Choice(engine.name, "; ".join(missing) or found.reason)
        missing.append(found.reason)
    raise CannotMeasure("; ".join(missing) or "there is no engine that `--engine auto` may choose", "make boxes")


def instead(project: Project, store: TrafficStore, traffics: Iterable[str]) -> Choice | None:
    """The engine that plays these traffics because the one that `auto` would choose cannot. None: it can, or none can.

    Nothing is loaded where there is no other engine.
    """
    there = [engine for engine in ENGINES.values() if engine.automatic and engine.availability(project).available]
    refusals: list[str] = []
    for engine in there if len(there) > 1 else ():
        try:
            for traffic in traffics:
                engine.check(store, traffic, asked=False)
        except BadInput as refusal:
            refusals.append(f"{engine.name} cannot play {refusal.message}")
        else:
            return Choice(engine.name, "; ".join(refusals)) if refusals else None
    return None


def check(choice: Choice, store: TrafficStore, traffic: str) -> None:
    """Raises BadInput if the engine cannot play this traffic. No machine is contacted."""
    ENGINES[choice.name].check(store, traffic, asked=True)


def make(choice: Choice, ssh: Ssh, topology: Topology, testbed: Testbed) -> Engine:
    """The engine on the generator that `ssh` leads to. Nothing is started there yet."""
    return ENGINES[choice.name].make(ssh, topology, emulated=testbed.throttled)


def make_tcp_endpoints(
    choice: Choice, generator: Ssh, sink: Ssh, topology: Topology, testbed: Testbed
) -> TcpEndpointsFactory:
    """What sets generator and sink up for TCP connections.

    The kernel's TCP opens them (wrk and httperf), unless an engine with its own TCP was asked for by name: packets
    are the same by any engine that plays them, connections are not.
    """
    own_address = topology.end(FIRST_LINK, "generator").ipv4.split("/")[0]

    def endpoints(connections: Connections) -> AbstractContextManager[TcpEndpoints]:
        # An engine opens connections or plays packets. With a background it plays that, and the kernel opens them.
        if choice.asked and connections.background is None:
            engine = ENGINES[choice.name]
            own = engine.tcp_endpoints(generator, sink, topology, connections, emulated=testbed.throttled)
            if own is not None:
                return own
        return tcp_endpoints(generator, sink, own_address, connections)

    return endpoints
