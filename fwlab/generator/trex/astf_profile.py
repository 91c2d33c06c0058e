# SPDX-License-Identifier: GPL-2.0-or-later
"""TCP connections for TRex: its profile for the advanced stateful mode (ASTF), written from what a lab declares.

`astf_profile` is for TRex at both ends, `astf_form` for clients that meet a lab's own server. Either way the two ends
say what wrk and nginx say (connections.py), byte for byte as long, so that the packets have the same lengths. Pure.
"""

from __future__ import annotations

import base64
import ipaddress
import textwrap
from typing import Any

from fwlab.generator.tcp_config import front
from fwlab.model.declared_traffic import Connections
from fwlab.model.errors import CannotMeasure
from fwlab.model.trial import Clients

#: New connections per second where the profile is not told another number.
CPS = 1000
#: Between being connected and asking, and between the answer and the end. Without it TRex sends its acknowledgement of
#: the answer with its own end. That of the server's SYN goes with the request all the same, so a connection has eight
#: packets and not the nine of wrk and the kernel.
PAUSE_US = 1000
_PROFILE = '''\
"""{title}

Written by `fwlab traffic astf {lab} {name}`. Clients are on the first port of TRex, servers on the second; each
connection fetches one object, and the server closes it, as nginx does.
{beside}"""

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

        # A second pair of ports would be given other addresses, which do not belong to the lab: no offset.
        addresses = ASTFIPGen(
            glob=ASTFIPGenGlobal(ip_offset="0.0.0.0"),
            dist_client=ASTFIPGenDist(ip_range=CLIENTS, distribution="seq"),
            dist_server=ASTFIPGenDist(ip_range=SERVERS, distribution="seq"),
        )
        template = ASTFTemplate(
            # `cont`: where one has ended the next may begin, which makes it a closed loop.
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
    """The profile for the connections that `lab` declares as traffic `name`: a Python file with `get_profile`."""
    return _PROFILE.format(
        title=f"{lab} {name}: TCP connections as lab.yml declares them.",
        lab=lab,
        name=name,
        beside=_beside(connections),
        clients=_range(connections.clients),
        servers=_range(connections.servers),
        host=front(connections.servers),
        port=connections.port,
        object_bytes=connections.object_bytes,
        concurrent=connections.concurrent,
        cps=CPS,
    )


def _range(prefix: str) -> tuple[str, str]:
    """First and last address: every one of the prefix is used."""
    network = ipaddress.IPv4Network(prefix)
    return str(network[0]), str(network[-1])


def _beside(connections: Connections) -> str:
    if connections.background is None:
        return ""
    words = (
        f"The lab plays its traffic {connections.background} beside them, {connections.background_pps:g} packets per "
        "second. "
        "That is a stateless profile, and not in here."
    )
    return "\n" + textwrap.fill(words, 118) + "\n"


def astf_form(connections: Connections, answer_bytes: int, *, cps: float, limit: int, again: bool) -> dict[str, Any]:
    """The profile as TRex's server takes it. Its servers are there because TRex asks for some; no packet is theirs.

    A client closes when it has its answer, as wrk does. One that waited for the server to close first would wait for
    ever: nginx sends its end with the answer, and TRex looks out for it only after that.

    answer_bytes  length of an answer, with HTTP's head
    cps           connections begun in a second, at most
    limit         how many in all; `again`: how many are open at a time, as one may begin where another has ended
    """
    request = f"GET / HTTP/1.1\r\nHost: {front(connections.servers)}:{connections.port}\r\nConnection: close\r\n\r\n"
    take, give = {"name": "rx", "min_bytes": answer_bytes}, {"name": "tx", "buf_index": 0}
    pause = {"name": "delay", "usec": PAUSE_US}
    client = {
        "program_index": 0,
        "ip_gen": {"dist_client": {"index": 0}, "dist_server": {"index": 1}},
        "cluster": {},
        "port": connections.port,
        "cps": cps,
        "limit": limit,
        "cont": again,
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
    """The clients' counters by name, from TRex's two answers; those of nought are not among them."""
    names = {str(item["id"]): item["name"] for item in described["data"]}
    return {names[number]: value for number, value in values["client"].items() if number in names}


#: TRex's counters of connections that were dropped, begun or not yet, and of what it sent again.
_FAILED = ("tcps_drops", "tcps_conndrops")
_AGAIN = ("tcps_sndrexmitpack", "tcps_rexmttimeo", "tcps_rexmttimeo_syn")


def counted(
    found: dict[str, int],
    answer_bytes: int,
    *,
    concurrent: int,
    duration_s: float,
    server_resent: int,
    rate: float | None = None,
) -> Clients:
    """What TRex's clients counted in a run that has ended. An answer is one packet: it came whole or not at all.

    Those still open when TRex was stopped are neither completed nor failed.
    """
    opened, completed = found.get("tcps_connattempt", 0), found.get("tcps_rcvbyte", 0) // answer_bytes
    failed, again = (sum(found.get(name, 0) for name in names) for names in (_FAILED, _AGAIN))
    if completed > opened:
        raise CannotMeasure(f"generator: TRex counts {completed} answers to {opened} connections", "fwlab doctor")
    return Clients(
        program="trex",
        opened=opened,
        completed=completed,
        failed=failed,
        retransmitted=again + server_resent,
        concurrent=concurrent,
        duration_s=duration_s,
        intended_load=rate,
    )
