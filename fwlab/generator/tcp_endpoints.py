# SPDX-License-Identifier: GPL-2.0-or-later
"""TCP connections between generator and sink: nginx answers; wrk opens them flat out, httperf at a rate.

Nothing of it is in the images but the three programs. What a lab declares is set up over SSH, and put back.
"""

from __future__ import annotations

import contextlib
import ipaddress
import shlex
import subprocess
import time
from collections.abc import Iterator

from fwlab.generator.tcp_config import (
    GATE,
    OBJECT,
    SYSCTLS,
    TABLE,
    address_rules,
    at_rate,
    flat_out,
    front,
    resent,
    server_config,
    shut,
    wrk_script,
)
from fwlab.host.process import wait_or_kill
from fwlab.host.ssh import Ssh
from fwlab.model.declared_traffic import Connections
from fwlab.model.errors import CannotMeasure
from fwlab.model.trial import Clients

#: Files of ours on a node; they are gone after a boot, like what they set up.
RULES, SCRIPT, CONFIG, PID, SERVED, BEFORE = (
    f"/run/fwlab-{name}" for name in ("clients.nft", "wrk.lua", "nginx.conf", "nginx.pid", "served", "sysctls")
)
#: A connection that takes longer has failed (s).
PATIENCE_S = 10
#: Nothing is sent a second time before this (s).
RESEND_S = 3
_COUNTERS = "grep ^Tcp: /proc/net/snmp"
#: Prints TCP's counters of the kernel before and after what runs in between; a line of dashes parts the three.
_COUNTED = f"{_COUNTERS}; echo ---; {{what}}; echo ---; {_COUNTERS}"
#: wrk ends when its input closes: when the host is done, or gone. First the gate is shut and what is open may end, for
#: at most so many fifths of a second. Of those that are cut off in the middle, 256 of some 4000, nobody knows how many
#: packets they had, and the figure was for the load of the host to say (8.9 to 9.2 packets a connection were seen).
#: wrk goes on to begin connections behind the gate: those are told, as "waiting", and what the gate has dropped.
_DRAINED = 40
_WRK = (
    "exec 3<&0; wrk -t1 -c{concurrent} -d1h --timeout {patience}s -H 'Connection: close' -s {script} {url} "
    "</dev/null & p=$!; (read -r _ <&3; nft add {shut}; for _ in $(seq {drained}); do "
    '[ "$(ss -Htan state synchronized exclude time-wait dport = :{port} | wc -l)" -gt 0 ] || break; sleep 0.2; done; '
    "echo waiting $(ss -Htan state syn-sent dport = :{port} | wc -l); kill -INT $p 2>/dev/null) & w=$!; "
    "wait $p; kill $w 2>/dev/null; nft list chain ip {table} {gate}; nft flush chain ip {table} {gate}"
)
_HTTPERF = (
    "httperf --server {server} --port {port} --uri / --rate {rate:g} --num-conns {count} "
    "--timeout {patience} 2>/dev/null </dev/null"
)


class Retransmissions:
    """How much a node sends again, from now on."""

    def __init__(self, ssh: Ssh) -> None:
        self._ssh = ssh
        self._before = ssh.run(_COUNTERS)

    def since(self) -> int:
        return resent(self._before, self._ssh.run(_COUNTERS))


class KernelConnectionLoad:
    """Connections being opened flat out, until `stop`."""

    def __init__(self, ssh: Ssh, process: subprocess.Popen[bytes], concurrent: int, sink: Retransmissions) -> None:
        self._ssh, self._process, self._concurrent, self._sink = ssh, process, concurrent, sink
        self._began = time.monotonic()

    def stop(self, timeout: float = 60) -> Clients:
        """Begin no more, let those that are open end, and return what the client counted."""
        lasted = time.monotonic() - self._began
        try:
            out, errors = self._process.communicate(b"stop\n", timeout=timeout)
        except subprocess.TimeoutExpired as error:
            self.abandon()
            raise CannotMeasure("generator: wrk does not stop", "vagrant reload LAB") from error
        words = errors.decode(errors="replace")
        if self._process.returncode == 255:
            raise self._ssh.lost(words)
        before, report, after = _parts(out.decode(errors="replace"), words)
        return flat_out(report, before, after, self._concurrent, lasted, self._sink.since())

    def abandon(self) -> None:
        """End it, come what may. Its input is closed first: that is what ends the program on the node."""
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        wait_or_kill(self._process, 10)


class KernelTcpEndpoints:
    """Both ends, set up for what a lab declares; made by `tcp_endpoints`.

    answer_bytes  length of one answer, with HTTP's own headers
    """

    def __init__(self, generator: Ssh, sink: Ssh, connections: Connections, answer_bytes: int) -> None:
        self._generator, self._sink, self.connections, self.answer_bytes = generator, sink, connections, answer_bytes

    def flat_out(self) -> KernelConnectionLoad:
        """As many as the DUT lets through, `concurrent` open at a time; until stopped."""
        declared = self.connections
        url = f"http://{front(declared.servers)}:{declared.port}/"
        what = _WRK.format(
            concurrent=declared.concurrent,
            patience=PATIENCE_S,
            script=SCRIPT,
            url=url,
            port=declared.port,
            shut=shlex.quote(shut(declared)),
            drained=_DRAINED,
            table=TABLE,
            gate=GATE,
        )
        resending = Retransmissions(self._sink)
        process = self._generator.open(_COUNTED.format(what=what))
        return KernelConnectionLoad(self._generator, process, declared.concurrent, resending)

    def at_rate(self, rate: float, count: int) -> Clients:
        """`count` connections, `rate` begun each second of the generator's clock."""
        declared = self.connections
        what = _HTTPERF.format(
            server=front(declared.servers), port=declared.port, rate=rate, count=count, patience=PATIENCE_S
        )
        resending = Retransmissions(self._sink)
        out = self._generator.run(_COUNTED.format(what=what), timeout=count / rate * 3 + 60)
        before, report, after = _parts(out, "")
        return at_rate(report, before, after, rate, resending.since())


@contextlib.contextmanager
def tcp_endpoints(generator: Ssh, sink: Ssh, own: str, connections: Connections) -> Iterator[KernelTcpEndpoints]:
    """Both ends ready; as they were before on leaving. `own` is the generator's address on its link.

    Raises CannotMeasure where an image has no such program, or the server does not answer on its own node.
    """
    try:
        generator.run(_generator_up(connections), data=address_rules(connections, own).encode())
        with answering(sink, connections) as answer_bytes:
            yield KernelTcpEndpoints(generator, sink, connections, answer_bytes)
    finally:
        with contextlib.suppress(CannotMeasure):
            generator.run(_generator_down(connections))


@contextlib.contextmanager
def answering(sink: Ssh, connections: Connections) -> Iterator[int]:
    """The sink answers on every address of the servers, as the declaration has it; yields the length of one answer."""
    try:
        answer = sink.run(_sink_up(connections), data=server_config(connections, PID, SERVED).encode())
        if not answer.strip().isdecimal() or int(answer) < connections.object_bytes:
            raise CannotMeasure(f"sink: nginx does not answer on port {connections.port}: {answer!r}", "fwlab doctor")
        yield int(answer)
    finally:
        with contextlib.suppress(CannotMeasure):
            sink.run(_sink_down(connections))


def _parts(out: str, errors: str) -> tuple[str, str, str]:
    parts = out.split("---\n")
    if len(parts) != 3:
        raise CannotMeasure(f"generator: the client ended early: {(errors or out).strip()[-200:]}", "fwlab doctor")
    return parts[0], parts[1], parts[2]


def _set(node: str) -> str:
    """Set a node's sysctls; what they were is kept, once, for `_put_back`."""
    names = " ".join(SYSCTLS[node])
    values = shlex.join(f"{name}={value}" for name, value in SYSCTLS[node].items())
    return f"[ -e {BEFORE} ] || sysctl {names} >{BEFORE}; sysctl -q -w {values}"


def _put_back() -> str:
    return f"[ ! -e {BEFORE} ] || sysctl -q -p {BEFORE}; rm -f {BEFORE}"


def link(prefix: str, *, ours: bool) -> str:
    """Ready the link that leads to the other end, whose addresses are `prefix`; or make it again what it was.

    Nothing is sent a second time that may still come: a slowed DUT answers late, and TCP would believe in a loss
    after a fifth of a second. And packets are taken one by one, so that each is acknowledged: how many the kernel
    would join (GRO) depends on how fast they come.
    """
    network = ipaddress.IPv4Network(prefix).supernet(new_prefix=16)
    patience = f" rto_min {RESEND_S}s" if ours else ""
    return (
        f"set -- $(ip route get {front(prefix)}); ip route replace {network} via $3 dev $5 proto static{patience}; "
        f"ethtool -K $5 gro {'off' if ours else 'on'}"
    )


def _generator_up(connections: Connections) -> str:
    ours = link(connections.servers, ours=True)
    return (
        f"pkill -x wrk; set -e; nft -f -; printf %s {shlex.quote(wrk_script())} >{SCRIPT}; {_set('generator')}; {ours}"
    )


def _generator_down(connections: Connections) -> str:
    before = link(connections.servers, ours=False)
    return f"pkill -x wrk; nft delete table ip {TABLE} 2>/dev/null; {before}; rm -f {SCRIPT}; {_put_back()}"


def _sink_up(connections: Connections) -> str:
    """Ends with the number of bytes of one answer, asked for on the node itself."""
    ask = f"exec 3<>/dev/tcp/127.0.0.1/{connections.port}; printf 'GET / HTTP/1.0\\r\\n\\r\\n' >&3; wc -c <&3"
    served = f"mkdir -p {SERVED}; printf %{connections.object_bytes}s '' | tr ' ' x >{SERVED}/{OBJECT}"
    return (
        f"set -e; cat >{CONFIG}; {served}; {_set('sink')}; {link(connections.clients, ours=True)}; "
        f"ip route replace local {connections.servers} dev lo; "
        f'{_stop_server()}; nginx -c {CONFIG} >/dev/null; bash -c "{ask}"'
    )


def _stop_server() -> str:
    """Ends the nginx of ours that runs, and waits until its port is free."""
    return (
        f"if [ -e {PID} ]; then nginx -c {CONFIG} -s stop 2>/dev/null || true; "
        f"for _ in $(seq 50); do [ -e {PID} ] || break; sleep 0.1; done; fi"
    )


def _sink_down(connections: Connections) -> str:
    return (
        f"{_stop_server()}; ip route del local {connections.servers} dev lo 2>/dev/null; "
        f"{link(connections.clients, ours=False)}; rm -rf {CONFIG} {SERVED}; {_put_back()}"
    )
