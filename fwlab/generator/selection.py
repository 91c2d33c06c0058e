# SPDX-License-Identifier: GPL-2.0-or-later
"""What an engine can do, and which of the two plays: trex where the generator's image holds it, else replay."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Literal, Protocol

from fwlab.generator.replay import Played, Replay
from fwlab.generator.tcp_endpoints import ends
from fwlab.generator.traffic_store import FIRST_LINK, Tables
from fwlab.generator.trex.astf import trex_ends
from fwlab.generator.trex.stateless import Trex
from fwlab.host.project import Project
from fwlab.host.ssh import Ssh
from fwlab.model.declared_traffic import Connections
from fwlab.model.errors import BadInput, CannotMeasure
from fwlab.model.topology import Topology
from fwlab.model.trial import Clients
from fwlab.testbed.machines import built_images
from fwlab.testbed.selection import Testbed

AUTO = "auto"


class Playing(Protocol):
    """Traffic under way. After `stop` and `wait` nothing is sent any more."""

    def stop(self, timeout: float = 60) -> Played: ...

    def wait(self, timeout: float) -> Played: ...

    def abandon(self) -> None: ...


class Engine(Protocol):
    """Plays a lab's traffic out of the generator."""

    name: str

    def use(self, tables: Tables, traffic: str) -> None:
        """What to play from now on."""

    def start(self, *, load: float | None = None, count: int | None = None) -> Playing:
        """Play flat out, or at `load` packets per second; until stopped, or `count` packets."""

    def close(self) -> None:
        """Until the next `use` nothing of it runs, and the link is the kernel's."""


class Opening(Protocol):
    """TCP connections being opened, as many as the DUT lets through."""

    def stop(self, timeout: float = 60) -> Clients: ...

    def abandon(self) -> None: ...


class Both(Protocol):
    """Both ends of TCP connections, set up for what a lab declares. `answer_bytes`: one answer, with HTTP's head."""

    connections: Connections
    answer_bytes: int

    def flat_out(self) -> Opening:
        """`concurrent` open at a time, or as many as its clients can wait for; until stopped."""

    def at_rate(self, rate: float, count: int) -> Clients:
        """`count` connections, `rate` begun each second of the generator's clock."""


@dataclass(frozen=True)
class Choice:
    """Which engine, and why. `asked`: by name, and not because the image holds it."""

    name: Literal["trex", "replay"]
    why: str
    asked: bool = False


def choose(project: Project, wanted: str = AUTO) -> Choice:
    """Raises BadInput for an engine that there is not, CannotMeasure for one that the image lacks."""
    if wanted not in (AUTO, Trex.name, Replay.name):
        raise BadInput(f"unknown engine {wanted}", f"use {AUTO}, {Trex.name} or {Replay.name}")
    if wanted == Replay.name:
        return Choice("replay", "asked for", asked=True)
    version = trex_in_image(project)
    if version is not None:
        if wanted == Trex.name:
            return Choice("trex", "asked for", asked=True)
        return Choice("trex", f"the generator's image holds TRex {version}")
    if wanted == Trex.name:
        raise CannotMeasure(
            "the generator's image holds no TRex",
            "FWLAB_TREX_URL=/path/to/vX.Y.tar.gz FWLAB_TREX_SHA256=... make boxes",
        )
    return Choice("replay", "the generator's image holds no TRex")


def trex_in_image(project: Project) -> str | None:
    """The version of TRex that the generator's image was built with."""
    try:
        return built_images(project).get("generator", {}).get("trex", {}).get("version")
    except CannotMeasure:
        return None


def check(choice: Choice, tables: Tables, traffic: str) -> None:
    """Raises BadInput where the engine cannot play this traffic. No machine is asked."""
    (Trex if choice.name == Trex.name else Replay).check(tables, traffic)


def make(choice: Choice, ssh: Ssh, topology: Topology, testbed: Testbed) -> Engine:
    """The engine on the generator that `ssh` leads to. Nothing is started there yet."""
    device = topology.end(FIRST_LINK, "generator").dev
    if choice.name == Trex.name:
        return Trex(ssh, topology, small=testbed.slows_the_dut)
    return Replay(ssh, device, emulated=testbed.slows_the_dut)


def make_ends(
    choice: Choice, generator: Ssh, sink: Ssh, topology: Topology, testbed: Testbed
) -> Callable[[Connections], AbstractContextManager[Both]]:
    """What sets generator and sink up for TCP connections: wrk and nginx, or TRex and nginx where TRex is asked for.

    Packets are the same whoever plays them; connections are not, as TRex has a TCP of its own. So it is never by
    chance that TRex opens them.
    """
    own = topology.end(FIRST_LINK, "generator").ipv4.split("/")[0]

    def made(connections: Connections) -> AbstractContextManager[Both]:
        # A server of TRex plays packets or connections: one that plays packets beside leaves these to wrk.
        if choice.name == Trex.name and choice.asked and connections.beside is None:
            return trex_ends(generator, sink, topology, connections, small=testbed.slows_the_dut)
        return ends(generator, sink, own, connections)

    return made
