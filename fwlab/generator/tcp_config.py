# SPDX-License-Identifier: GPL-2.0-or-later
"""TCP connections as their programs understand them: what is loaded on the generator and the sink, and how
connections are counted from what crossed the DUT. Pure: texts and numbers only.

The client's program knows one address of its own and one server. Two stateless rules on the generator give each
connection one of the declared clients and servers, by its source port; answers are turned back the same way. So any
client program will do, and neither conntrack nor NAT works on the generator.
"""

from __future__ import annotations

import ipaddress
import json
import re

from fwlab.model.declared_traffic import Connections
from fwlab.model.errors import CannotMeasure
from fwlab.model.trial import Clients

TABLE = "fwlab-clients"
#: The chain that, once `shut`, lets no connection begin; those that are open go on.
GATE = "gate"
#: The file that the server serves, whatever is asked for.
OBJECT = "object"
#: Ethernet, IPv4 and TCP with time stamps, which both ends of these connections use; a SYN has options beside them.
HEADER_BYTES = 14 + 20 + 32
SYN_MORE_BYTES = 8

#: Settings of both ends, after S2's Appendix B, as far as a kernel of today has them and small objects need them:
#: many ports, soon free again; room for many that end and many that begin. Buffers are sized by the kernel itself.
#: No probe for a lost tail (TLP): behind a slowed DUT it would send again what is still on its way. And no look-up of a
#: packet's socket ahead of its turn (early demux): where acknowledgement and FIN come together, the first makes a
#: TIME_WAIT of the socket, and the second would be given to what is no more, lost, and sent again.
_BOTH_ENDS = {
    "net.ipv4.tcp_max_tw_buckets": "65536",
    "net.ipv4.tcp_fin_timeout": "15",
    "net.ipv4.tcp_early_retrans": "0",
    "net.ipv4.tcp_early_demux": "0",
    "net.core.netdev_max_backlog": "10000",
}
SYSCTLS = {
    "generator": {
        "net.ipv4.ip_local_port_range": "1024 65535",
        "net.ipv4.tcp_tw_reuse": "1",
        **_BOTH_ENDS,
    },
    "sink": {
        "net.core.somaxconn": "16384",
        "net.ipv4.tcp_max_syn_backlog": "16384",
        "net.ipv4.tcp_syncookies": "1",
        **_BOTH_ENDS,
    },
}


def front(prefix: str) -> str:
    """The first address of a prefix; of the servers', the one that the client's program is told."""
    return str(ipaddress.IPv4Network(prefix)[0])


def address_rules(connections: Connections, own: str) -> str:
    """The nft ruleset of the generator, whose own address is `own`."""
    leaving = _towards_servers(connections)
    arriving = f"ip saddr {connections.servers} ip daddr {connections.clients} tcp sport {connections.port}"
    return f"""table ip {TABLE}
delete table ip {TABLE}
table ip {TABLE} {{
  chain {GATE} {{
    type filter hook output priority raw - 1; policy accept;
  }}
  chain leaving {{
    type filter hook output priority raw; policy accept;
    {leaving} ip saddr set {_spread(connections.clients, 1)} ip daddr set {_spread(connections.servers, 2)}
  }}
  chain arriving {{
    type filter hook prerouting priority raw; policy accept;
    {arriving} ip saddr set {front(connections.servers)} ip daddr set {own}
  }}
}}
"""


def shut(connections: Connections) -> str:
    """The rule, as nft's arguments, behind which no connection leaves the generator that has not begun."""
    return f"rule ip {TABLE} {GATE} {_towards_servers(connections)} tcp flags & (syn | ack) == syn counter drop"


def _towards_servers(connections: Connections) -> str:
    return f"ip daddr {front(connections.servers)} tcp dport {connections.port}"


def _spread(prefix: str, seed: int) -> str:
    """An address of the prefix for each source port, as nft says it."""
    addresses = list(ipaddress.IPv4Network(prefix))
    elements = ", ".join(f"{place} : {address}" for place, address in enumerate(addresses))
    return f"jhash tcp sport mod {len(addresses)} seed {seed} map {{ {elements} }}"


def server_config(connections: Connections, pid_file: str, folder: str) -> str:
    """nginx's configuration: one object, the file OBJECT of `folder`; no log; the connection ends with the object.

    The server's last segment is held back until it closes (TCP_CORK), so object and FIN are one packet, and the client
    acknowledges both at once. Sent on their own, it was for the load of the host to say whether they had one
    acknowledgement or two: connections of plain routing had 9.8 to 11.8 packets, and cost as much more or less.
    """
    return f"""worker_processes 1;
user www-data;
pid {pid_file};
error_log /dev/null crit;
worker_rlimit_nofile 65536;
events {{ worker_connections 16384; multi_accept on; }}
http {{
  access_log off;
  server_tokens off;
  default_type application/octet-stream;
  keepalive_timeout 0;
  sendfile on;
  tcp_nopush on;
  open_file_cache max=4 inactive=1d;
  open_file_cache_valid 1d;
  etag off;
  if_modified_since off;
  max_ranges 0;
  add_header Last-Modified "";
  server {{
    listen {connections.port} backlog=16384;
    root {folder};
    location / {{ try_files /{OBJECT} =404; }}
  }}
}}
"""


def wrk_script() -> str:
    """wrk's Lua script: it says what it counted as one line of JSON."""
    return """function done(summary, latency, requests)
  local e = summary.errors
  print(string.format('{"answers":%d,"status":%d,"lost":%d}', summary.requests, e.status, e.connect + e.read + e.write))
end
"""


def kernel_counts(snmp: str) -> dict[str, int]:
    """TCP's counters in /proc/net/snmp: a line of names, a line of numbers."""
    lines = [line.split()[1:] for line in snmp.splitlines() if line.startswith("Tcp:")]
    return dict(zip(lines[0], map(int, lines[1]), strict=True))


def resent(before: str, after: str) -> int:
    """Segments that a kernel sent again between two readings of its counters."""
    return kernel_counts(after)["RetransSegs"] - kernel_counts(before)["RetransSegs"]


def flat_out(report: str, before: str, after: str, concurrent: int, duration_s: float, server_resent: int) -> Clients:
    """What wrk and its kernel counted. Those that waited at the gate when it was stopped have not been opened."""
    said = re.search(r"^\{.*\}$", report, re.MULTILINE)
    waiting = re.search(r"^waiting (\d+)$", report, re.MULTILINE)
    at_gate = re.search(r"\bcounter packets (\d+)", report)
    if not (said and waiting and at_gate):
        raise CannotMeasure(f"generator: wrk did not say what it counted: {report.strip()[-200:]}", "fwlab doctor")
    counted = json.loads(said[0])
    return Clients(
        program="wrk",
        opened=kernel_counts(after)["ActiveOpens"] - kernel_counts(before)["ActiveOpens"] - int(waiting[1]),
        completed=counted["answers"] - counted["status"],
        failed=counted["lost"] + counted["status"],
        # Who waits at the gate asks again after a second.
        retransmitted=max(0, resent(before, after) - (int(at_gate[1]) - int(waiting[1]))) + server_resent,
        concurrent=concurrent,
        duration_s=duration_s,
    )


def at_rate(report: str, before: str, after: str, rate: float, server_resent: int) -> Clients:
    """What httperf and its kernel counted, at `rate` connections per second. Raises CannotMeasure."""
    total = re.search(
        r"^Total: connections (\d+) requests \d+ replies \d+ test-duration ([\d.]+) s", report, re.MULTILINE
    )
    good = re.search(r"^Reply status:.* 2xx=(\d+)", report, re.MULTILINE)
    errors = re.search(r"^Errors: total (\d+)", report, re.MULTILINE)
    most = re.search(r"<=(\d+) concurrent connections", report)
    if not (total and good and errors and most):
        raise CannotMeasure(f"generator: httperf did not say what it counted: {report.strip()[-200:]}", "fwlab doctor")
    return Clients(
        program="httperf",
        opened=int(total[1]),
        completed=int(good[1]),
        failed=int(errors[1]),
        retransmitted=resent(before, after) + server_resent,
        concurrent=int(most[1]),
        duration_s=float(total[2]),
        intended_load=rate,
    )


def answers(packets: int, octets: int, answer_bytes: int) -> float:
    """How many answers of `answer_bytes` are among what came from the servers: packets, and bytes with headers.

    Each connection brings one answer and one SYN; all else is bare headers. Exact but for the little that is sent
    twice, so that the DUT itself counts connections, and the clients can be compared with it.
    """
    return (octets - packets * HEADER_BYTES) / (answer_bytes + SYN_MORE_BYTES)
