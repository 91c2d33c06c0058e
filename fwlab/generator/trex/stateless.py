# SPDX-License-Identifier: GPL-2.0-or-later
"""The engine `trex`: TRex's own server plays the profile's streams."""

from __future__ import annotations

import contextlib
import time
from typing import Any

from fwlab.generator.protocol import PlaybackResult, check_load
from fwlab.generator.traffic_store import FIRST_LINK, TrafficStore
from fwlab.generator.trex.server import Server
from fwlab.generator.trex.streams import counted_streams, server_streams
from fwlab.host.ssh import Ssh
from fwlab.model.errors import CannotMeasure
from fwlab.model.topology import Topology

#: TRex's number of the link to the DUT; the other port is a dummy.
PORT = 0
#: How often a run's end is looked for, and how long TRex's own counters may take to say the last of it (s).
POLL_S, SETTLED_S, UNSETTLED_S = 0.2, 1.5, 30.0
#: The link's speed as TRex takes it: far more than it can send, so it never waits.
FLAT_OUT = {"type": "percentage", "op": "abs", "value": 100}
_TRANSMITTING = ("TX", "PAUSE")
_STATISTICS = "cd /sys/class/net/{device}/statistics 2>/dev/null && cat tx_packets tx_dropped || echo"


class TrexPlayback:
    """Traffic under way."""

    def __init__(self, port: Port, load: float | None, count: int | None) -> None:
        self._port, self._load, self._count = port, load, count
        self._began = self._seen = time.monotonic()

    def stop(self, timeout: float = 60) -> PlaybackResult:
        """End it now and return the counts. `timeout` is how long TRex may take over it (s)."""
        self._port.stop()
        self._seen = time.monotonic()
        self._await_end(timeout)
        return self._played()

    def wait(self, timeout: float) -> PlaybackResult:
        """Wait until a counted run ends by itself; one that takes longer is ended."""
        if not self._await_end(timeout):
            return self.stop()
        return self._played()

    def abandon(self) -> None:
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
        attempted, sent = self._port.sent()
        # The end was seen a moment late; a run that kept up took as long as it was asked to.
        took = self._seen - self._began
        if self._count is not None and self._load is not None:
            took = max(took, self._count / self._load)
        return PlaybackResult(sent, max(attempted, self._count or 0), took, self._load)


class Port:
    """TRex's port to the DUT, owned by this session."""

    def __init__(self, server: Server, ssh: Ssh, device: str) -> None:
        self._server, self._ssh, self._device = server, ssh, device
        self._before: tuple[int, int, int] | None = None
        self._handler = self._ask("acquire", user="fwlab", session_id=1, force=True)
        self._ask("stop_traffic", handler=self._handler, profile_id="_")

    def load(self, streams: list[dict[str, Any]]) -> None:
        """These streams, and no others."""
        owned = {"handler": self._handler, "port_id": PORT, "profile_id": "_"}
        self._ask("remove_all_streams", handler=self._handler, profile_id="_")
        self._server.asked(lambda rpc: rpc.calls("add_stream", [{**owned, **item} for item in streams]))

    def start(self, load: float | None) -> None:
        rate = FLAT_OUT if load is None else {"type": "pps", "op": "abs", "value": load}
        # Reading takes seconds, in which a DUT would wait for its overload; mostly the last run's end will do.
        self._before = self._before or self._settled()
        parameters = {"mul": rate, "duration": -1, "force": True, "core_mask": (1 << 64) - 1}
        self._ask("start_traffic", handler=self._handler, profile_id="_", **parameters)

    def stop(self) -> None:
        self._ask("stop_traffic", handler=self._handler, profile_id="_")

    def forget(self) -> None:
        """The counts of the run that just ended are nobody's."""
        self._before = None

    def transmits(self) -> bool:
        return self._ask("get_port_status")["state"] in _TRANSMITTING

    def sent(self) -> tuple[int, int]:
        """Packets since the last look that TRex gave away, and of these what left the NIC.

        A frame that the kernel's queue has no room for is lost after TRex has counted it, so where the kernel drives
        the NIC its own counter is asked as well.
        """
        before, now = self._before, self._settled()
        self._before = now
        given, on_wire, dropped = (a - b for a, b in zip(now, before, strict=True))
        if now[1] < 0:
            return given, given
        return given, max(0, min(given, on_wire, given - dropped))

    def _settled(self) -> tuple[int, int, int]:
        """TRex's count, the kernel's, and the kernel's losses, once TRex's no longer changes; -1: no such counter."""
        deadline = time.monotonic() + UNSETTLED_S
        count, since = self._count(), time.monotonic()
        while time.monotonic() < min(deadline, since + SETTLED_S):
            time.sleep(POLL_S)
            again = self._count()
            if again != count:
                count, since = again, time.monotonic()
        numbers = self._ssh.run(_STATISTICS.format(device=self._device)).split()
        on_wire, dropped = (int(n) for n in numbers) if len(numbers) == 2 else (-1, -1)
        return count, on_wire, dropped

    def _count(self) -> int:
        return self._ask("get_port_stats")["opackets"]

    def _ask(self, method: str, **parameters: Any) -> Any:
        return self._server.ask(method, port_id=PORT, **parameters)


def check_traffic(store: TrafficStore, traffic: str) -> None:
    """Raises BadInput for a traffic that TRex cannot play. Nothing is started."""
    store.table(traffic)  # refuses addresses outside the lab, whichever engine plays
    server_streams(store.streams(traffic), store.seed)


class Trex:
    """The engine `trex`. Its server starts with the first traffic and runs until `close`."""

    name = "trex"

    def __init__(self, ssh: Ssh, topology: Topology, *, small: bool) -> None:
        self._ssh = ssh
        self._device = topology.end(FIRST_LINK, "generator").dev
        self._server = Server(ssh, topology, self._device, small=small)
        self._port: Port | None = None
        self._selected: tuple[TrafficStore, str] | None = None
        self._loaded: list[dict[str, Any]] | None = None

    def use(self, store: TrafficStore, traffic: str) -> None:
        """Streams of this traffic from now on. Raises BadInput where they are wrong, before anything starts."""
        check_traffic(store, traffic)
        if self._port is None:
            self._server.start()
            self._port = Port(self._server, self._ssh, self._device)
        self._selected = (store, traffic)

    def start(self, *, load: float | None = None, count: int | None = None) -> TrexPlayback:
        """Play flat out, or at `load` packets per second; until stopped, or `count` packets."""
        check_load(load)
        if self._port is None or self._selected is None:
            raise CannotMeasure("generator: TRex has no traffic to play")
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
        self._server.stop()
        self._port = self._loaded = None
