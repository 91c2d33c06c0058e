# SPDX-License-Identifier: GPL-2.0-or-later
"""A lab's traffic as frame tables, and the number of packets of each class that a playback offers."""

import contextlib
import weakref
from collections import Counter
from dataclasses import replace
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import numpy as np

from fwlab.checkout.own_folder import own_folder
from fwlab.checkout.project import Project, display_path
from fwlab.generator.frame_table import MAX_FRAMES, write_table
from fwlab.generator.recording import KEPT, MAX_BATCH, KnownFrames, ends_behind
from fwlab.generator.traffic_profile import load_profile
from fwlab.model.declared_traffic import Connections, Redirection, Translation
from fwlab.model.errors import BadInput
from fwlab.model.lab import Lab
from fwlab.model.topology import Topology
from fwlab.model.trial import FiveTuple
from fwlab.traffic.classes import OTHER, Flow, classify, stream_flows
from fwlab.traffic.frame_loop import TABLE_FRAMES, Table, build_table
from fwlab.traffic.headers import IPV4, read_headers
from fwlab.traffic.varied import varied

#: The link into which the generator sends, and that by which the DUT sends on to the sink.
FIRST_LINK, LAST_LINK = "generator-dut", "dut-sink"
#: Maximum number of plays in memory, 5 to 45 MB each. No lab has more, so a class builds each of them once.
MAX_PLAYS = 12


class TrafficStore:
    """Loads profiles and builds frame tables on first use. The MAC addresses are those of the generator's link."""

    def __init__(
        self, project: Project, topology: Topology, lab: Lab, seed: int = 1, play: int = 0, first: int | None = None
    ) -> None:
        """seed, play  draw what the lab leaves open; first: number of frames of each table that are needed"""
        self._project, self._topology, self._lab, self._play, self._first = project, topology, lab, play, first
        ends = topology.links[FIRST_LINK].ends
        self._macs = (_bytes(ends["dut"].mac), _bytes(ends["generator"].mac))
        self._streams: dict[str, list[dict[str, Any]]] = {}
        self._built: dict[str, Table] = {}
        self._flows: dict[str, dict[str, list[Flow]]] = {}
        self._classified: dict[str, np.ndarray] = {}
        self._known: dict[str, KnownFrames] = {}
        self._plays: dict[tuple[str, int], TrafficStore] = {}
        self.seed = seed
        # Another session may draw other frames for the same traffic, and a student may have other ones.
        self._files: Path | None = None

    def of_play(self, traffic: str, play: int, first: int | None = None) -> "TrafficStore":
        """The store from which this traffic comes in another play: this one, unless each play draws other packets.

        first  maximum number of packets of the play, so its table needs no more frames: always the same for a play
        """
        own, other = (self._lab.tunables(traffic, self.seed, one) for one in (self._play, play))
        if own == other:
            return self
        key = traffic, play
        kept = self._plays.pop(key, None)
        kept = kept or TrafficStore(self._project, self._topology, self._lab, self.seed, play, first)
        self._plays[key] = kept  # the most recently played is last
        while len(self._plays) > MAX_PLAYS:
            self._plays.pop(next(iter(self._plays)))
        return kept

    def streams(self, traffic: str) -> list[dict[str, Any]]:
        """The profile's streams in TRex's RPC format. Raises BadInput naming the profile."""
        if traffic not in self._streams:
            arguments = self._lab.tunables(traffic, self.seed, self._play)
            self._streams[traffic] = load_profile(self._project, self._profile(traffic), arguments)
        return self._streams[traffic]

    def table(self, traffic: str) -> Table:
        """The frame table of the streams. Raises BadInput as `streams` does."""
        if traffic not in self._built:
            streams, max_frames = self.streams(traffic), self._max_frames(traffic)
            try:
                table = build_table(streams, macs=self._macs, seed=self.seed, max_frames=max_frames, first=self._first)
                # TCP connections that run at the same time have one TTL, so this traffic has one, too.
                table = replace(
                    table, frames=varied(table.frames, self.seed, hops=not self._accompanies_connections(traffic))
                )
                self._flows[traffic] = stream_flows(table.frames, self._lab.classes)
                self._built[traffic] = table
            except BadInput as error:
                profile = display_path(self._project, self._profile(traffic))
                raise BadInput(f"{profile}: {error.message}", error.hint) from error
        return self._built[traffic]

    def flows(self, traffic: str) -> dict[str, list[Flow]]:
        """The flows of each class that is declared by a stream. Raises BadInput as `streams` does."""
        self.table(traffic)
        return self._flows[traffic]

    def _accompanies_connections(self, traffic: str) -> bool:
        every = (declared.connections for declared in self._lab.traffic.values())
        return any(connections is not None and connections.background == traffic for connections in every)

    def _profile(self, traffic: str) -> Path:
        profile = self._lab.profile(traffic)
        assert profile is not None, f"{traffic} is TCP connections"  # noqa: S101 - the caller's mistake
        return profile

    def _max_frames(self, traffic: str) -> int:
        """Maximum number of frames of the table: more than usual if a case fills the DUT with more states."""
        wanted = [case.state_packets or 0 for case in self._lab.cases.values() if case.traffic == traffic]
        wanted += [exercise.state_packets or 0 for exercise in self._lab.exercises if exercise.traffic == traffic]
        return min(MAX_FRAMES, max(TABLE_FRAMES, *wanted, 0))

    def plays_packets(self, traffic: str) -> bool:
        """Whether this traffic has a profile, and is not TCP connections."""
        return self.connections(traffic) is None

    def in_order(self, traffic: str) -> bool:
        """Whether the order of its frames matters."""
        return self._lab.traffic[traffic].in_order

    def connections(self, traffic: str) -> Connections | None:
        """The declared TCP connections; None for a traffic with a profile."""
        return self._lab.connections(traffic, self.seed)

    def nat(self, traffic: str) -> Translation | Redirection | None:
        """The source or the destination that NAT has to give this traffic's packets; None if nothing."""
        return self._lab.traffic[traffic].translated or self._lab.traffic[traffic].redirected

    def path(self, traffic: str) -> Path:
        """The frame table as a file for the replay engine, for as long as the store lasts. Raises as `streams`."""
        table = self.table(traffic)  # before any folder: an invalid profile leaves nothing behind
        if self._files is None:
            folder = self._project.state / self._lab.id
            held = contextlib.ExitStack()
            self._files = held.enter_context(own_folder("tables-", folder))
            # With the store, at the end of the program at the latest.
            weakref.finalize(self, held.close)
        path = self._files / f"{traffic}.frames"
        if not path.exists():
            write_table(
                path,
                list(table.frames),
                times_ns=table.frames.times_ns,
                streams=table.frames.stream,
                loop_ns=table.loop_ns,
            )
        return path

    def classified(self, traffic: str) -> np.ndarray:
        """The number of each frame's class, or -1: int64 array of shape (n,)."""
        if traffic not in self._classified:
            self._classified[traffic] = classify(self.table(traffic).frames, self._lab.classes, self._flows[traffic])
        return self._classified[traffic]

    def known_frames(self, traffic: str) -> KnownFrames:
        """The frames, to be recognised behind the DUT. Raises BadInput if that cannot be, and as `streams` does."""
        if traffic not in self._known:
            self._known[traffic] = self._recognised(traffic)
        return self._known[traffic]

    def _recognised(self, traffic: str) -> KnownFrames:
        frames, classified, names = self.table(traffic).frames, self.classified(traffic), list(self._lab.classes)
        links = self._topology.links
        behind = links[FIRST_LINK].behind["generator"], links[LAST_LINK].behind["sink"]
        ends, nat = ends_behind(frames, behind), self.nat(traffic)
        for kept in KEPT:
            try:
                return KnownFrames(frames.matrix(kept), classified, names, ends, nat)
            except ValueError as error:
                alike = error
        raise BadInput(f"traffic {traffic}: {alike}", "let its classes differ") from alike

    def offered(self, traffic: str, sent: int) -> dict[str, int]:
        """Packets of each of the lab's classes among the first `sent` of a playback, which repeats the table."""
        names = [*self._lab.classes, OTHER]
        counts = _repeated(self.classified(traffic) % len(names), sent, len(names))
        return dict(zip(names, counts, strict=True))

    def dispersion(self, traffic: str) -> dict[str, float]:
        """By class, the index of dispersion (variance over mean) of its packets in each MAX_BATCH, where it is above 1.

        A full ring takes packets in batches. So the count of a class whose packets come in bunches varies more than
        chance explains: its variance is this multiple of its mean.
        """
        numbers, found = self.classified(traffic), {}
        whole = numbers[: len(numbers) // MAX_BATCH * MAX_BATCH].reshape(-1, MAX_BATCH)
        for place, name in enumerate(self._lab.classes):
            counts = (whole == place).sum(axis=1)
            if counts.any() and (index := float(counts.var() / counts.mean())) > 1:
                found[name] = round(index, 2)
        return found

    def five_tuples(self, traffic: str, sent: int) -> Counter[tuple[str, FiveTuple]]:
        """Packets of each class and flow (TCP or UDP over IPv4) among the first `sent` of a playback."""
        headers, classes = read_headers(self.table(traffic).frames), [*self._lab.classes, OTHER]
        found, numbers = Counter[tuple[str, FiveTuple]](), self.classified(traffic)
        for place, times in enumerate(_repeated(np.arange(len(numbers)), sent, len(numbers))):
            if times and headers.version[place] == IPV4 and headers.dport[place] >= 0:
                source, destination = (
                    str(IPv4Address(part[place, :4].tobytes())) for part in (headers.src, headers.dst)
                )
                ports = int(headers.sport[place]), int(headers.dport[place])
                flow = FiveTuple(int(headers.protocol[place]), source, ports[0], destination, ports[1])
                found[classes[numbers[place]], flow] += times
        return found

    def by_stream(self, traffic: str, count: int) -> dict[int, int]:
        """Packets of each stream (by its index in the profile) among the first `count` of a playback."""
        found = self.table(traffic).frames.stream
        return dict(enumerate(_repeated(found, count, int(found.max()) + 1)))


def _repeated(loop: np.ndarray, count: int, kinds: int) -> list[int]:
    """How many of each kind, from 0 to kinds - 1, are among the first `count` if the loop is repeated."""
    loops, rest = divmod(count, len(loop))
    whole, part = (np.bincount(some, minlength=kinds) for some in (loop, loop[:rest]))
    return [int(number) for number in loops * whole + part]


def _bytes(mac: str) -> bytes:
    return bytes.fromhex(mac.replace(":", ""))
