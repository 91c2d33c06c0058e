# SPDX-License-Identifier: GPL-2.0-or-later
"""The emulated host as a process: QEMU's arguments, start, SSH, stop.

QEMU ends with this process, however that ends. Its user-mode network lets nothing out (restrict=on); the one way in is
SSH on a free port of the loopback address.
"""

from __future__ import annotations

import contextlib
import re
import shlex
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from fwlab.host.process import piped, wait_or_kill
from fwlab.model.errors import CannotMeasure
from tests.nested_host.private_qemu import PrivateQemu

LOOPBACK = "127.0.0.1"
#: QEMU's default for a first NIC, by which packer/seed knows the management network.
MANAGEMENT_MAC = "52:54:00:12:34:56"
#: With a second CPU, QEMU's threads interrupt each other, and an interrupt that KVM has just injected may be delivered
#: twice (seen with QEMU 7.2 and 10.0: VMRUN leaves its number in exception_index), also while the guest has interrupts
#: off. The guest then hangs in its firmware or on a spin lock. -icount and thread=single have the same effect.
CPUS = 1
MEMORY_MIB = 6144
#: AMD's virtualization with nested paging is what TCG emulates; Intel's it does not.
CPU_MODEL = "EPYC,+svm,+npt"
#: mitigations=off: they cost an emulated CPU much, and there is nobody to guard against. tsc=reliable: otherwise Linux
#: may read the HPET, an emulated device, for each time stamp. halt_poll_ns=0: an idle guest keeps no CPU busy.
#: default_timeout_start_sec: on a busy computer a disk may take minutes to be found.
KERNEL_ARGUMENTS = (
    "root=/dev/vda1 ro console=ttyS0 net.ifnames=0 intel_iommu=on iommu=pt mitigations=off tsc=reliable "
    "kvm.halt_poll_ns=0 systemd.default_timeout_start_sec=infinity quiet"
)
#: NICs with virtual functions, one for each link: virtio's NICs cannot set VLANs, which would keep two links apart.
#: A NIC, its virtual functions and nothing else are joined by a hub.
PORTS = ("port0", "port1")
#: Virtual functions of each.
FUNCTIONS = 2
#: Of the NICs with virtual functions: behind the IOMMU, without the legacy interface, which VFs do not have.
NIC = "virtio-net-pci,disable-legacy=on,iommu_platform=on,rx_queue_size=1024,romfile="
#: Until SSH answers, and for the first and the longest attempt (s). The boot takes 40 s of CPU time; a busy computer
#: may have little to spare.
BOOT_S, FIRST_ATTEMPT_S, ATTEMPT_S = 7200, 15, 900
QEMU_LOG = "qemu.log"
#: Lines that Vagrant prints hundreds of times.
PROGRESS = re.compile(r"(Progress: \d+%)+")


@dataclass(frozen=True)
class HostFiles:
    """What the host boots from. `disk` is written; `boxes` and `seed` are only read."""

    kernel: Path
    initrd: Path
    disk: Path
    boxes: Path
    seed: Path
    key: Path


def arguments(files: HostFiles, ssh_port: int, console: Path) -> list[str]:
    """QEMU's arguments, without the program."""
    words = [
        *("-name", "nested-host,debug-threads=on", "-display", "none", "-no-user-config", "-nodefaults"),
        *("-machine", "q35", "-accel", "tcg,thread=multi"),
        *("-cpu", CPU_MODEL, "-smp", str(CPUS), "-m", str(MEMORY_MIB)),
        *("-device", "intel-iommu,intremap=on"),
        *("-kernel", str(files.kernel), "-initrd", str(files.initrd), "-append", KERNEL_ARGUMENTS),
        *("-drive", f"file={files.disk},format=qcow2,if=none,id=root", "-device", "virtio-blk-pci,drive=root"),
        *("-netdev", f"user,id=management,restrict=on,hostfwd=tcp:{LOOPBACK}:{ssh_port}-:22"),
        *("-device", f"virtio-net-pci,netdev=management,mac={MANAGEMENT_MAC},romfile="),
        *("-serial", f"file:{console}"),
    ]
    for name, path in (("boxes", files.boxes), ("seed", files.seed)):
        words += ["-drive", f"file={path},format=raw,if=none,id={name},readonly=on"]
        words += ["-device", f"virtio-blk-pci,drive={name}"]
    return words + [word for number, port in enumerate(PORTS) for word in nic_arguments(port, number)]


def nic_arguments(port: str, number: int) -> list[str]:
    """A NIC with virtual functions. QEMU wants those before the NIC that they are of."""
    words = ["-device", f"pcie-root-port,id=root-{port},chassis={number + 1},slot={number + 1}"]
    for function in range(FUNCTIONS, -1, -1):
        netdev, role = f"{port}-{function}", f"sriov-pf={port}" if function else f"id={port}"
        words += ["-netdev", f"hubport,id={netdev},hubid={number + 1}"]
        place = f"bus=root-{port},addr=0x0.{function:#x},mac=52:54:00:aa:0{number}:0{function}"
        words += ["-device", f"{NIC},{place},netdev={netdev},{role}"]
    return words


class Host:
    """A running host. Commands run there as root."""

    def __init__(self, files: HostFiles, ssh_port: int, process: subprocess.Popen[bytes], console: Path) -> None:
        self.ssh_port, self.console = ssh_port, console
        self._process, self._key = process, files.key

    @property
    def login(self) -> list[str]:
        """The command that logs in, for a person, too."""
        options = ["BatchMode=yes", "StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "LogLevel=ERROR"]
        options += [
            "IdentitiesOnly=yes",
            f"ConnectTimeout={ATTEMPT_S}",
            "ServerAliveInterval=60",
            "ServerAliveCountMax=60",
        ]
        words = ["ssh", "-F", "none", "-i", str(self._key), "-p", str(self.ssh_port)]
        return [*words, *(word for option in options for word in ("-o", option)), f"vagrant@{LOOPBACK}"]

    def run(
        self, command: str, tell: Callable[[str], None], *, timeout_s: float, data: Path | None = None
    ) -> tuple[int, str]:
        """Run a shell command; returns its exit code and what it printed, which `tell` gets line by line.

        `data`: a file for its standard input. Raises CannotMeasure after `timeout_s`, or if the host ended.
        """
        words = [*self.login, f"sudo -n sh -c {shlex.quote(command)}"]
        with (data or Path("/dev/null")).open("rb") as given:
            process = subprocess.Popen(
                ["timeout", "--kill-after=10", f"{timeout_s:g}", *words],
                stdin=given,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                start_new_session=True,
            )
        lines = []
        try:
            for line in map(plain, piped(process.stdout)):
                if not PROGRESS.fullmatch(line):
                    lines.append(line)
                    tell(line)
            process.wait()
        finally:
            if process.poll() is None:
                process.terminate()
            wait_or_kill(process, 10)
        if self._process.poll() is not None:
            raise CannotMeasure(f"the emulated host ended during: {command[:80]}", f"read {self.console}")
        if process.returncode in (124, 137):
            raise CannotMeasure(f"no end within {timeout_s:g} s of: {command[:80]}", f"read {self.console}")
        return process.returncode, "\n".join(lines)

    def await_boot(self) -> float:
        """Wait until SSH answers; returns how long that took (s). Raises CannotMeasure."""
        began, attempt_s, refused = time.monotonic(), FIRST_ATTEMPT_S, False
        while time.monotonic() < began + BOOT_S:
            if self._process.poll() is not None:
                words = (self.console.with_name(QEMU_LOG)).read_text(errors="replace").strip().splitlines()
                raise CannotMeasure(f"QEMU ended: {words[-1] if words else 'no reason given'}", f"read {self.console}")
            with contextlib.suppress(CannotMeasure):
                status, said = self.run("true", lambda line: None, timeout_s=attempt_s)
                refused = "Permission denied" in said
                if status == 0 or refused:
                    break
            # A connection that was made before the host had a network hangs; on a busy computer a good one takes long.
            attempt_s = min(2 * attempt_s, ATTEMPT_S)
            time.sleep(2)
        else:
            raise CannotMeasure(f"the emulated host does not answer within {BOOT_S} s", f"read {self.console}")
        if refused:
            raise CannotMeasure("the emulated host refuses its key", f"rm {self._key.parents[1]}/prepared-*")
        return time.monotonic() - began

    def power_off(self) -> bool:
        """Shut down in order; returns whether it did, and its disk is whole."""
        with contextlib.suppress(CannotMeasure):
            self.run("systemctl poweroff", lambda line: None, timeout_s=ATTEMPT_S)
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._process.wait(ATTEMPT_S) == 0
        return False


@contextlib.contextmanager
def started(qemu: PrivateQemu, files: HostFiles, folder: Path) -> Iterator[Host]:
    """The host, booting; it ends with the context. Its console and QEMU's words go to `folder`."""
    port, console = free_port(), folder / "console.log"
    command = ["setpriv", "--pdeathsig", "KILL", *qemu.command, *arguments(files, port, console)]
    with (folder / QEMU_LOG).open("wb") as said:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True)
    try:
        yield Host(files, port, process, console)
    finally:
        if process.poll() is None:
            process.kill()
        wait_or_kill(process, 10)


def plain(line: str) -> str:
    """A line without the sequences that erase one on a terminal. Python has split lines at carriage returns already."""
    return line.replace("\x1b[K", "").rstrip()


def free_port() -> int:
    """A TCP port of the loopback address that is free now."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])
