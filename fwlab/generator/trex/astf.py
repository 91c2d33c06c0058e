# SPDX-License-Identifier: GPL-2.0-or-later
"""TCP connections by TRex in its advanced stateful mode (ASTF): TRex provides the clients, nginx on the sink answers.

TRex has its own TCP stack and uses the generator's link; its second port is a dummy. The generator's kernel is not
involved: it has none of the clients' addresses and ignores packets to them.

The profile is made of the connections that a lab declares. `astf_profile` has TRex at both ends; `astf_form` only its
clients, for a lab's own server. In both, requests and answers are as long as those of wrk and nginx (tcp_config.py), so
that the packets have the same lengths.
"""

import base64
import contextlib
import ipaddress
import json
import textwrap
import time
from collections.abc import Iterator
from typing import Any

from fwlab.generator.tcp_config import first_address
from fwlab.generator.tcp_endpoints import RTO_MIN_S, Retransmissions, http_server, link_settings
from fwlab.generator.traffic_store import FIRST_LINK
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

    def connect(self) -> None:
        """Nothing: TRex opens its connections whatever becomes of the first."""

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


#: Default of the profile's new connections per second.
CPS = 1000
#: Delay after connecting and after the answer (microseconds). Without it TRex would combine the ACK of the answer with
#: its FIN. It combines the ACK of the server's SYN with the request in any case, so that a connection has eight
#: packets, not nine as with wrk and the kernel.
PAUSE_US = 1000
_PROFILE = '''\
"""{title}

Written by `fwlab traffic astf {lab} {name}`. TRex's first port has the clients, its second port the
servers. Each connection fetches one object, and the server closes it, as nginx does.
{background}"""

import argparse

from trex.astf.api import (
    ASTFAssociation,
    ASTFAssociationRule,
    ASTFIPGen,
    ASTFIPGenDist,
    ASTFIPGenGlobal,
    ASTFProfile,
    ASTFProgram,
    ASTFTCPClientTemplate,
    ASTFTCPServerTemplate,
    ASTFTemplate,
)

CLIENTS = ["{clients[0]}", "{clients[1]}"]
SERVERS = ["{servers[0]}", "{servers[1]}"]
PORT = {port}
REQUEST = "GET / HTTP/1.1\\r\\nHost: {host}:{port}\\r\\nConnection: close\\r\\n\\r\\n"
ANSWER = (
    "HTTP/1.1 200 OK\\r\\n"
    "Server: nginx\\r\\n"
    "Date: Thu, 01 Jan 1970 00:00:00 GMT\\r\\n"
    "Content-Type: application/octet-stream\\r\\n"
    "Content-Length: {object_bytes}\\r\\n"
    "Connection: close\\r\\n"
    "\\r\\n"
) + "x" * {object_bytes}


class TcpConnections:
    def get_profile(self, tunables, **kwargs):
        parser = argparse.ArgumentParser(description="TCP connections of {lab} {name}")
        parser.add_argument("--cps", type=float, default={cps}, help="new connections per second at most")
        parser.add_argument("--concurrent", type=int, default={concurrent}, help="open at a time; 0: any number")
        asked = parser.parse_args(tunables)

        client = ASTFProgram()
        client.send(REQUEST)
        client.recv(len(ANSWER))
        client.wait_for_peer_close()
        server = ASTFProgram()
        server.recv(len(REQUEST))
        server.send(ANSWER)

        # No offset: a second pair of ports would use addresses outside the lab.
        addresses = ASTFIPGen(
            glob=ASTFIPGenGlobal(ip_offset="0.0.0.0"),
            dist_client=ASTFIPGenDist(ip_range=CLIENTS, distribution="seq"),
            dist_server=ASTFIPGenDist(ip_range=SERVERS, distribution="seq"),
        )
        template = ASTFTemplate(
            # `cont`: open a new connection whenever one has ended (a closed loop).
            client_template=ASTFTCPClientTemplate(
                program=client, ip_gen=addresses, port=PORT, cps=asked.cps, limit=asked.concurrent, cont=True
            ),
            server_template=ASTFTCPServerTemplate(
                program=server, assoc=ASTFAssociation(rules=ASTFAssociationRule(port=PORT))
            ),
        )
        return ASTFProfile(default_ip_gen=addresses, templates=template)


def register():
    return TcpConnections()
'''


def astf_profile(lab: str, name: str, connections: Connections) -> str:
    """The ASTF profile, a Python file, for the TCP connections that `lab` declares as traffic `name`."""
    return _PROFILE.format(
        title=f"{lab} {name}: TCP connections as lab.yml declares them.",
        lab=lab,
        name=name,
        background=_background_note(connections),
        clients=_range(connections.clients),
        servers=_range(connections.servers),
        host=first_address(connections.servers),
        port=connections.port,
        object_bytes=connections.object_bytes,
        concurrent=connections.concurrent,
        cps=CPS,
    )


def _range(prefix: str) -> tuple[str, str]:
    """First and last address of the prefix, all of which are used."""
    network = ipaddress.IPv4Network(prefix)
    return str(network[0]), str(network[-1])


def _background_note(connections: Connections) -> str:
    if connections.background is None:
        return ""
    note = (
        f"The lab also sends its traffic {connections.background} in the background, "
        f"{connections.background_pps:g} packets per second. That is a stateless profile and not included here."
    )
    return "\n" + textwrap.fill(note, 118) + "\n"


def astf_form(connections: Connections, answer_bytes: int, *, cps: float, limit: int, repeat: bool) -> dict[str, Any]:
    """The profile in the form that TRex's server expects. TRex requires servers in it, but they get no packet.

    A client closes once it has its answer, as wrk does. If it waited for the server to close, it would wait for ever:
    nginx sends its FIN with the answer, and TRex notices only a FIN that arrives later.

    answer_bytes  length of one HTTP response with its headers
    cps           new connections per second, at most
    limit         total number of connections; with `repeat`, the number open at a time
    repeat        open a new connection whenever one has ended
    """
    host = f"{first_address(connections.servers)}:{connections.port}"
    request = f"GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    take, give = {"name": "rx", "min_bytes": answer_bytes}, {"name": "tx", "buf_index": 0}
    pause = {"name": "delay", "usec": PAUSE_US}
    client = {
        "program_index": 0,
        "ip_gen": {"dist_client": {"index": 0}, "dist_server": {"index": 1}},
        "cluster": {},
        "port": connections.port,
        "cps": cps,
        "limit": limit,
        "cont": repeat,
    }
    return {
        "buf_list": [base64.b64encode(request.encode()).decode()],
        "ip_gen_dist_list": [_addresses(connections.clients, "c"), _addresses(connections.servers, "s")],
        "program_list": [
            {"commands": [pause, give, take, pause]},
            {"commands": [{"name": "rx", "min_bytes": len(request)}]},
        ],
        "templates": [
            {
                "client_template": client,
                "server_template": {"program_index": 1, "assoc": [{"port": connections.port}]},
            }
        ],
        "tg_names": [],
    }


def _addresses(prefix: str, side: str) -> dict[str, str]:
    first, last = _range(prefix)
    return {"ip_start": first, "ip_end": last, "distribution": "seq", "dir": side, "ip_offset": "0.0.0.0"}  # noqa: S104


def counters(described: dict[str, Any], values: dict[str, Any]) -> dict[str, int]:
    """The clients' counters by name, from TRex's two answers. TRex omits counters that are zero."""
    names = {str(item["id"]): item["name"] for item in described["data"]}
    return {names[number]: value for number, value in values["client"].items() if number in names}


#: TRex's counters of failed connections and of retransmissions.
_FAILED = ("tcps_drops", "tcps_conndrops")
_RETRANSMITTED = ("tcps_sndrexmitpack", "tcps_rexmttimeo", "tcps_rexmttimeo_syn")


def clients_result(
    found: dict[str, int],
    answer_bytes: int,
    *,
    concurrent: int,
    duration_s: float,
    server_resent: int,
    rate: float | None = None,
) -> Clients:
    """The clients' counts after a run. An answer is one packet, so it arrives completely or not at all.

    Connections that were open when TRex was stopped are neither completed nor failed.
    """
    opened, completed = found.get("tcps_connattempt", 0), found.get("tcps_rcvbyte", 0) // answer_bytes
    failed, retransmitted = (sum(found.get(name, 0) for name in names) for names in (_FAILED, _RETRANSMITTED))
    if completed > opened:
        raise CannotMeasure(f"generator: TRex counts {completed} answers to {opened} connections", "fwlab doctor")
    return Clients(
        program="trex",
        opened=opened,
        completed=completed,
        failed=failed,
        retransmitted=retransmitted + server_resent,
        concurrent=concurrent,
        duration_s=duration_s,
        intended_load=rate,
    )
