# SPDX-License-Identifier: GPL-2.0-or-later
"""TCP connections between generator and sink by the kernel's TCP: wrk (flat out) and httperf (at a rate) open them, and
nginx answers.

The images contain only the three programs. Everything else is set up over SSH and removed afterwards.
"""

import contextlib
import ipaddress
import shlex
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from fwlab.generator import syn_timeout
from fwlab.generator.tcp_config import (
    GATE,
    OBJECT,
    SYSCTLS,
    TABLE,
    WRK_SCRIPT,
    address_rules,
    first_address,
    gate_rule,
    httperf_result,
    retransmissions,
    server_config,
    wrk_result,
)
from fwlab.host.process import wait_or_kill
from fwlab.host.ssh import Ssh
from fwlab.model.declared_traffic import Connections
from fwlab.model.errors import CannotMeasure, Hindered
from fwlab.model.trial import Clients

#: Our files on a node. A reboot removes them, and the settings that they hold.
SCRIPT, CONFIG, PID, DOCUMENT_ROOT, SAVED_SYSCTLS = (
    f"/run/fwlab-{name}" for name in ("wrk.lua", "nginx.conf", "nginx.pid", "served", "sysctls")
)
#: A connection that takes longer counts as failed (s): at a rate, and flat out, where the DUT is throttled.
CONNECTION_TIMEOUT_S, FLAT_OUT_TIMEOUT_S = 10, 60
#: How long a first connection may take through a DUT that is not throttled (s). Linux sends its SYN four times by then.
CONNECT_S = 14
#: Minimum retransmission timeout (s), of SYNs, too; and with background traffic, which makes the DUT lose packets.
RTO_MIN_S, RTO_MIN_BACKGROUND_S = 5, 3
_COUNTERS = "grep ^Tcp: /proc/net/snmp"
#: Prints the kernel's TCP counters, the output of a command, and the counters again, separated by lines of dashes.
_COUNTED = f"{_COUNTERS}; echo ---; {{what}}; echo ---; {_COUNTERS}"
#: Stops wrk when the command's input closes, either because the host is done or because it is gone. First the gate is
#: shut, and _DRAIN_POLLS fifths of a second are left for open connections to end. Otherwise some 256 of 4000 would end
#: after an unknown number of packets, which made the packets per connection vary with the host's load (8.9 to 9.2).
#: wrk still tries to open connections behind the gate: their number is reported as "waiting", and so are dropped SYNs.
_DRAIN_POLLS = 40
_WRK = (
    "exec 3<&0; wrk -t1 -c{concurrent} -d1h --timeout {timeout}s -H 'Connection: close' -s {script} {url} "
    "</dev/null & p=$!; (read -r _ <&3; nft add {shut}; for _ in $(seq {drain_polls}); do "
    '[ "$(ss -Htan state synchronized exclude time-wait dport = :{port} | wc -l)" -gt 0 ] || break; sleep 0.2; done; '
    "echo waiting $(ss -Htan state syn-sent dport = :{port} | wc -l); kill -INT $p 2>/dev/null) & w=$!; "
    "wait $p; kill $w 2>/dev/null; nft list chain ip {table} {gate}; nft flush chain ip {table} {gate}"
)
_HTTPERF = (
    "httperf --server {server} --port {port} --uri / --rate {rate:g} --num-conns {count} "
    "--timeout {timeout} 2>/dev/null </dev/null"
)


class Retransmissions:
    """Counts the segments that a node retransmits from now on."""

    def __init__(self, ssh: Ssh) -> None:
        self._ssh = ssh
        self._before = ssh.run(_COUNTERS)

    def since(self) -> int:
        """Segments retransmitted since this object was made."""
        return retransmissions(self._before, self._ssh.run(_COUNTERS))


class KernelConnectionLoad:
    """Connections that wrk opens flat out, until `stop`."""

    def __init__(self, ssh: Ssh, process: subprocess.Popen[bytes], concurrent: int, sink: Retransmissions) -> None:
        self._ssh, self._process, self._concurrent, self._sink = ssh, process, concurrent, sink
        self._began = time.monotonic()

    def stop(self, timeout: float = 60) -> Clients:
        """Open no more connections, let open ones end, and return the client's counts."""
        lasted = time.monotonic() - self._began
        try:
            out, errors = self._process.communicate(b"stop\n", timeout=timeout)
        except subprocess.TimeoutExpired as error:
            self.abandon()
            raise CannotMeasure("generator: wrk does not stop", "vagrant reload LAB") from error
        said = errors.decode(errors="replace")
        if self._process.returncode == 255:
            raise self._ssh.lost(said)
        before, report, after = _split_report(out.decode(errors="replace"), said)
        return wrk_result(report, before, after, self._concurrent, lasted, self._sink.since())

    def abandon(self) -> None:
        """Stop on the way out of a failure. Closing the input ends the program on the node."""
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
        wait_or_kill(self._process, 10)


class KernelTcpEndpoints:
    """Client and server by the kernel's TCP; made by `tcp_endpoints`.

    answer_bytes  length of one HTTP response with its headers
    """

    def __init__(self, generator: Ssh, sink: Ssh, connections: Connections, answer_bytes: int) -> None:
        self._generator, self._sink, self.connections, self.answer_bytes = generator, sink, connections, answer_bytes

    def connect(self) -> None:
        """Open one connection, and close it. Raises Hindered if that takes too long.

        wrk does so too before it opens the others, and waits for minutes.
        """
        address, port = first_address(self.connections.servers), self.connections.port
        connecting = f"timeout {CONNECT_S} bash -c '</dev/tcp/{address}/{port}' 2>/dev/null && echo open || echo shut"
        if self._generator.run(connecting).strip() != "open":
            raise Hindered(f"no connection to {address}:{port} gets through the DUT", "fwlab hold LAB EXERCISE")

    def flat_out(self) -> KernelConnectionLoad:
        """Keep `concurrent` connections open, as many as the DUT forwards, until stopped."""
        declared = self.connections
        url = f"http://{first_address(declared.servers)}:{declared.port}/"
        what = _WRK.format(
            concurrent=declared.concurrent,
            timeout=FLAT_OUT_TIMEOUT_S,
            script=SCRIPT,
            url=url,
            port=declared.port,
            shut=shlex.quote(gate_rule(declared)),
            drain_polls=_DRAIN_POLLS,
            table=TABLE,
            gate=GATE,
        )
        resending = Retransmissions(self._sink)
        process = self._generator.open(f"{_syn_timeout(declared)}; {_COUNTED.format(what=what)}")
        return KernelConnectionLoad(self._generator, process, declared.concurrent, resending)

    def at_rate(self, rate: float, count: int) -> Clients:
        """Open `count` connections, `rate` per second of the generator's clock."""
        declared = self.connections
        what = _HTTPERF.format(
            server=first_address(declared.servers),
            port=declared.port,
            rate=rate,
            count=count,
            timeout=CONNECTION_TIMEOUT_S,
        )
        resending = Retransmissions(self._sink)
        # What a ruleset drops is then repeated as soon as by any host.
        counted = f"{_syn_timeout(None)}; {_COUNTED.format(what=what)}"
        out = self._generator.run(counted, timeout=count / rate * 3 + 60)
        before, report, after = _split_report(out, "")
        return httperf_result(report, before, after, rate, resending.since())


@contextlib.contextmanager
def tcp_endpoints(generator: Ssh, sink: Ssh, own: str, connections: Connections) -> Iterator[KernelTcpEndpoints]:
    """Set up client and server, and restore both nodes afterwards. `own`: the generator's address on its link.

    Raises CannotMeasure if an image lacks a program, or if the server does not answer on its own node.
    """
    try:
        generator.run(_generator_up(connections), data=address_rules(connections, own).encode())
        with http_server(sink, connections) as answer_bytes:
            yield KernelTcpEndpoints(generator, sink, connections, answer_bytes)
    finally:
        with contextlib.suppress(CannotMeasure):
            generator.run(_generator_down(connections))


@contextlib.contextmanager
def http_server(sink: Ssh, connections: Connections) -> Iterator[int]:
    """Run the server on all of the declared addresses; yields the length of one HTTP response in bytes."""
    try:
        answer = sink.run(_sink_up(connections), data=server_config(connections, PID, DOCUMENT_ROOT).encode())
        if not answer.strip().isdecimal() or int(answer) < connections.object_bytes:
            raise CannotMeasure(f"sink: nginx does not answer on port {connections.port}: {answer!r}", "fwlab doctor")
        yield int(answer)
    finally:
        with contextlib.suppress(CannotMeasure):
            sink.run(_sink_down(connections))


def _split_report(out: str, errors: str) -> tuple[str, str, str]:
    parts = out.split("---\n")
    if len(parts) != 3:
        raise CannotMeasure(f"generator: the client ended early: {(errors or out).strip()[-200:]}", "fwlab doctor")
    return parts[0], parts[1], parts[2]


def _apply_sysctls(node: str) -> str:
    """The command that sets a node's sysctls and saves their previous values once, for `_restore_sysctls`."""
    names = " ".join(SYSCTLS[node])
    values = shlex.join(f"{name}={value}" for name, value in SYSCTLS[node].items())
    return f"[ -e {SAVED_SYSCTLS} ] || sysctl {names} >{SAVED_SYSCTLS}; sysctl -q -w {values}"


def _restore_sysctls() -> str:
    return f"[ ! -e {SAVED_SYSCTLS} ] || sysctl -q -p {SAVED_SYSCTLS}; rm -f {SAVED_SYSCTLS}"


def _rto_min_s(connections: Connections) -> int:
    return RTO_MIN_BACKGROUND_S if _with_background(connections) else RTO_MIN_S


def _with_background(connections: Connections) -> bool:
    """Whether other traffic also runs while connections are opened flat out, and not only at the light rate."""
    return connections.background is not None and connections.background_flat_out


def _syn_timeout(connections: Connections | None) -> str:
    """The command that makes SYNs wait longer for an answer, or, without connections, as long as usual.

    A throttled DUT on a busy host takes more than the usual second. With background traffic SYNs are really lost: how
    soon they are repeated would change the figures there.
    """
    program = f"python3 -c {shlex.quote(Path(syn_timeout.__file__).read_text())}"
    return (
        f"{program} detach" if connections is None or _with_background(connections) else f"{program} attach {RTO_MIN_S}"
    )


def link_settings(prefix: str, rto_min_s: int | None) -> str:
    """The command that tunes the link towards the other end, whose addresses are `prefix`, or restores its defaults.

    A longer minimum retransmission timeout: a slowed DUT delays packets, and TCP would assume a loss after 0.2 s. And
    no GRO: how many packets the kernel merges, and acknowledges at once, depends on how fast they arrive.
    """
    network = ipaddress.IPv4Network(prefix).supernet(new_prefix=16)
    rto_min = f" rto_min {rto_min_s}s" if rto_min_s else ""
    return (
        f"set -- $(ip route get {first_address(prefix)}); "
        f"ip route replace {network} via $3 dev $5 proto static{rto_min}; "
        f"ethtool -K $5 gro {'off' if rto_min_s else 'on'}"
    )


def _generator_up(connections: Connections) -> str:
    script, link = shlex.quote(WRK_SCRIPT), link_settings(connections.servers, _rto_min_s(connections))
    return f"pkill -x wrk; set -e; nft -f -; printf %s {script} >{SCRIPT}; {_apply_sysctls('generator')}; {link}"


def _generator_down(connections: Connections) -> str:
    before = link_settings(connections.servers, None)
    ends = f"pkill -x wrk; nft delete table ip {TABLE} 2>/dev/null; {before}; rm -f {SCRIPT}; {_restore_sysctls()}"
    return f"{ends}; {_syn_timeout(None)}"


def _sink_up(connections: Connections) -> str:
    """The command that starts the server and prints the length of one response, requested on the node itself."""
    ask = f"exec 3<>/dev/tcp/127.0.0.1/{connections.port}; printf 'GET / HTTP/1.0\\r\\n\\r\\n' >&3; wc -c <&3"
    served = f"mkdir -p {DOCUMENT_ROOT}; printf %{connections.object_bytes}s '' | tr ' ' x >{DOCUMENT_ROOT}/{OBJECT}"
    link = link_settings(connections.clients, _rto_min_s(connections))
    return (
        f"set -e; cat >{CONFIG}; {served}; {_apply_sysctls('sink')}; {link}; "
        f"ip route replace local {connections.servers} dev lo; {_syn_timeout(connections)}; "
        f'{_stop_server()}; nginx -c {CONFIG} >/dev/null; bash -c "{ask}"'
    )


def _stop_server() -> str:
    """The command that stops our nginx, if it runs, and waits until its port is free."""
    return (
        f"if [ -e {PID} ]; then nginx -c {CONFIG} -s stop 2>/dev/null || true; "
        f"for _ in $(seq 50); do [ -e {PID} ] || break; sleep 0.1; done; fi"
    )


def _sink_down(connections: Connections) -> str:
    return (
        f"{_stop_server()}; ip route del local {connections.servers} dev lo 2>/dev/null; "
        f"{link_settings(connections.clients, None)}; rm -rf {CONFIG} {DOCUMENT_ROOT}; {_restore_sysctls()}; "
        f"{_syn_timeout(None)}"
    )
