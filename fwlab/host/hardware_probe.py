# SPDX-License-Identifier: GPL-2.0-or-later
"""What this host has for the real testbed and its links: each thing, and what to do if it is missing.

None of it is needed on the virtual testbed.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from fwlab.host.kvm_probe import KvmAnswer, other_architecture
from fwlab.host.nics import NO_ADMINISTRATION, VFIO, Devices, Ip
from fwlab.model.errors import CannotMeasure

#: One for each machine, and one for the host, whose threads carry the frames.
WANTED_CORES = 4


@dataclass(frozen=True)
class Finding:
    """One thing that was examined: what was found (`says`), and what to do about it if it is not ok.

    `required`: without it, nothing can be measured on the testbed and the links that would be used.
    """

    item: str
    ok: bool
    says: str
    next: str = ""
    required: bool = True


def probe_hardware(devices: Devices, ip: Ip, kvm: KvmAnswer, cores: int | None = None) -> list[Finding]:
    """Everything, in the order in which one would look; none of it is required.

    cores  those that this process may use
    """
    found = [
        Finding("KVM", kvm.works, kvm.why, _kvm_hint(devices, kvm)),
        _vhost(devices),
        _cores(len(os.sched_getaffinity(0)) if cores is None else cores),
        _nesting(devices),
        _huge_pages(devices),
        _iommu(devices),
        _virtual_functions(devices, ip),
    ]
    return [replace(one, required=False) for one in found]


def _kvm_hint(devices: Devices, kvm: KvmAnswer) -> str:
    if other_architecture():
        return "work on the virtual testbed, whose figures are the same here"
    if not (devices.dev / "kvm").exists():
        if _hypervisor(devices):
            return "this host is a virtual machine: switch on nesting for it where it runs"
        return "switch on VT-x or AMD-V in the firmware, then modprobe kvm_intel or kvm_amd"
    if "permission" in kvm.why:
        return "usermod --append --groups kvm $USER, then log in again"
    if "no kernel" in kvm.why:
        return "make boxes, then fwlab doctor --probe"
    where = " (this host is a virtual machine: nesting)" if _hypervisor(devices) else ""
    return f"work on the virtual testbed; after a change of firmware, kernel or QEMU{where}: fwlab doctor --probe"


def _vhost(devices: Devices) -> Finding:
    if (devices.dev / "vhost-net").exists():
        return Finding("vhost", True, "the kernel carries frames between machines and tap devices (/dev/vhost-net)")
    return Finding(
        "vhost", False, "there is no /dev/vhost-net: links virtio and macvtap are slow", "modprobe vhost_net"
    )


def _cores(cores: int) -> Finding:
    said = f"{cores}; the real testbed uses {WANTED_CORES}: one for each machine and one for the host"
    hint = "use another host for the real testbed: on this one its machines disturb each other"
    return Finding("cores", cores >= WANTED_CORES, said, hint)


def _nesting(devices: Devices) -> Finding:
    here = "this host is a virtual machine itself; " if _hypervisor(devices) else ""
    for vendor in ("intel", "amd"):
        path = devices.sys / "module" / f"kvm_{vendor}" / "parameters" / "nested"
        if path.exists():
            ok = path.read_text().strip() in ("Y", "1")
            said = f"{here}machines here {'can' if ok else 'cannot'} run KVM themselves"
            return Finding("nesting", ok, said, f"modprobe -r kvm_{vendor}; modprobe kvm_{vendor} nested=1")
    return Finding("nesting", False, f"{here}KVM's module is not loaded", "see KVM above")


def _huge_pages(devices: Devices) -> Finding:
    found = _meminfo(devices)
    total, free, size = (found.get(name, 0) for name in ("HugePages_Total", "HugePages_Free", "Hugepagesize"))
    said = f"{free} of {total} are free, {size >> 10} MiB each"
    return Finding("huge pages", total > 0, said, "sysctl vm.nr_hugepages=1024 (TRex on a NIC of its own needs them)")


def _iommu(devices: Devices) -> Finding:
    groups = devices.iommu_groups()
    hint = "switch on VT-d or AMD-Vi in the firmware, add intel_iommu=on (Intel) to the kernel's command line, reboot"
    return Finding("IOMMU", groups > 0, f"{groups} groups" if groups else "there are no IOMMU groups", hint)


def _virtual_functions(devices: Devices, ip: Ip) -> Finding:
    physical = devices.physical_functions()
    if not physical:
        return Finding("virtual functions", False, "no NIC has SR-IOV", "link sriov needs such a NIC; use another link")
    said = "; ".join(_described(devices, ip, nic, *counts) for nic, counts in physical.items())
    without = [nic for nic, (now, _) in physical.items() if not now]
    ok = any(now for now, _ in physical.values())
    return Finding("virtual functions", ok, said, devices.vfs_command(without[0]) if without else "")


def _described(devices: Devices, ip: Ip, nic: str, now: int, most: int) -> str:
    taken = sum(vf.driver == VFIO for vf in devices.virtual_functions(nic))
    state = "" if devices.is_up(nic) else ", and is down"
    said = f"{nic} has {now} of at most {most}, {taken} of them handed to machines{state}"
    return f"{said}; its driver {NO_ADMINISTRATION}" if now and not _administered(ip, nic) else said


def _administered(ip: Ip, nic: str) -> bool:
    """Whether the driver of a NIC sets its VFs; True if `ip` does not answer."""
    try:
        return bool(ip.listed_vfs(nic))
    except CannotMeasure:
        return True


def _hypervisor(devices: Devices) -> bool:
    return any(re.search(r"^flags\s*:.*\bhypervisor\b", line) for line in _lines(devices.proc / "cpuinfo"))


def _meminfo(devices: Devices) -> dict[str, int]:
    found = (re.match(r"(\w+):\s+(\d+)", line) for line in _lines(devices.proc / "meminfo"))
    return {one[1]: int(one[2]) for one in found if one}


def _lines(path: Path) -> Iterator[str]:
    try:
        yield from path.read_text().splitlines()
    except OSError:
        return
