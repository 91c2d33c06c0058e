# SPDX-License-Identifier: GPL-2.0-or-later
"""TRex's server on the generator: configured, started, watched and ended over SSH."""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from fwlab.generator.trex.config import Machine, trex_config, wants_own_driver
from fwlab.generator.trex.rpc import Rpc
from fwlab.host.process import wait_or_kill
from fwlab.host.ssh import Ssh
from fwlab.model.errors import CannotMeasure
from fwlab.model.topology import Topology

FOLDER = "/opt/trex"
CONFIG = "/etc/trex_cfg.yaml"
LOG = "/run/fwlab-trex.log"
#: Where it listens on the generator; TRex's own default.
RPC_PORT = 4501
OPTIONS = "-i --software --no-scapy-server --no-termio --no-watchdog --iom 0"
#: Ends the server, with all that its start script began, when its input closes: when the host is done, or gone.
_SERVE = (
    f"cd {FOLDER} && exec 3<&0; setsid ./t-rex-64 {OPTIONS}{{mode}} --cfg {CONFIG} </dev/null >{LOG} 2>&1 & p=$!; "
    "(read -r _ <&3; kill -INT -$p; sleep 15; kill -KILL -$p) >/dev/null 2>&1 & w=$!; wait $p; r=$?; kill $w; "
)
#: TRex asks for huge pages of a gigabyte, which small machines do not have, unless some are there already.
_HUGE_PAGES = (
    "grep -q ' /mnt/huge hugetlbfs' /proc/mounts || { mkdir -p /mnt/huge && mount -t hugetlbfs nodev /mnt/huge; }; "
)
#: A NIC that TRex drove by itself goes back to the kernel, for the other engine and for TCP.
_GIVE_BACK = f"cd {FOLDER}; ./dpdk_nic_bind.py -b virtio-pci {{pci}} >>{LOG} 2>&1; "
#: Under emulation on a busy host its start takes a minute or two (s).
PATIENCE_S = 420
_FACTS = (
    f"test -x {FOLDER}/t-rex-64 && echo yes || echo no; nproc; "
    "sed -n 's/^MemTotal: *\\([0-9]*\\) kB/\\1/p' /proc/meminfo; "
    "basename $(readlink -f /sys/class/net/{device}/device/..)"
)
T = TypeVar("T")


@dataclass(frozen=True)
class Mode:
    """A server has one from its start to its end: the option that asks for it, and the API that it then speaks.

    One of another major version refuses, and so does one of a lower minor version.
    """

    option: str
    api: dict[str, Any]


STATELESS = Mode("", {"name": "STL", "major": 5, "minor": 1})
STATEFUL = Mode(" --astf", {"name": "ASTF", "major": 2, "minor": 0})


class Server:
    """Up from `start` to `stop`. `rpc` talks to it."""

    def __init__(self, ssh: Ssh, topology: Topology, device: str, *, small: bool, mode: Mode = STATELESS) -> None:
        self._ssh, self._topology, self._device, self._small = ssh, topology, device, small
        self._mode = mode
        self._process: subprocess.Popen[bytes] | None = None
        self._tunnel: subprocess.Popen[bytes] | None = None
        self.rpc: Rpc | None = None

    def start(self) -> None:
        """Raises CannotMeasure with the server's last words where it does not come up."""
        loopback = self._topology.ports.address
        machine = self._machine()
        config = trex_config(self._topology, machine, small=self._small)
        self._ssh.run(f"cat > {CONFIG}", data=config.encode())
        before = after = ""
        if wants_own_driver(machine) and not self._small:
            before, after = _HUGE_PAGES, _GIVE_BACK.format(pci=machine.pci)
        try:
            self._process = self._ssh.open(f"{before}{_SERVE.format(mode=self._mode.option)}{after}exit $r")
            self._tunnel, port = self._ssh.tunnel(loopback, RPC_PORT)
            self.rpc = Rpc(f"tcp://{loopback}:{port}")
            self._await_answer()
            self.rpc.join(self._mode.api)
        except BaseException:
            self.stop()
            raise

    def ask(self, method: str, **parameters: Any) -> Any:
        """The result of one of TRex's methods. Raises CannotMeasure."""
        return self.asked(lambda rpc: rpc.call(method, **parameters))

    def asked(self, action: Callable[[Rpc], T]) -> T:
        """Where the server has ended, that is the fault and not the answer that it did not give."""
        if self.rpc is None:
            raise CannotMeasure("generator: TRex does not run", "fwlab doctor")
        try:
            return action(self.rpc)
        except CannotMeasure as error:
            if not self.alive():
                raise self.ended() from error
            raise

    def _machine(self) -> Machine:
        there, cpus, memory_kib, *rest = self._ssh.run(_FACTS.format(device=self._device)).split()
        if there != "yes":
            raise CannotMeasure(
                f"there is no TRex in {FOLDER} of the generator",
                "these machines are older than the image: `vagrant destroy -f LAB; vagrant up LAB`",
            )
        pci = rest[0] if rest and rest[0].count(":") == 2 else None
        return Machine(int(cpus), int(memory_kib) >> 10, pci)

    def _await_answer(self) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not self.rpc.ping(3):
            if self._process.poll() is not None:
                raise self.ended()
            if self._tunnel.poll() is not None:
                raise self._ssh.lost("the tunnel to TRex broke")
            if time.monotonic() > deadline:
                raise CannotMeasure(f"generator: TRex does not answer within {PATIENCE_S} s{self._last_words()}")

    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def ended(self) -> CannotMeasure:
        """What to raise when the server is gone."""
        code = self._process.returncode if self._process else None
        if code == 255:
            return self._ssh.lost("the session that TRex ran in broke")
        return CannotMeasure(
            f"generator: TRex ended with {code}{self._last_words()}", f"on the generator: `less {LOG}`"
        )

    def _last_words(self) -> str:
        with contextlib.suppress(CannotMeasure):
            said = self._ssh.run(f"tail -n 8 {LOG}", check=False).strip()
            return f":\n{said}" if said else ""
        return ""

    def stop(self) -> None:
        """End it. Never raises: it is called on the way out of a failure, too."""
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
