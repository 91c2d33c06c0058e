# SPDX-License-Identifier: GPL-2.0-or-later
"""Which testbed: virtual (the DUT's clock counts instructions) or real (the host's clock).

What varies between the two is chosen here, once; callers ask and never branch on the name.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from fwlab.host.kvm_probe import KvmAnswer, kvm_works
from fwlab.model.errors import BadInput, CannotMeasure
from fwlab.model.results import HostFacts, TestbedFacts
from fwlab.testbed.machine_record import Made


@dataclass(frozen=True)
class TestbedRequest:
    """What was asked for. Which testbed that comes to is settled when machines are: KVM may have to be tried."""

    __test__ = False  # not a test case, whatever pytest thinks of the name

    name: str = "auto"
    grading: bool = False

    def __post_init__(self) -> None:
        if self.name not in ("auto", "virtual", "real"):
            raise BadInput(f"unknown testbed {self.name}", "use auto, virtual or real")


@dataclass(frozen=True)
class Testbed:
    """The chosen testbed and why. `forced`: the user named it."""

    __test__ = False

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

    def facts(self, made: Made, engine: str) -> TestbedFacts:
        """What goes into results: of the machines as they are, not as they were asked for."""
        note = ""
        if made.testbed == "real" and made.accelerator == "tcg":
            note = "emulation by the wall clock: figures show that the machinery works, nothing else"
        return TestbedFacts(
            name=made.testbed,
            accelerator=made.accelerator,
            clock="instructions" if made.testbed == "virtual" else "host",
            ns_per_instruction=made.ns_per_instruction,
            forced=self.forced,
            link=made.link,
            boxes=made.boxes,
            engine=engine,
            note=note,
        )


def choose(request: TestbedRequest, kvm: KvmAnswer | None = None) -> Testbed:
    """`auto`: real where KVM runs a guest, else virtual; grading takes virtual everywhere.

    `kvm` is asked for where it matters and was not given.
    """
    if request.name == "virtual":
        return Testbed("virtual", "tcg", True, "asked for")
    if request.grading and request.name == "auto":
        return Testbed("virtual", "tcg", False, "grading is the same everywhere")
    kvm = kvm or kvm_works()
    if request.name == "real":
        return Testbed("real", "kvm" if kvm.works else "tcg", True, f"asked for; {kvm.why}")
    if kvm.works:
        return Testbed("real", "kvm", False, kvm.why)
    return Testbed("virtual", "tcg", False, kvm.why)


def settle(request: TestbedRequest, made: Made | None, lab_id: str) -> Testbed:
    """The testbed of the machines that are there, where that is what was asked for; else, without machines, `choose`.

    Raises CannotMeasure for machines that do not fit.
    """
    if made is None:
        return choose(request)
    forced = request.name != "auto"
    wanted = request.name if forced else "virtual" if request.grading else made.testbed
    if wanted != made.testbed:
        asked = f"you asked for {wanted}" if forced else f"grading measures on the {wanted} one"
        raise CannotMeasure(
            f"the machines of {lab_id} were made for the {made.testbed} testbed; {asked}",
            f"vagrant destroy -f {lab_id}, then the same again (or give it --testbed {made.testbed})",
        )
    return Testbed(made.testbed, made.accelerator, forced, f"the machines of {lab_id} were made for it")


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
    said = subprocess.run(argv, capture_output=True, text=True, check=False).stdout.strip().splitlines()
    return said[0].replace("QEMU emulator version ", "").split(" (")[0] if said else "unknown"
