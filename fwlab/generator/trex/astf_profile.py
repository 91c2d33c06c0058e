# SPDX-License-Identifier: GPL-2.0-or-later
"""Generates TRex profiles for the advanced stateful mode (ASTF) from the TCP connections that a lab declares.

`astf_profile` has TRex at both ends; `astf_form` has only its clients, for a lab's own server. In both, requests and
answers are as long as those of wrk and nginx (tcp_config.py), so that the packets have the same lengths. Pure.
"""

import base64
import ipaddress
import textwrap
from typing import Any

from fwlab.generator.tcp_config import first_address
from fwlab.model.declared_traffic import Connections
from fwlab.model.errors import CannotMeasure
from fwlab.model.trial import Clients

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
