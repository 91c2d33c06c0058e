# SPDX-License-Identifier: GPL-2.0-or-later
"""Configuration and reports of the TCP programs on generator and sink, and how the DUT's counters count connections.
Pure: text and numbers only.

The client program uses one address and connects to one server. Two stateless nft rules on the generator
rewrite both addresses of each connection, chosen by its source port, to those of a declared client and server, and
rewrite the answers back. So any client program can be used, and the generator needs neither conntrack nor NAT.
"""

import ipaddress
import json
import re

from fwlab.model.declared_traffic import Connections
from fwlab.model.errors import CannotMeasure
from fwlab.model.trial import Clients

TABLE = "fwlab-clients"
#: The chain that holds `gate_rule`, which blocks new connections while those that are open continue.
GATE = "gate"
#: The file that the server returns for every request.
OBJECT = "object"
#: Ethernet, IPv4 and TCP headers with time stamps, which both ends use, and the further options of a SYN.
HEADER_BYTES = 14 + 20 + 32
SYN_OPTION_BYTES = 8

#: Settings of both ends: those of source S2, Appendix B, that still exist and matter for small objects. They provide
#: many ports, which soon become free again, and long queues of new and closing connections. The kernel sizes buffers.
#: No tail loss probes (TLP): behind a slowed DUT they would retransmit packets that are only late. No early demux: if
#: an ACK and a FIN arrive together, the ACK turns the socket into a TIME_WAIT socket, and the FIN, already assigned to
#: the old socket, would be dropped and retransmitted.
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


def first_address(prefix: str) -> str:
    """The first address of a prefix. The client program connects to that of the servers."""
    return str(ipaddress.IPv4Network(prefix)[0])


def address_rules(connections: Connections, own: str) -> str:
    """The nft ruleset that rewrites addresses on the generator, whose own address is `own`."""
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
    {arriving} ip saddr set {first_address(connections.servers)} ip daddr set {own}
  }}
}}
"""


def gate_rule(connections: Connections) -> str:
    """The rule, as arguments of `nft add`, that drops the first packet of every new connection."""
    return f"rule ip {TABLE} {GATE} {_towards_servers(connections)} tcp flags & (syn | ack) == syn counter drop"


def _towards_servers(connections: Connections) -> str:
    return f"ip daddr {first_address(connections.servers)} tcp dport {connections.port}"


def _spread(prefix: str, seed: int) -> str:
    """The nft expression that maps each source port to an address of the prefix."""
    addresses = list(ipaddress.IPv4Network(prefix))
    elements = ", ".join(f"{place} : {address}" for place, address in enumerate(addresses))
    return f"jhash tcp sport mod {len(addresses)} seed {seed} map {{ {elements} }}"


def server_config(connections: Connections, pid_file: str, folder: str) -> str:
    """nginx's configuration: it serves the file OBJECT of `folder`, writes no log, and closes after each response.

    TCP_CORK (tcp_nopush) delays the last segment until the server closes, so that object and FIN share one packet and
    the client sends one ACK for both. Separate packets would get one or two ACKs, depending on the host's load: without
    a filter, connections then had 9.8 to 11.8 packets, and their cost varied accordingly.
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


#: wrk's Lua script, which prints the counts as one line of JSON.
WRK_SCRIPT = """function done(summary, latency, requests)
  local e = summary.errors
  print(string.format('{"answers":%d,"status":%d,"lost":%d}', summary.requests, e.status, e.connect + e.read + e.write))
end
"""


def kernel_counts(snmp: str) -> dict[str, int]:
    """The TCP counters in /proc/net/snmp, which are a line of names and a line of numbers."""
    lines = [line.split()[1:] for line in snmp.splitlines() if line.startswith("Tcp:")]
    return dict(zip(lines[0], map(int, lines[1]), strict=True))


def retransmissions(before: str, after: str) -> int:
    """Segments that a kernel retransmitted between two readings of its counters."""
    return kernel_counts(after)["RetransSegs"] - kernel_counts(before)["RetransSegs"]


def wrk_result(report: str, before: str, after: str, concurrent: int, duration_s: float, server_resent: int) -> Clients:
    """The counts of wrk and its kernel. Connections that the gate blocked when wrk was stopped do not count as opened.

    Raises CannotMeasure if the report is incomplete.
    """
    said = re.search(r"^\{.*\}$", report, re.MULTILINE)
    waiting = re.search(r"^waiting (\d+)$", report, re.MULTILINE)
    at_gate = re.search(r"\bcounter packets (\d+)", report)
    if not (said and waiting and at_gate):
        raise CannotMeasure(f"generator: incomplete report of wrk: {report.strip()[-200:]}", "fwlab doctor")
    counted = json.loads(said[0])
    return Clients(
        program="wrk",
        opened=kernel_counts(after)["ActiveOpens"] - kernel_counts(before)["ActiveOpens"] - int(waiting[1]),
        completed=counted["answers"] - counted["status"],
        failed=counted["lost"] + counted["status"],
        # The SYNs that the gate drops are retransmitted after a second; those do not count.
        retransmitted=max(0, retransmissions(before, after) - (int(at_gate[1]) - int(waiting[1]))) + server_resent,
        concurrent=concurrent,
        duration_s=duration_s,
    )


def httperf_result(report: str, before: str, after: str, rate: float, server_resent: int) -> Clients:
    """The counts of httperf and its kernel at `rate` connections per second.

    Raises CannotMeasure if the report is incomplete.
    """
    total = re.search(
        r"^Total: connections (\d+) requests \d+ replies \d+ test-duration ([\d.]+) s", report, re.MULTILINE
    )
    good = re.search(r"^Reply status:.* 2xx=(\d+)", report, re.MULTILINE)
    errors = re.search(r"^Errors: total (\d+)", report, re.MULTILINE)
    most = re.search(r"<=(\d+) concurrent connections", report)
    if not (total and good and errors and most):
        raise CannotMeasure(f"generator: incomplete report of httperf: {report.strip()[-200:]}", "fwlab doctor")
    return Clients(
        program="httperf",
        opened=int(total[1]),
        completed=int(good[1]),
        failed=int(errors[1]),
        retransmitted=retransmissions(before, after) + server_resent,
        concurrent=int(most[1]),
        duration_s=float(total[2]),
        intended_load=rate,
    )


def answers(packets: int, octets: int, answer_bytes: int) -> float:
    """The number of answers in what the servers sent, from its packets and octets (with headers) at the DUT.

    Each connection has one answer of `answer_bytes` and one SYN; all other packets are bare headers. The result is
    exact except for retransmissions, so the clients' counts can be checked against the DUT's. Resets have no options,
    so a server that sends nothing else would have answered less than nothing.
    """
    return max(0.0, (octets - packets * HEADER_BYTES) / (answer_bytes + SYN_OPTION_BYTES))
