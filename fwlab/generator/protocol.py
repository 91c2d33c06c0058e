# SPDX-License-Identifier: GPL-2.0-or-later
"""What a traffic engine is: an `EngineKind` that can be chosen by name, and the `Engine` that it makes for a session.

Another engine is one object that satisfies `EngineKind`, registered as an entry point of the group `fwlab.engines`.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Protocol, TypeVar

from fwlab.checkout.project import Project
from fwlab.generator.traffic_store import TrafficStore
from fwlab.host.ssh import Ssh
from fwlab.model.declared_traffic import Connections
from fwlab.model.errors import BadInput
from fwlab.model.topology import Topology
from fwlab.model.trial import Clients

#: An engine whose rate falls short of the intended load by more than this share has reached its ceiling.
CEILING_TOLERANCE = 0.05


@dataclass(frozen=True)
class PlaybackResult:
    """What an engine reports about one playback.

    sent          frames that left the NIC
    duration_s    seconds from the first frame to the last
    intended_pps  the load that was asked for, in packets per second; None for flat out
    """

    sent: int
    duration_s: float
    intended_pps: float | None = None

    @property
    def rate(self) -> float:
        """Packets per second that were sent."""
        return self.sent / self.duration_s if self.duration_s else 0.0

    @property
    def limited(self) -> str | None:
        """The warning for a trial whose load exceeded what the engine can send; None if it kept up."""
        if self.intended_pps is None or self.rate >= self.intended_pps * (1 - CEILING_TOLERANCE):
            return None
        return f"generator limited: asked for {self.intended_pps:,.0f} pps, it sent {self.rate:,.0f}"


def check_load(load: float | None) -> None:
    """Raises BadInput unless `load` (packets per second) is a positive, finite number; None means flat out."""
    if load is not None and not (load > 0 and math.isfinite(load)):
        raise BadInput(f"a load of {load:g} pps sends nothing", "give a load above zero")


class Playback(Protocol):
    """Traffic that is being sent. Nothing is sent any more once `stop` or `wait` has returned."""

    def stop(self, timeout: float = 60) -> PlaybackResult:
        """Stop sending. `timeout`: seconds the engine may take. Raises CannotMeasure."""

    def wait(self, timeout: float) -> PlaybackResult:
        """Wait until a counted playback ends by itself, then stop it after `timeout` seconds at the latest."""

    def abandon(self) -> None:
        """Stop sending on the way out of a failure. Never raises; the counts are lost."""


class Engine(Protocol):
    """Plays a lab's traffic out of the generator, for one session."""

    def use(self, store: TrafficStore, traffic: str) -> None:
        """Select the traffic that the next `start` plays. Raises BadInput, CannotMeasure."""

    def start(self, *, load: float | None = None, count: int | None = None) -> Playback:
        """Send flat out, or at `load` packets per second; until stopped, or until `count` packets are sent."""

    def close(self) -> None:
        """Stop whatever runs on the generator and return the link to the kernel. `use` starts the engine again."""


class ConnectionLoad(Protocol):
    """TCP connections that are being opened as fast as the DUT forwards them."""

    def stop(self, timeout: float = 60) -> Clients:
        """Open no more connections and return the counts. `timeout`: seconds the client may take."""

    def abandon(self) -> None:
        """Stop on the way out of a failure. Never raises; the counts are lost."""


Started = TypeVar("Started", bound=Playback | ConnectionLoad)


@contextmanager
def traffic_guard(started: Started) -> Iterator[Started]:
    """Abandon the traffic if the body raises anything; otherwise it goes on, and the caller stops it."""
    try:
        yield started
    except BaseException:
        started.abandon()
        raise


class TcpEndpoints(Protocol):
    """Client and server of a lab's TCP connections.

    connections   what they were set up for
    answer_bytes  bytes of one HTTP response, headers included
    """

    connections: Connections
    answer_bytes: int

    def connect(self) -> None:
        """Open one connection, and close it. Raises Hindered if that takes too long."""

    def flat_out(self) -> ConnectionLoad:
        """Keep `connections.concurrent` connections open, or as many as the client supports, until stopped."""

    def at_rate(self, rate: float, count: int) -> Clients:
        """Open `count` connections, `rate` per second of the generator's clock. Raises CannotMeasure."""


#: Sets generator and sink up for the declared connections, and restores them when the context ends.
TcpEndpointsFactory = Callable[[Connections], AbstractContextManager[TcpEndpoints]]


@dataclass(frozen=True)
class Availability:
    """Whether the generator's image holds an engine.

    reason  why, or why not, as `fwlab doctor` prints it
    hint    the command that makes it available
    """

    available: bool
    reason: str
    hint: str = ""


class EngineKind(Protocol):
    """One entry of the registry of engines.

    name       what `--engine` takes
    position   its place in lists; `--engine auto` tries the lowest first
    automatic  whether `--engine auto` may choose it
    """

    name: str
    position: int
    automatic: bool

    def availability(self, project: Project) -> Availability:
        """Whether the generator's image holds the engine. No machine is contacted."""

    def check(self, store: TrafficStore, traffic: str, *, asked: bool) -> None:
        """Raises BadInput if the engine cannot play this traffic. No machine is contacted.

        asked  the engine was asked for by name: then it may leave alike what others draw for each frame
        """

    def make(self, ssh: Ssh, topology: Topology, *, emulated: bool) -> Engine:
        """The engine on the generator that `ssh` leads to. Nothing is started there yet.

        emulated  the generator's CPU is emulated, so the engine has to be frugal
        """

    def tcp_endpoints(
        self, generator: Ssh, sink: Ssh, topology: Topology, connections: Connections, *, emulated: bool
    ) -> AbstractContextManager[TcpEndpoints] | None:
        """TCP clients of the engine's own; None if it plays packets only, so that the kernel's TCP is used."""
