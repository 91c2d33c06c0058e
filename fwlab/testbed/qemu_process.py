# SPDX-License-Identifier: GPL-2.0-or-later
"""The QEMUs of running machines as processes of this host.

Each is found by the SSH port that it forwards. Then: the threads of its virtual CPUs, and the CPUs that these may run
on; libvirt's name for it, and its commands; the state that is saved of it; larger receive buffers for its links.
"""

import contextlib
import ctypes
import os
import socket
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

import psutil

from fwlab.host.environment import libvirt_uri, timeout_scale
from fwlab.model.errors import CannotMeasure
from fwlab.model.topology import ROLES, Topology


def qemu_of(ssh_address: str, ssh_port: int) -> int:
    """Process id of the QEMU that forwards this SSH port. Raises CannotMeasure if there is none."""
    forwarded = f"{ssh_address}:{ssh_port}-"
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or [""]
        if "qemu" in words[0] and any(forwarded in word for word in words) and _in_our_network(process.pid):
            return process.pid
    raise CannotMeasure(f"no QEMU forwards {ssh_address}:{ssh_port}", "vagrant up LAB")


def _in_our_network(pid: int) -> bool:
    """Whether its loopback address is ours: the QEMU of a container on this host may forward the same port."""
    try:
        return Path(f"/proc/{pid}/ns/net").stat().st_ino == Path("/proc/self/ns/net").stat().st_ino
    except OSError:
        return True  # another user's process: its namespace cannot be read


def vcpu_thread(pid: int) -> int:
    """Thread id of the only virtual CPU. Raises CannotMeasure if none is named."""
    threads = vcpu_threads(pid)
    if not threads:
        raise CannotMeasure(f"QEMU {pid} names no CPU thread", "start it with debug-threads=on, as libvirt does")
    return threads[0]


def vcpu_threads(pid: int) -> list[int]:
    """Thread ids of the virtual CPUs: named "CPU 0/TCG", "CPU 0/KVM" or, with -icount, "ALL CPUs/TCG"."""
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):
            if (task / "comm").read_text().startswith(("CPU ", "ALL CPUs")):
                found.append(int(task.name))
    return sorted(found)


def arguments_of(pid: int) -> list[str]:
    """The command line of this QEMU. Raises CannotMeasure if it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace").split("\0")
    except OSError as error:
        raise CannotMeasure(f"QEMU {pid} has ended", "vagrant up LAB") from error


def domain_of(pid: int) -> str:
    """libvirt's name for the machine that this QEMU runs, from its command line (-name guest=...)."""
    words = arguments_of(pid)
    named = words[words.index("-name") + 1] if "-name" in words else ""
    found = {key: value for key, _, value in (part.partition("=") for part in named.split(","))}.get("guest")
    if not found:
        raise CannotMeasure(f"QEMU {pid} was not started by libvirt", "vagrant up LAB")
    return found


_ALLOWED = "Cpus_allowed_list:"


def pinning(topology: Topology, lab_number: int) -> dict[str, str]:
    """By node, the CPUs as the kernel lists them; one list per virtual CPU, joined by "+" if they differ.

    A node whose QEMU cannot be seen, such as another user's, is left out.
    """
    found = {}
    for role in ROLES:
        try:
            pid = qemu_of(topology.ports.address, topology.ssh_port(lab_number, role))
            lists = [_allowed(Path(f"/proc/{pid}/task/{thread}/status")) for thread in vcpu_threads(pid)]
        except (CannotMeasure, OSError):
            continue
        found[role] = "+".join(dict.fromkeys(one for one in lists if one))
    return {role: cpus for role, cpus in found.items() if cpus}


def _allowed(status: Path) -> str:
    lines = status.read_text().splitlines()
    return next((line.split()[1] for line in lines if line.startswith(_ALLOWED)), "")


SYS_PIDFD_GETFD = 438  # on every architecture
#: Size of an enlarged receive buffer (bytes): thousands of frames. An ordinary user gets net.core.rmem_max at most.
ROOM = 4 << 20
SO_RCVBUFFORCE = 33


@contextlib.contextmanager
def large_receive_buffers(processes: Iterable[int]) -> Iterator[None]:
    """Enlarge the receive buffers of these QEMUs' links while the body runs, for hosts too busy to run all at once.

    A socket link is a UDP socket of QEMU with the kernel's default buffer, which holds fewer than 300 short frames.
    While a QEMU waits for a CPU of a busy host, more arrive from 256 open connections, and some are lost. A flood loses
    frames anyway; a closed loop must lose none. QEMU has no option for the size, so its sockets are borrowed
    (pidfd_getfd).

    A socket that this user may not borrow keeps its size.
    """
    with contextlib.ExitStack() as opened:
        for process in processes:
            for udp in _udp_sockets(process, opened):
                size = udp.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
                opened.callback(_resize, udp, size // 2)  # the kernel says twice what was asked for
                _resize(udp, ROOM)
        yield


def _resize(udp: socket.socket, size: int) -> None:
    try:
        udp.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, size)
    except PermissionError:
        udp.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, size)


def _udp_sockets(process: int, opened: contextlib.ExitStack) -> Iterator[socket.socket]:
    """Copies of the process's UDP sockets, closed with `opened`."""
    with contextlib.suppress(OSError):
        pidfd = os.pidfd_open(process)
        opened.callback(os.close, pidfd)
        for entry in Path(f"/proc/{process}/fd").iterdir():
            with contextlib.suppress(OSError):
                if not str(entry.readlink()).startswith("socket:"):
                    continue
                copy = socket.socket(fileno=_borrow(pidfd, int(entry.name)))
                opened.callback(copy.close)
                if (copy.family, copy.type) == (socket.AF_INET, socket.SOCK_DGRAM):
                    yield copy


def _borrow(pidfd: int, descriptor: int) -> int:
    """A copy of another process's file descriptor. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    copy = int(libc.syscall(SYS_PIDFD_GETFD, pidfd, descriptor, 0))
    if copy < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return copy


def virsh(*words: str, timeout_s: float, text: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command of virsh, or those of `text`, one a line. Raises CannotMeasure if it cannot, or not in time."""
    try:
        return subprocess.run(
            ["virsh", "--quiet", "--connect", libvirt_uri(), *words],
            input=text,
            env={**os.environ, "LIBVIRT_AUTOSTART": "0"},  # provision/host/libvirt starts it
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s * timeout_scale(),
            start_new_session=True,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CannotMeasure(f"virsh {' '.join(words[:1])}: {error}", "fwlab doctor") from error


SNAPSHOT = "fwlab-start-state"
#: It takes half a second on an idle host. After this something is broken (s).
SNAPSHOT_S = 120


class Snapshot:
    """The saved state (memory and disk) of the machine whose QEMU forwards an SSH port.

    A submission may leave the DUT in any state, or dead. Restoring takes about a second, whatever happened to the
    guest: QEMU keeps the state inside the machine's disk image (an internal snapshot of libvirt's) and starts from it
    again. Raises CannotMeasure if libvirt refuses.
    """

    def __init__(self, address: str, ssh_port: int) -> None:
        self._domain = domain_of(qemu_of(address, ssh_port))

    def take(self) -> None:
        """Save the present state. Replaces one that an interrupted session may have left."""
        self.discard()
        self._virsh("snapshot-create-as", self._domain, SNAPSHOT)

    def restore(self) -> None:
        """Run from the saved state again. Connections to the machine are lost; its ports stay the same."""
        self._virsh("snapshot-revert", self._domain, SNAPSHOT, "--running", "--force")

    def discard(self) -> None:
        """Delete the state, if there is one."""
        virsh("snapshot-delete", self._domain, SNAPSHOT, timeout_s=SNAPSHOT_S)

    def _virsh(self, *words: str) -> None:
        done = virsh(*words, timeout_s=SNAPSHOT_S)
        if done.returncode:
            said = (done.stderr or done.stdout).strip()
            raise CannotMeasure(f"virsh {words[0]} {self._domain}: {said}", "vagrant destroy -f LAB; vagrant up LAB")
