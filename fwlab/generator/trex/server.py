# SPDX-License-Identifier: GPL-2.0-or-later
"""TRex's server on the generator: configured, started, monitored and stopped over SSH.

Its RPC is JSON-RPC 2.0 over ZeroMQ's request and reply (TRex's document `trex_rpc_server_spec`).
"""

import contextlib
import itertools
import json
import re
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import yaml
import zmq

from fwlab.generator.traffic_store import FIRST_LINK
from fwlab.host.process import wait_or_kill
from fwlab.host.ssh import Ssh
from fwlab.model.errors import CannotMeasure, CannotStart
from fwlab.model.topology import Topology

#: Maximum size of a batch; TRex rejects requests above a megabyte.
BATCH_BYTES = 500_000


class NoAnswer(CannotMeasure):
    """The server did not answer in time."""


class Rpc:
    """A client of the server at `address` (tcp://…). Its methods raise CannotMeasure with TRex's own message."""

    def __init__(self, address: str, timeout_s: float = 20) -> None:
        self._address, self._timeout_s = address, timeout_s
        self._numbers = itertools.count(1)
        self._context = zmq.Context()
        self._socket: zmq.Socket[bytes] | None = None
        self._api: str | None = None

    def ping(self, timeout_s: float) -> bool:
        """Whether the server answers."""
        try:
            self._exchange([self._request("ping", {})], timeout_s)
        except NoAnswer:
            return False
        return True

    def join(self, api: Mapping[str, Any]) -> None:
        """Negotiate the API's name and version, which every other call requires."""
        self._api = self.call("api_sync_v2", **api)["api_h"]

    def call(self, method: str, **parameters: Any) -> Any:
        """Call a method and return its result."""
        [answer] = self._exchange([self._request(method, parameters)], self._timeout_s)
        return _result(method, answer)

    def calls(self, method: str, many: Sequence[dict[str, Any]]) -> None:
        """Call a method once for each set of parameters, in batches of limited size."""
        batch: list[dict[str, Any]] = []
        size = 0
        for parameters in many:
            request = self._request(method, parameters)
            length = len(json.dumps(request))
            if batch and size + length > BATCH_BYTES:
                self._call_batch(method, batch)
                batch, size = [], 0
            batch.append(request)
            size += length
        if batch:
            self._call_batch(method, batch)

    def _call_batch(self, method: str, batch: list[dict[str, Any]]) -> None:
        for answer in self._exchange(batch, self._timeout_s):
            _result(method, answer)

    def close(self) -> None:
        """Disconnect."""
        self._drop()
        self._context.term()

    def _request(self, method: str, parameters: dict[str, Any]) -> dict[str, Any]:
        known = {"api_h": self._api} if self._api else {}
        return {"jsonrpc": "2.0", "id": next(self._numbers), "method": method, "params": {**known, **parameters}}

    def _exchange(self, requests: list[dict[str, Any]], timeout_s: float) -> list[dict[str, Any]]:
        """Send a batch and return its answers. TRex expects a batch of one without the list, and answers alike."""
        self._socket = self._socket or self._connected()
        self._socket.setsockopt(zmq.RCVTIMEO, int(timeout_s * 1000))
        self._socket.setsockopt(zmq.SNDTIMEO, int(timeout_s * 1000))
        try:
            self._socket.send_string(json.dumps(requests[0] if len(requests) == 1 else requests))
            answers = json.loads(self._socket.recv())
        except zmq.Again as error:
            # ZeroMQ allows no second request before the first reply, so continue with a new socket.
            self._drop()
            method = requests[0]["method"]
            raise NoAnswer(
                f"generator: TRex does not answer to {method} within {timeout_s:g} s", "use `--engine replay`"
            ) from error
        except (zmq.ZMQError, ValueError) as error:
            self._drop()
            raise CannotMeasure(f"generator: cannot read TRex's answer: {error}", "fwlab doctor") from error
        answers = answers if isinstance(answers, list) else [answers]
        by_number = {answer.get("id"): answer for answer in answers}
        return [by_number.get(request["id"]) or answers[0] for request in requests]

    def _connected(self) -> zmq.Socket[bytes]:
        socket = self._context.socket(zmq.REQ)
        socket.setsockopt(zmq.LINGER, 0)
        socket.setsockopt(zmq.RECONNECT_IVL, 1000)
        socket.connect(self._address)
        return socket

    def _drop(self) -> None:
        if self._socket is not None:
            self._socket.close(linger=0)
            self._socket = None


def _result(method: str, answer: dict[str, Any]) -> Any:
    fault = answer.get("error")
    if fault is None:
        return answer.get("result")
    message = fault.get("specific_err") or fault.get("message") or json.dumps(fault)
    raise CannotMeasure(f"generator: TRex rejects {method}: {message}", "use `--engine replay`")


#: Cores that do not send: one for TRex's housekeeping, one for latency measurements.
OTHER_CORES = 2
#: Memory in MiB: the 2 MiB huge pages that TRex needs for two ports, and everything else.
HUGE_PAGES_MIB, OTHER_MIB = 4096, 1024
#: Name of the second port, which is none: TRex requires an even number of ports.
DUMMY = "dummy"
#: MAC address of the dummy port, which neither sends nor receives.
DUMMY_MAC = "02:00:00:00:00:00"


@dataclass(frozen=True)
class TrexHost:
    """The generator's hardware. `pci`: its NIC's PCI address, as 0000:00:03.0; None if the kernel must drive it."""

    cpus: int
    memory_mib: int
    pci: str | None = None


def uses_dpdk(machine: TrexHost) -> bool:
    """Whether TRex can drive the NIC itself, which takes dedicated cores and huge pages."""
    enough = machine.cpus > OTHER_CORES and machine.memory_mib >= HUGE_PAGES_MIB + OTHER_MIB
    return enough and machine.pci is not None


def trex_config(topology: Topology, machine: TrexHost) -> str:
    """The contents of /etc/trex_cfg.yaml.

    Port 0 is the link to the DUT. The DUT's MAC address is configured, so that TRex need not resolve it.
    """
    near, far = topology.end(FIRST_LINK, "generator"), topology.end(FIRST_LINK, "dut")
    pci = machine.pci if uses_dpdk(machine) else None
    settings: dict[str, Any] = {
        "version": 2,
        "interfaces": [near.dev if pci is None else pci.removeprefix("0000:"), DUMMY],
        "port_info": [{"src_mac": near.mac, "dest_mac": far.mac}, {"src_mac": DUMMY_MAC, "dest_mac": DUMMY_MAC}],
        "port_mtu": topology.links[FIRST_LINK].mtu,
    }
    if pci is not None:
        sending = list(range(OTHER_CORES, machine.cpus))
        settings["c"] = len(sending)
        settings["platform"] = {
            "master_thread_id": 0,
            "latency_thread_id": 1,
            "dual_if": [{"socket": 0, "threads": sending}],
        }
    else:
        settings |= {"low_end": True, "c": 1}
    return yaml.safe_dump([settings], sort_keys=False, default_flow_style=None)


FOLDER = "/opt/trex"
CONFIG = "/etc/trex_cfg.yaml"
LOG = "/run/fwlab-trex.log"
#: The port it listens on, TRex's default.
RPC_PORT = 4501
OPTIONS = "-i --software --no-scapy-server --no-termio --no-watchdog --iom 0"
#: Stops the server and its children when the command's input closes, either because the host is done or is gone.
_SERVE = (
    f"cd {FOLDER} && exec 3<&0; setsid ./t-rex-64 {OPTIONS}{{mode}} --cfg {CONFIG} </dev/null >{LOG} 2>&1 & p=$!; "
    "(read -r _ <&3; kill -INT -$p; sleep 15; kill -KILL -$p) >/dev/null 2>&1 & w=$!; wait $p; r=$?; kill $w; "
)
#: Mounts huge pages. Without any, TRex requests pages of 1 GiB, which small machines do not have.
_HUGE_PAGES = (
    "grep -q ' /mnt/huge hugetlbfs' /proc/mounts || { mkdir -p /mnt/huge && mount -t hugetlbfs nodev /mnt/huge; }; "
)
#: Rebinds a NIC that TRex has driven itself to the kernel, for other engines and for TCP.
_REBIND = f"cd {FOLDER}; ./dpdk_nic_bind.py -b virtio-pci {{pci}} >>{LOG} 2>&1; "
#: Time limits of the start, which takes a minute or two under emulation on a busy host, and of one try (s).
START_TIMEOUT_S, PING_S = 420, 3.0
_FACTS = (
    f"test -x {FOLDER}/t-rex-64 && echo yes || echo no; nproc; "
    "sed -n 's/^MemTotal: *\\([0-9]*\\) kB/\\1/p' /proc/meminfo; "
    "basename $(readlink -f /sys/class/net/{device}/device/..)"
)
#: Words of a program that fails.
_FAILURE = re.compile(r"(?i)\b(error|no such|not found|cannot|can't|could not|fail(ed|ure)?|illegal|unable|invalid)\b")
T = TypeVar("T")


@dataclass(frozen=True)
class Mode:
    """The mode of a server: its command-line option, and the API with the version that it must have.

    A server with another major version, or a lower minor version, rejects the client.
    """

    option: str
    api: Mapping[str, Any]


STATELESS = Mode("", {"name": "STL", "major": 5, "minor": 1})
STATEFUL = Mode(" --astf", {"name": "ASTF", "major": 2, "minor": 0})


class Server:
    """The server, which runs from `start` to `stop`. `rpc` is the client."""

    def __init__(self, ssh: Ssh, topology: Topology, device: str, *, small: bool, mode: Mode = STATELESS) -> None:
        """small: use one thread and the kernel's packet socket, even on a large machine."""
        self._ssh, self._topology, self._device, self._small = ssh, topology, device, small
        self._mode = mode
        self._process: subprocess.Popen[bytes] | None = None
        self._tunnel: subprocess.Popen[bytes] | None = None
        self.rpc: Rpc | None = None

    def start(self) -> None:
        """Start the server. Raises CannotMeasure with the end of its log if it does not come up.

        That is CannotStart if it would not come up the next time either.
        """
        loopback = self._topology.ports.address
        machine = self._machine()
        self._ssh.run(f"cat > {CONFIG}", data=trex_config(self._topology, machine).encode())
        before = after = ""
        if uses_dpdk(machine):
            before, after = _HUGE_PAGES, _REBIND.format(pci=machine.pci)
        try:
            self._process = self._ssh.open(f"{before}{_SERVE.format(mode=self._mode.option)}{after}exit $r")
            self._tunnel, port = self._ssh.tunnel(loopback, RPC_PORT)
            self.rpc = Rpc(f"tcp://{loopback}:{port}")
            self._await_answer(self.rpc, self._process, self._tunnel)
            self.rpc.join(self._mode.api)
        except BaseException:
            self.stop()
            raise

    def ask(self, method: str, **parameters: Any) -> Any:
        """Call one of TRex's methods and return its result. Raises CannotMeasure."""
        return self.asked(lambda rpc: rpc.call(method, **parameters))

    def asked(self, action: Callable[[Rpc], T]) -> T:
        """Run `action` with the client. If the server has ended, raise that as the cause, not the missing answer."""
        if self.rpc is None:
            raise CannotMeasure("generator: TRex is not running", "fwlab doctor")
        try:
            return action(self.rpc)
        except CannotMeasure as error:
            if self._process is None or self._process.poll() is not None:
                raise self.ended() from error
            raise

    def _machine(self) -> TrexHost:
        there, cpus, memory_kib, *rest = self._ssh.run(_FACTS.format(device=self._device)).split()
        if there != "yes":
            raise CannotStart(
                f"generator: no TRex in {FOLDER}",
                "these machines are older than the image: `vagrant destroy -f LAB; vagrant up LAB`",
            )
        pci = rest[0] if rest and rest[0].count(":") == 2 and not self._small else None
        return TrexHost(int(cpus), int(memory_kib) >> 10, pci)

    def _await_answer(self, rpc: Rpc, server: subprocess.Popen[bytes], tunnel: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        while not rpc.ping(PING_S):
            if server.poll() is not None:
                raise self.ended(CannotStart)
            if tunnel.poll() is not None:
                raise self._ssh.lost("the SSH tunnel to TRex broke")
            if time.monotonic() > deadline:
                raise CannotMeasure(
                    f"generator: TRex does not answer within {START_TIMEOUT_S} s{self._end_of_log()}",
                    "use `--engine replay`",
                )

    def ended(self, kind: type[CannotMeasure] = CannotMeasure) -> CannotMeasure:
        """The exception to raise if the server has ended."""
        code = self._process.returncode if self._process else None
        if code == 255:
            return self._ssh.lost("the SSH session of TRex broke")
        return kind(
            f"generator: TRex ended with {code}{self._end_of_log()}",
            f"on the generator: `less {LOG}`, or use `--engine replay`",
        )

    def _end_of_log(self) -> str:
        """The last line that tells of a failure, since progress shows only one; below it the last lines."""
        with contextlib.suppress(CannotMeasure):
            said = self._ssh.run(f"tail -n 8 {LOG}", check=False).strip()
            lines = said.splitlines()
            reasons = [line.strip() for line in lines if _FAILURE.search(line)] or lines
            return f": {reasons[-1]}" + (f"\n{said}" if len(lines) > 1 else "") if lines else ""
        return ""

    def stop(self) -> None:
        """Stop the server. Never raises, because it also runs on the way out of a failure."""
        if self.rpc is not None:
            self.rpc.close()
        if self._tunnel is not None:
            _end(self._tunnel)
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired, OSError, ValueError):
                self._process.communicate(b"stop\n", timeout=30)
            _end(self._process)
        self.rpc = self._tunnel = self._process = None


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    wait_or_kill(process, 5)
