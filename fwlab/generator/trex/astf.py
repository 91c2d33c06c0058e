# SPDX-License-Identifier: GPL-2.0-or-later
"""TCP connections by TRex in its advanced stateful mode (ASTF): TRex provides the clients, nginx on the sink answers.

TRex has its own TCP stack and uses the generator's link; its second port is a dummy. The generator's kernel is not
involved: it has none of the clients' addresses and ignores packets to them.
"""

import contextlib
import json
import time
from collections.abc import Iterator
from typing import Any

from fwlab.generator.tcp_endpoints import RTO_MIN_S, Retransmissions, http_server, link_settings
from fwlab.generator.traffic_store import FIRST_LINK
from fwlab.generator.trex.astf_profile import astf_form, clients_result, counters
from fwlab.generator.trex.server import STATEFUL, Server
from fwlab.host.ssh import Ssh
from fwlab.model.declared_traffic import Connections
from fwlab.model.errors import CannotMeasure
from fwlab.model.topology import Topology
from fwlab.model.trial import Clients

#: TRex's default profile name, and the states of a profile that matter here.
PROFILE = "_"
_LOADED, _SENDING = 1, 4
_IDLE_STATES = (0, _LOADED)
#: New connections per second at most, by `small`: enough that each starts as soon as another one ends.
FLAT_OUT_CPS = {True: 5000.0, False: 500_000.0}
#: Open connections at most on a slowed DUT. TRex retransmits a SYN after half a second, which cannot be configured.
#: With more connections answers would take longer; with fewer the DUT would be idle at times.
MAX_OPEN = 128
#: Seconds between two polls, and time limit of a start.
POLL_S, START_TIMEOUT_S = 0.2, 60.0
_HINT = "use `--engine replay`"


class AstfClient:
    """Plays one profile after another on a server in stateful mode."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._handler = server.ask("acquire", user="fwlab", session_id=1, force=True)["handler"]

    def start(self, form: dict[str, Any]) -> None:
        """Start a profile. Returns once it sends, or has already finished. Raises CannotMeasure."""
        whole = {"frag_first": True, "frag_last": True, "fragment": json.dumps(form)}
        self._ask("profile_fragment", **whole)
        endless = {"duration": -1.0, "e_duration": 0.0, "t_duration": 0.0, "dump_interval": 0.0}
        self._ask("start", mult=1.0, nc=False, latency_pps=0, ipv6=False, client_mask=0xFFFFFFFF, **endless)
        if not self._await((*_IDLE_STATES, _SENDING), START_TIMEOUT_S):
            raise CannotMeasure(f"generator: TRex does not start within {START_TIMEOUT_S:g} s", _HINT)

    def stop(self) -> None:
        """Open no more connections and drop the open ones."""
        if self._state() == _SENDING:
            self._ask("stop")

    def ended(self, timeout: float) -> bool:
        """Wait until the profile has finished; False if that takes longer than `timeout` seconds."""
        return self._await(_IDLE_STATES, timeout)

    def counts(self) -> dict[str, int]:
        """The clients' counters since `start`, by name."""
        named = {"profile_id": PROFILE}
        return counters(self._server.ask("get_counter_desc", **named), self._server.ask("get_counter_values", **named))

    def _state(self) -> int:
        return int(self._server.ask("sync", profile_id="sync")["state_profile"][PROFILE])

    def _await(self, states: tuple[int, ...], timeout: float) -> bool:
        deadline = time.monotonic() + timeout
        while self._state() not in states:
            if time.monotonic() > deadline:
                return False
            time.sleep(POLL_S)
        return True

    def _ask(self, method: str, **parameters: Any) -> Any:
        return self._server.ask(method, handler=self._handler, profile_id=PROFILE, **parameters)


class TrexConnectionLoad:
    """Connections that TRex opens flat out, until `stop`."""

    def __init__(self, client: AstfClient, answer_bytes: int, concurrent: int, sink: Retransmissions) -> None:
        self._client, self._answer_bytes, self._concurrent, self._sink = client, answer_bytes, concurrent, sink
        self._began = time.monotonic()

    def stop(self, timeout: float = 60) -> Clients:
        """Stop opening connections and return TRex's counts. `timeout`: seconds TRex may take."""
        self._client.stop()
        lasted = time.monotonic() - self._began
        if not self._client.ended(timeout):
            raise CannotMeasure(f"generator: TRex does not end its connections within {timeout:g} s", _HINT)
        return clients_result(
            self._client.counts(),
            self._answer_bytes,
            concurrent=self._concurrent,
            duration_s=round(lasted, 3),
            server_resent=self._sink.since(),
        )

    def abandon(self) -> None:
        """Stop on the way out of a failure."""
        with contextlib.suppress(CannotMeasure):
            self._client.stop()


class TrexTcpEndpoints:
    """TRex's clients and the sink's server; made by `trex_tcp_endpoints`."""

    def __init__(
        self, client: AstfClient, sink: Ssh, connections: Connections, answer_bytes: int, *, small: bool
    ) -> None:
        self._client, self._sink, self._small = client, sink, small
        self.connections, self.answer_bytes = connections, answer_bytes

    def flat_out(self) -> TrexConnectionLoad:
        """Keep connections open, as many as the DUT forwards, until stopped."""
        concurrent = min(self.connections.concurrent, MAX_OPEN) if self._small else self.connections.concurrent
        resending = Retransmissions(self._sink)
        self._start(FLAT_OUT_CPS[self._small], concurrent, repeat=True)
        return TrexConnectionLoad(self._client, self.answer_bytes, concurrent, resending)

    def at_rate(self, rate: float, count: int) -> Clients:
        """Open `count` connections, `rate` per second of the generator's clock."""
        resending = Retransmissions(self._sink)
        self._start(rate, count, repeat=False)
        began, most = time.monotonic(), 0
        while not self._client.ended(POLL_S):
            found = self._client.counts()
            most = max(most, found.get("tcps_connattempt", 0) - found.get("tcps_closed", 0))
            if time.monotonic() > began + count / rate * 3 + 60:
                self._client.stop()
                break
        found, lasted = self._client.counts(), time.monotonic() - began
        opened = found.get("tcps_connattempt", 0)
        if opened < count:
            raise CannotMeasure(f"generator: TRex opened {opened} of {count} connections in {lasted:.0f} s", _HINT)
        resent = resending.since()
        return clients_result(
            found, self.answer_bytes, concurrent=most, duration_s=round(lasted, 3), server_resent=resent, rate=rate
        )

    def _start(self, cps: float, limit: int, *, repeat: bool) -> None:
        self._client.start(astf_form(self.connections, self.answer_bytes, cps=cps, limit=limit, repeat=repeat))


@contextlib.contextmanager
def trex_tcp_endpoints(
    generator: Ssh, sink: Ssh, topology: Topology, connections: Connections, *, small: bool
) -> Iterator[TrexTcpEndpoints]:
    """Start TRex's server, which takes a minute, and set up the sink; stop and restore both afterwards.

    Raises CannotMeasure if there is no TRex, if its server does not start, or if nginx does not answer.
    """
    server = Server(generator, topology, topology.end(FIRST_LINK, "generator").dev, small=small, mode=STATEFUL)
    try:
        generator.run(link_settings(connections.servers, RTO_MIN_S))
        server.start()
        with http_server(sink, connections) as answer_bytes:
            yield TrexTcpEndpoints(AstfClient(server), sink, connections, answer_bytes, small=small)
    finally:
        server.stop()
        with contextlib.suppress(CannotMeasure):
            generator.run(link_settings(connections.servers, None))
