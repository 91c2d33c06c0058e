# SPDX-License-Identifier: GPL-2.0-or-later
"""TCP connections opened by TRex in its advanced stateful mode (ASTF): it is the clients, the sink's nginx answers.

TRex has its own TCP and the generator's one link; its second port is a dummy. The generator's kernel takes no part: it
has none of the clients' addresses, so what comes back for them is none of its business.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator
from typing import Any

from fwlab.generator.tcp_endpoints import Retransmissions, answering, link
from fwlab.generator.traffic_store import FIRST_LINK
from fwlab.generator.trex.astf_profile import astf_form, counted, counters
from fwlab.generator.trex.server import STATEFUL, Server
from fwlab.host.ssh import Ssh
from fwlab.model.declared_traffic import Connections
from fwlab.model.errors import CannotMeasure
from fwlab.model.topology import Topology
from fwlab.model.trial import Clients

#: The one profile of ours, as TRex names it, and two of the states that it may be in.
PROFILE = "_"
_LOADED, _SENDING = 1, 4
_AT_REST = (0, _LOADED)
#: Every connection may begin as soon as there is room for it: so many a second (small machines, others).
FLAT_OUT_CPS = {True: 5000.0, False: 500_000.0}
#: TRex sends a SYN again after half a second, whatever it is told. On a slowed DUT no more than so many connections are
#: open, so that an answer comes sooner; with fewer the DUT is idle at times.
MOST_OPEN = 128
#: How often it is asked whether it has begun or ended, and how long it may take over a beginning (s).
POLL_S, BEGIN_S = 0.2, 60.0
_HINT = "take `--engine replay`"


class AstfClient:
    """What plays one profile after another on a server in stateful mode."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._handler = server.ask("acquire", user="fwlab", session_id=1, force=True)["handler"]

    def start(self, form: dict[str, Any]) -> None:
        """Returns once it sends, or has sent all that it was to send. Raises CannotMeasure."""
        whole = {"frag_first": True, "frag_last": True, "fragment": json.dumps(form)}
        self._ask("profile_fragment", **whole)
        endless = {"duration": -1.0, "e_duration": 0.0, "t_duration": 0.0, "dump_interval": 0.0}
        self._ask("start", mult=1.0, nc=False, latency_pps=0, ipv6=False, client_mask=0xFFFFFFFF, **endless)
        if not self._await((*_AT_REST, _SENDING), BEGIN_S):
            raise CannotMeasure(f"generator: TRex does not begin within {BEGIN_S:g} s", _HINT)

    def stop(self) -> None:
        """Begin no more connections, and drop those that are open."""
        if self._state() == _SENDING:
            self._ask("stop")

    def ended(self, timeout: float) -> bool:
        """Wait until it sends no more; False where that takes longer."""
        return self._await(_AT_REST, timeout)

    def counts(self) -> dict[str, int]:
        """The clients' counters since `start`."""
        named = {"profile_id": PROFILE}
        return counters(self._server.ask("get_counter_desc", **named), self._server.ask("get_counter_values", **named))

    def _state(self) -> int:
        return self._server.ask("sync", profile_id="sync")["state_profile"][PROFILE]

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
    """Connections being opened flat out, until `stop`."""

    def __init__(self, player: AstfClient, answer_bytes: int, concurrent: int, sink: Retransmissions) -> None:
        self._player, self._answer_bytes, self._concurrent, self._sink = player, answer_bytes, concurrent, sink
        self._began = time.monotonic()

    def stop(self, timeout: float = 60) -> Clients:
        """End it now and return what TRex counted. `timeout` is how long TRex may take over it (s)."""
        self._player.stop()
        lasted = time.monotonic() - self._began
        if not self._player.ended(timeout):
            raise CannotMeasure(f"generator: TRex does not end its connections within {timeout:g} s", _HINT)
        return counted(
            self._player.counts(),
            self._answer_bytes,
            concurrent=self._concurrent,
            duration_s=round(lasted, 3),
            server_resent=self._sink.since(),
        )

    def abandon(self) -> None:
        """End it, come what may."""
        with contextlib.suppress(CannotMeasure):
            self._player.stop()


class TrexTcpEndpoints:
    """Both ends, set up for what a lab declares; made by `trex_tcp_endpoints`."""

    def __init__(
        self, player: AstfClient, sink: Ssh, connections: Connections, answer_bytes: int, *, small: bool
    ) -> None:
        self._player, self._sink, self._small = player, sink, small
        self.connections, self.answer_bytes = connections, answer_bytes

    def flat_out(self) -> TrexConnectionLoad:
        """As many as the DUT lets through, until stopped."""
        concurrent = min(self.connections.concurrent, MOST_OPEN) if self._small else self.connections.concurrent
        resending = Retransmissions(self._sink)
        self._start(FLAT_OUT_CPS[self._small], concurrent, again=True)
        return TrexConnectionLoad(self._player, self.answer_bytes, concurrent, resending)

    def at_rate(self, rate: float, count: int) -> Clients:
        """`count` connections, `rate` begun each second of the generator's clock."""
        resending = Retransmissions(self._sink)
        self._start(rate, count, again=False)
        began, found, most = time.monotonic(), {}, 0
        while not self._player.ended(POLL_S):
            found = self._player.counts()
            most = max(most, found.get("tcps_connattempt", 0) - found.get("tcps_closed", 0))
            if time.monotonic() > began + count / rate * 3 + 60:
                self._player.stop()
                break
        found, lasted = self._player.counts(), time.monotonic() - began
        opened = found.get("tcps_connattempt", 0)
        if opened < count:
            raise CannotMeasure(f"generator: TRex opened {opened} of {count} connections in {lasted:.0f} s", _HINT)
        resent = resending.since()
        return counted(
            found, self.answer_bytes, concurrent=most, duration_s=round(lasted, 3), server_resent=resent, rate=rate
        )

    def _start(self, cps: float, limit: int, *, again: bool) -> None:
        self._player.start(astf_form(self.connections, self.answer_bytes, cps=cps, limit=limit, again=again))


@contextlib.contextmanager
def trex_tcp_endpoints(
    generator: Ssh, sink: Ssh, topology: Topology, connections: Connections, *, small: bool
) -> Iterator[TrexTcpEndpoints]:
    """Both ends ready; as they were before on leaving. TRex's server starts, which takes a minute, and ends with it.

    Raises CannotMeasure where there is no TRex, its server does not come up, or nginx does not answer.
    """
    server = Server(generator, topology, topology.end(FIRST_LINK, "generator").dev, small=small, mode=STATEFUL)
    try:
        generator.run(link(connections.servers, ours=True))
        server.start()
        with answering(sink, connections) as answer_bytes:
            yield TrexTcpEndpoints(AstfClient(server), sink, connections, answer_bytes, small=small)
    finally:
        server.stop()
        with contextlib.suppress(CannotMeasure):
            generator.run(link(connections.servers, ours=False))
