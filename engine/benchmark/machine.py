# SPDX-License-Identifier: GPL-2.0-or-later
"""The measured machines: a generator booted from its box, and the cheapest possible sender in a similar machine."""

from __future__ import annotations

import contextlib
import json
import subprocess
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from engine.benchmark.host import LOOPBACK, free_port, pin_process
from fwlab.host.environment import cache_directory
from fwlab.host.ssh import Ssh, control_sockets
from fwlab.model.errors import CannotMeasure
from fwlab.model.topology import Topology

#: QEMU's default for the first NIC, by which packer/seed identifies the management network.
MANAGEMENT_MAC = "52:54:00:12:34:56"
BOOT_S = 180


def newest_box() -> Path:
    """The generator's box that was built last. Raises CannotMeasure if there is none."""
    root = cache_directory()
    boxes = sorted(root.glob("boxes/generator-*.box"), key=lambda path: path.stat().st_mtime)
    if not boxes:
        raise CannotMeasure(f"no box of the generator in {root}/boxes", "make boxes")
    return boxes[-1]


class Bench:
    """A booted generator. `pid`: its QEMU; `trex`: the TRex version in its box; `place`: what pin_process did."""

    def __init__(self, folder: Path, pid: int, facts: dict[str, Any]) -> None:
        self.ssh = Ssh(folder / "ssh_config", "generator")
        self.console = folder / "serial.log"
        self.pid = pid
        self.manifest: dict[str, Any] = facts.get("manifest", {})
        self.trex: str | None = (facts.get("trex") or {}).get("version")
        self.place = ""

    def await_boot(self) -> None:
        """Wait for SSH, then pin QEMU's threads. Raises CannotMeasure after BOOT_S."""
        end = time.monotonic() + BOOT_S
        while True:
            try:
                self.ssh.run("ip link set dev eth0 up", timeout=20)
                break
            except CannotMeasure as error:
                if time.monotonic() > end:
                    why = f"the generator does not answer within {BOOT_S} s: {error.message}"
                    raise CannotMeasure(why, f"see {self.console}") from error
            time.sleep(1)
        self.place = pin_process(self.pid)


@contextlib.contextmanager
def generator(topology: Topology, repository: Path, box: Path, folder: Path, far_port: int) -> Iterator[Bench]:
    """Boot a generator from an overlay over the box. It writes to `folder` only, and ends with the context."""
    record = box.with_name(box.name + ".json")
    facts = json.loads(record.read_text()) if record.exists() else {}
    with tarfile.open(box) as tar:
        image = next(name for name in tar.getnames() if Path(name).name == "box.img")
        tar.extract(image, folder, filter="data")
    disk = folder / "disk.qcow2"
    create = ["qemu-img", "create", "-q", "-f", "qcow2", "-F", "qcow2", "-b", image, str(disk)]
    subprocess.run(create, check=True)
    seed = subprocess.run([repository / "packer" / "seed", folder], capture_output=True, text=True, check=False)
    if seed.returncode:
        raise CannotMeasure(f"packer/seed: {seed.stderr.strip()}", "make setup")
    port = free_port()
    (folder / "ssh_config").write_text(f"""Host generator
  HostName {LOOPBACK}
  Port {port}
  User vagrant
  IdentityFile "{folder / "id_ed25519"}"
  IdentitiesOnly yes
  StrictHostKeyChecking no
  UserKnownHostsFile /dev/null
  LogLevel ERROR
  BatchMode yes
  ConnectTimeout 10
  ControlMaster auto
  ControlPath {control_sockets()}/%C
  ControlPersist 60
""")
    node, board = topology.nodes["generator"], topology.machine
    with_trex = node.with_trex if facts.get("trex") else None
    memory = with_trex.memory_mib if with_trex else node.memory_mib
    model = with_trex.cpu_model if with_trex else board.cpu_model
    slot = format(board.management_pci_slot, "#x")
    more = [
        *("-drive", f"file={disk},if=none,id=disk", "-device", "virtio-blk-pci,drive=disk,addr=0x2"),
        *("-drive", f"file={folder / 'seed.iso'},if=ide,media=cdrom,readonly=on"),
        *("-netdev", f"user,id=management,restrict=on,hostfwd=tcp:{LOOPBACK}:{port}-:22"),
        *("-device", f"virtio-net-pci,netdev=management,mac={MANAGEMENT_MAC},addr={slot}"),
        *("-global", f"virtio-net-pci.rx_queue_size={board.receive_ring}"),
        *("-serial", f"file:{folder / 'serial.log'}"),
    ]
    with _qemu(topology, memory, model, far_port, more) as pid:
        bench = Bench(folder, pid, facts)
        bench.await_boot()
        yield bench


@contextlib.contextmanager
def cheapest_sender(topology: Topology, kernel: Path, size: int, far_port: int) -> Iterator[int]:
    """Boot a similar machine without operating system that sends frames of `size` bytes. Yields QEMU's pid."""
    more = ["-kernel", str(kernel), "-append", str(size)]
    with _qemu(topology, 64, topology.machine.cpu_model, far_port, more) as pid:
        time.sleep(0.5)  # until the thread of its virtual CPU exists
        pin_process(pid)
        yield pid


@contextlib.contextmanager
def _qemu(topology: Topology, memory_mib: int, model: str, far_port: int, more: list[str]) -> Iterator[int]:
    end = topology.end("generator-dut", "generator")
    link = f"socket,id=link,udp={LOOPBACK}:{far_port},localaddr={LOOPBACK}:{free_port()}"
    command = [
        *("setpriv", "--pdeathsig", "KILL"),  # QEMU ends with this process, however that ends
        *("qemu-system-x86_64", "-name", "bench,debug-threads=on", "-display", "none", "-no-user-config"),
        *("-nodefaults", "-machine", topology.machine.type, "-accel", "tcg,tb-size=128", "-cpu", model),
        *("-smp", "1", "-m", str(memory_mib), "-netdev", link),
        *("-global", "virtio-net-pci.event_idx=off"),  # as a generator of a lab (guides/method.md, "The generator")
        *("-device", f"virtio-net-pci,netdev=link,mac={end.mac},bus=pci.0,addr=0x3"),
        *more,
    ]
    # In its own session, for its own priority, and so that Ctrl-C ends it in order.
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()
