# SPDX-License-Identifier: GPL-2.0-or-later
"""The engine `trex`: TRex's server plays a profile's streams. TCP connections use its advanced stateful mode."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from fwlab.checkout.project import Project
from fwlab.generator.protocol import Availability, PlaybackResult, TcpEndpoints, check_load
from fwlab.generator.traffic_store import FIRST_LINK, TrafficStore
from fwlab.generator.trex.astf import trex_tcp_endpoints
from fwlab.generator.trex.server import Server
from fwlab.host.ssh import Ssh
from fwlab.images.boxes import built_boxes
from fwlab.model.declared_traffic import Connections
from fwlab.model.errors import BadInput, CannotMeasure, CannotStart
from fwlab.model.topology import Topology
from fwlab.traffic.checksums import TCP
from fwlab.traffic.headers import IPV4, IPV6, ip_header
from fwlab.traffic.program import FixHw, FixIpv4
from fwlab.traffic.streams import Stream, endless, parse_streams
from fwlab.traffic.varied import MIN_TTL, TTLS

#: TRex's port on the link to the DUT. The other port is a dummy.
PORT = 0
#: Seconds between two polls, until unchanged counters count as final, and until they count as final in any case.
POLL_S, SETTLED_S, UNSETTLED_S = 0.2, 1.5, 30.0
#: The assumed line rate, which is more than TRex can send, so that it never waits.
FLAT_OUT = {"type": "percentage", "op": "abs", "value": 100}
_TRANSMITTING = ("TX", "PAUSE")
_STATISTICS = "cd /sys/class/net/{device}/statistics 2>/dev/null && cat tx_packets tx_dropped || echo"


class TrexPlayback:
    """A playback by TRex."""

    def __init__(self, port: Port, load: float | None, count: int | None) -> None:
        self._port, self._load, self._count = port, load, count
        self._began = self._seen = time.monotonic()

    def stop(self, timeout: float = 60) -> PlaybackResult:
        """Stop sending and return the counts. `timeout`: seconds TRex may take."""
        self._port.stop()
        self._seen = time.monotonic()
        self._await_end(timeout)
        return self._played()

    def wait(self, timeout: float) -> PlaybackResult:
        """Wait until a counted playback ends by itself, but stop it after `timeout` seconds."""
        if not self._await_end(timeout):
            return self.stop()
        return self._played()

    def abandon(self) -> None:
        """Stop sending. Never raises; the counts are lost."""
        self._port.forget()
        with contextlib.suppress(CannotMeasure):
            self._port.stop()

    def _await_end(self, timeout: float) -> bool:
        deadline = time.monotonic() + timeout
        while self._port.transmits():
            now = self._seen = time.monotonic()
            if now > deadline:
                return False
            time.sleep(POLL_S)
        return True

    def _played(self) -> PlaybackResult:
        sent = self._port.sent()
        # The end lies between two polls. A run at the intended rate took at least count / load seconds.
        took = self._seen - self._began
        if self._count is not None and self._load is not None:
            took = max(took, self._count / self._load)
        return PlaybackResult(sent, took, self._load)


class Port:
    """TRex's port on the link to the DUT, acquired for this session."""

    def __init__(self, server: Server, ssh: Ssh, device: str) -> None:
        self._server, self._ssh, self._device = server, ssh, device
        self._before: tuple[int, int, int] | None = None
        self._handler = self._ask("acquire", user="fwlab", session_id=1, force=True)
        self._ask("stop_traffic", handler=self._handler, profile_id="_")

    def load(self, streams: list[dict[str, Any]]) -> None:
        """Replace the port's streams by these."""
        owned = {"handler": self._handler, "port_id": PORT, "profile_id": "_"}
        self._ask("remove_all_streams", handler=self._handler, profile_id="_")
        self._server.asked(lambda rpc: rpc.calls("add_stream", [{**owned, **item} for item in streams]))

    def start(self, load: float | None) -> None:
        """Send flat out, or at `load` packets per second."""
        rate = FLAT_OUT if load is None else {"type": "pps", "op": "abs", "value": load}
        # Reading the counters takes seconds, during which the DUT would be idle. The last run's final counts will do.
        self._before = self._before or self._settled()
        parameters = {"mul": rate, "duration": -1, "force": True, "core_mask": (1 << 64) - 1}
        self._ask("start_traffic", handler=self._handler, profile_id="_", **parameters)

    def stop(self) -> None:
        """Stop sending. Raises CannotMeasure."""
        self._ask("stop_traffic", handler=self._handler, profile_id="_")

    def forget(self) -> None:
        """Discard the counts of the current playback."""
        self._before = None

    def transmits(self) -> bool:
        """Whether TRex still sends."""
        return self._ask("get_port_status")["state"] in _TRANSMITTING

    def sent(self) -> int:
        """Packets that have left the NIC since the last call.

        TRex also counts a frame that the kernel then drops from a full queue, so the kernel's counters are read as well
        if the kernel drives the NIC.
        """
        now = self._settled()
        before, self._before = self._before or now, now
        counted, on_wire, dropped = (a - b for a, b in zip(now, before, strict=True))
        if now[1] < 0:
            return counted
        return max(0, min(counted, on_wire, counted - dropped))

    def _settled(self) -> tuple[int, int, int]:
        """Packets counted by TRex, sent and dropped by the kernel (-1: no such counter), once TRex's count is final."""
        deadline = time.monotonic() + UNSETTLED_S
        count, since = self._count(), time.monotonic()
        while time.monotonic() < min(deadline, since + SETTLED_S):
            time.sleep(POLL_S)
            latest = self._count()
            if latest != count:
                count, since = latest, time.monotonic()
        numbers = self._ssh.run(_STATISTICS.format(device=self._device)).split()
        on_wire, dropped = (int(n) for n in numbers) if len(numbers) == 2 else (-1, -1)
        return count, on_wire, dropped

    def _count(self) -> int:
        return int(self._ask("get_port_stats")["opackets"])

    def _ask(self, method: str, **parameters: Any) -> Any:
        return self._server.ask(method, port_id=PORT, **parameters)


def check_traffic(store: TrafficStore, traffic: str) -> None:
    """Raises BadInput for a traffic that TRex cannot play. Nothing is started."""
    store.table(traffic)  # refuses addresses outside the lab, whichever engine plays
    if store.in_order(traffic):
        raise BadInput(
            f"{traffic}: the order of its frames matters, and TRex does not keep it between streams",
            "use `--engine replay`",
        )
    try:
        server_streams(store.streams(traffic), store.seed)
    except BadInput as error:
        raise BadInput(f"{traffic}: {error.message}", error.hint) from error


class Trex:
    """The engine `trex`. Its server starts at the first `use` and runs until `close`."""

    def __init__(self, ssh: Ssh, topology: Topology, *, small: bool) -> None:
        self._ssh = ssh
        self._device = topology.end(FIRST_LINK, "generator").dev
        self._server = Server(ssh, topology, self._device, small=small)
        self._port: Port | None = None
        self._selected: tuple[TrafficStore, str] | None = None
        self._loaded: list[dict[str, Any]] | None = None
        self._cannot_start: CannotStart | None = None

    def use(self, store: TrafficStore, traffic: str) -> None:
        """Select the traffic to play. Raises BadInput for wrong streams, before anything is started."""
        check_traffic(store, traffic)
        if self._cannot_start is not None:
            raise self._cannot_start
        if self._port is None:
            try:
                self._server.start()
            except CannotStart as error:
                self._cannot_start = error
                raise
            self._port = Port(self._server, self._ssh, self._device)
        self._selected = (store, traffic)

    def start(self, *, load: float | None = None, count: int | None = None) -> TrexPlayback:
        """Send flat out, or at `load` packets per second; until stopped, or until `count` packets are sent."""
        check_load(load)
        if self._port is None or self._selected is None:
            raise CannotMeasure("generator: no traffic was selected for TRex")
        store, traffic = self._selected
        streams = server_streams(store.streams(traffic), store.seed)
        if count is not None:
            streams = counted_streams(streams, store.by_stream(traffic, count))
        if streams != self._loaded:
            self._port.load(streams)
            self._loaded = streams
        self._port.start(load)
        return TrexPlayback(self._port, load, count)

    def close(self) -> None:
        """Stop the server. `use` starts it again."""
        self._server.stop()
        self._port = self._loaded = None


def trex_in_image(project: Project) -> str | None:
    """The TRex version in the generator's image; None if the image has no TRex or was not built yet."""
    try:
        version = built_boxes(project).get("generator", {}).get("trex", {}).get("version")
    except CannotMeasure:
        return None
    return None if version is None else str(version)


class TrexKind:
    """The engine `trex`: stateless streams, and TCP connections in its advanced stateful mode."""

    name, position, automatic = "trex", 1, True

    def availability(self, project: Project) -> Availability:
        version = trex_in_image(project)
        if version is not None:
            return Availability(True, f"the generator's image holds TRex {version}")
        return Availability(
            False,
            "the generator's image holds no TRex",
            "FWLAB_TREX_URL=/path/to/vX.Y.tar.gz FWLAB_TREX_SHA256=... make boxes",
        )

    def check(self, store: TrafficStore, traffic: str, *, asked: bool) -> None:
        check_traffic(store, traffic)
        if not asked and not varies_all(store.streams(traffic)):
            raise BadInput(f"{traffic}: TRex does not number the segments of TCP", "use `--engine replay`")

    def make(self, ssh: Ssh, topology: Topology, *, emulated: bool) -> Trex:
        return Trex(ssh, topology, small=emulated)

    def tcp_endpoints(
        self, generator: Ssh, sink: Ssh, topology: Topology, connections: Connections, *, emulated: bool
    ) -> AbstractContextManager[TcpEndpoints] | None:
        return trex_tcp_endpoints(generator, sink, topology, connections, small=emulated)


ENGINE = TrexKind()


#: Number of the first stream. Number 0 means all streams in TRex's statistics.
FIRST_ID = 1


def server_streams(streams: Sequence[dict[str, Any]], seed: int = 1) -> list[dict[str, Any]]:
    """The parameters of `add_stream` for each enabled stream: `{"stream_id": …, "stream": …}`.

    The server identifies streams by number, not by name. Streams without a random_seed get the one that the frame table
    uses. Header fields that no exercise is about are drawn as in the frame table, though not to the same values.
    Raises BadInput for a profile that ends: TRex would not repeat it.
    """
    parsed = parse_streams(streams)
    _check_endless(parsed)
    return [
        {
            "stream_id": FIRST_ID + stream.index,
            "stream": {
                **streams[stream.index],
                "vm": _varied(stream, streams[stream.index].get("vm", {})),
                "stream_id": FIRST_ID + stream.index,
                "next_stream_id": FIRST_ID + stream.following if stream.following >= 0 else -1,
                "random_seed": stream.random_seed or seed + stream.index,
            },
        }
        for stream in parsed
        if stream.enabled
    ]


def varies_all(streams: Sequence[dict[str, Any]]) -> bool:
    """Whether TRex draws every header field that the frame table draws. It does not number the segments of TCP."""
    return not any(_protocol(stream) == TCP for stream in parse_streams(streams) if stream.enabled)


def _protocol(stream: Stream) -> int | None:
    version, at = ip_header(stream.data)
    return stream.data[at + (9 if version == IPV4 else 6)] if version else None


def _varied(stream: Stream, program: dict[str, Any]) -> dict[str, Any]:
    """The stream's program, which also draws identification and TTL, or flow label and hop limit."""
    version, at = ip_header(stream.data)
    if not version or _protocol(stream) == TCP:
        return program
    number, hops = (at + 4, at + 8) if version == IPV4 else (at + 2, at + 7)
    drawn = [*_random("number", 2, 0, 0xFFFF, number), *_random("hops", 1, MIN_TTL, MIN_TTL + TTLS - 1, hops)]
    own = program.get("instructions", [])
    fixes = any(
        (isinstance(ins, FixIpv4) and ins.pkt_offset == at) or (isinstance(ins, FixHw) and ins.l2_len == at)
        for ins in stream.instructions
    )
    fix = [] if fixes or version == IPV6 else [{"type": "fix_checksum_ipv4", "pkt_offset": at}]
    return {**program, "instructions": [*drawn, *own, *fix]}


def _random(name: str, size: int, low: int, high: int, at: int) -> list[dict[str, Any]]:
    """A random variable, and what writes it into the packet."""
    name = f"fwlab-{name}"
    limits = {"init_value": low, "min_value": low, "max_value": high, "step": 1}
    variable = {"type": "flow_var", "name": name, "size": size, "op": "random", "split_to_cores": True, **limits}
    write = {"type": "write_flow_var", "name": name, "pkt_offset": at, "add_value": 0, "is_big_endian": True}
    return [variable, write]


def counted_streams(streams: Sequence[dict[str, Any]], counts: Mapping[int, int]) -> list[dict[str, Any]]:
    """Turn continuous streams into bursts of `counts` packets (by index in the profile), at the same rates.

    Streams without packets are left out. Raises BadInput for a stream that is already a burst.
    """
    bursts = []
    for item in streams:
        stream, index = item["stream"], item["stream_id"] - FIRST_ID
        if stream["mode"]["type"] != "continuous":
            raise BadInput(
                f"stream {index + 1}: TRex can count the packets of continuous streams only",
                "make the streams of a counted traffic continuous, or use `--engine replay`",
            )
        if counts.get(index):
            mode = {"type": "single_burst", "rate": stream["mode"]["rate"], "total_pkts": counts[index]}
            bursts.append({**item, "stream": {**stream, "mode": mode}})
    return bursts


def _check_endless(streams: Sequence[Stream]) -> None:
    sending = [stream for stream in streams if stream.enabled and not stream.silent]
    if any(endless(stream, streams) for stream in sending):
        return
    raise BadInput(
        "the profile ends, and TRex does not repeat it",
        "make a stream continuous, make the first burst the `next` of the last, or use `--engine replay`",
    )
