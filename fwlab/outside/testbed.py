# SPDX-License-Identifier: GPL-2.0-or-later
"""Which testbed: virtual (the DUT's clock counts instructions) or real (the host's clock).

What varies between the two is chosen here, once; callers ask and never branch on the name.
"""

from __future__ import annotations

import os
import platform
import select
import shutil
import subprocess
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from fwlab.words.errors import BadInput
from fwlab.words.results import HostFacts, TestbedFacts
from fwlab.words.topology import Topology


@dataclass(frozen=True)
class Testbed:
    """The chosen testbed and why. `judged`: whether absolute ranges may be held against it."""

    __test__ = False  # not a test case, whatever pytest thinks of the name

    name: Literal["virtual", "real"]
    accelerator: Literal["tcg", "kvm"]
    forced: bool
    why: str

    def environment(self) -> dict[str, str]:
        """What the Vagrantfile reads."""
        driver = {"tcg": "qemu", "kvm": "kvm"}[self.accelerator]
        return {"FWLAB_TESTBED": self.name, "FWLAB_ACCEL": driver}

    @property
    def slows_the_dut(self) -> bool:
        """Whether taking host CPU from the DUT leaves its figures alone."""
        return self.name == "virtual"

    def facts(self, topology: Topology, engine: str) -> TestbedFacts:
        virtual = self.name == "virtual"
        note = ""
        if not virtual and self.accelerator == "tcg":
            note = "emulation by the wall clock: figures show that the machinery works, nothing else"
        return TestbedFacts(
            name=self.name,
            accelerator=self.accelerator,
            clock="instructions" if virtual else "host",
            ns_per_instruction=topology.clock.ns_per_instruction if virtual else None,
            forced=self.forced,
            link="socket",
            engine=engine,
            note=note,
        )


def choose(wanted: str = "auto", *, grading: bool = False) -> Testbed:
    """`auto`: real where KVM runs a guest, else virtual; grading takes virtual everywhere."""
    if wanted not in ("auto", "virtual", "real"):
        raise BadInput(f"unknown testbed {wanted}", "use auto, virtual or real")
    if wanted == "virtual":
        return Testbed("virtual", "tcg", True, "asked for")
    if grading and wanted == "auto":
        return Testbed("virtual", "tcg", False, "grading is the same everywhere")
    works, why = kvm_works()
    if wanted == "real":
        return Testbed("real", "kvm" if works else "tcg", True, f"asked for; {why}")
    if works:
        return Testbed("real", "kvm", False, why)
    return Testbed("virtual", "tcg", False, why)


@cache
def kvm_works() -> tuple[bool, str]:
    """Whether KVM runs a guest. The device file may be there, and even firmware run, and no kernel start.

    So a kernel is started: the boxes' own, else the host's. Without one, KVM is not relied on.
    """
    if not Path("/dev/kvm").exists():
        return False, "there is no /dev/kvm"
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return False, "/dev/kvm is not yours to open (group kvm)"
    if shutil.which("qemu-system-x86_64") is None:
        return False, "qemu-system-x86_64 is not installed"
    kernel = _some_kernel()
    if kernel is None:
        return False, "there is no kernel to try KVM with yet"
    return _kernel_speaks(kernel)


def _some_kernel() -> Path | None:
    candidates = [*sorted(cache_folder().glob("bases/*/vmlinuz*")), *sorted(Path("/boot").glob("vmlinuz*"))]
    return next((path for path in candidates if os.access(path, os.R_OK)), None)


def cache_folder() -> Path:
    """Where what is built once is kept, outside the checkout: the same rule as packer/build's."""
    if "FWLAB_CACHE" in os.environ:
        return Path(os.environ["FWLAB_CACHE"])
    if os.getuid() == 0:
        return Path("/var/cache/fwlab")
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "fwlab"


def _kernel_speaks(kernel: Path, patience_s: float = 8) -> tuple[bool, str]:
    """Start the kernel under KVM without a disk and wait for its first line."""
    argv = ["qemu-system-x86_64", "-accel", "kvm", "-cpu", "host", "-m", "256", "-display", "none", "-nodefaults"]
    argv += ["-no-reboot", "-kernel", str(kernel), "-append", "console=ttyS0 earlyprintk=serial panic=-1"]
    process = subprocess.Popen(
        [*argv, "-serial", "stdio"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    said = b""
    deadline = time.monotonic() + patience_s
    try:
        while (left := deadline - time.monotonic()) > 0:
            ready, _, _ = select.select([process.stdout], [], [], left)
            part = os.read(process.stdout.fileno(), 4096) if ready else b""
            said += part
            if b"Linux version" in said:
                return True, "KVM runs a kernel"
            if not part:
                break
        if process.poll() is None:
            return False, f"under KVM a kernel says nothing within {patience_s:g} s"
        words = process.stderr.read().decode(errors="replace").strip().splitlines()
        return False, f"KVM does not start: {words[-1] if words else 'no words'}"
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()


def host_facts(host_class: str | None = None) -> HostFacts:
    """The host below the nodes, without anything that names a person or a place."""
    cpuinfo = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    model = next((x.split(":")[1].strip() for x in cpuinfo.splitlines() if x.startswith("model name")), "unknown")
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
    release = platform.freedesktop_os_release() if Path("/etc/os-release").exists() else {}
    return HostFacts(
        cpu=model,
        cores=os.cpu_count() or 1,
        memory_mib=memory,
        os=release.get("PRETTY_NAME", platform.system()),
        kernel=platform.release(),
        qemu=_version(["qemu-system-x86_64", "--version"]),
        libvirt=_version(["virsh", "--version"]),
        load_average=os.getloadavg()[0],
        host_class=host_class or os.environ.get("FWLAB_HOST_CLASS"),
    )


def _version(argv: list[str]) -> str:
    if shutil.which(argv[0]) is None:
        return "not installed"
    said = subprocess.run(argv, capture_output=True, text=True).stdout.strip().splitlines()
    return said[0].replace("QEMU emulator version ", "").split(" (")[0] if said else "unknown"
