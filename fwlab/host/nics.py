# SPDX-License-Identifier: GPL-2.0-or-later
"""The host's NICs, PCI functions and virtual functions: what the kernel shows below /sys, /dev and /proc, and what
iproute2's `ip` reads and sets.

Sources: the kernel's Documentation/ABI/testing/sysfs-class-net and sysfs-bus-pci.
"""

import json
import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import field_validator

from fwlab.model.declared import Frozen
from fwlab.model.errors import CannotMeasure

#: The driver of a PCI function that has been handed to a virtual machine.
VFIO = "vfio-pci"
#: A device on the virtio bus, whose parent is a PCI function.
VIRTIO = re.compile(r"virtio\d+")


@dataclass(frozen=True)
class VirtualFunction:
    """One VF. `index`: its number on its physical function (PF), `nic` the PF's name; `group`: IOMMU group or None."""

    address: str
    index: int
    nic: str
    driver: str
    group: str | None


@dataclass(frozen=True)
class Devices:
    """Where the kernel shows its devices. Tests give other folders."""

    sys: Path = Path("/sys")
    dev: Path = Path("/dev")
    proc: Path = Path("/proc")

    def nics(self) -> list[str]:
        """The names of all NICs, virtual ones included."""
        return sorted(path.name for path in self._net.glob("*") if path.is_dir())

    def has_nic(self, name: str) -> bool:
        """Whether there is a NIC of that name."""
        return (self._net / name).is_dir()

    def is_wireless(self, name: str) -> bool:
        """Whether it is a wireless NIC, which sends frames from its own MAC address only."""
        return any((self._net / name / part).exists() for part in ("wireless", "phy80211"))

    def is_up(self, name: str) -> bool:
        """Whether it is up and has a carrier. "unknown" is what virtual NICs say."""
        return self._text(self._net / name / "operstate") in ("up", "unknown")

    def master(self, name: str) -> str | None:
        """The bridge or bond that it is a port of."""
        path = self._net / name / "master"
        return path.resolve().name if path.exists() else None

    def physical_functions(self) -> dict[str, tuple[int, int]]:
        """NICs that can have VFs, by name: how many they have, and how many they can have."""
        found = {}
        for name in self.nics():
            total = self._number(self._function(name) / "sriov_totalvfs")
            if total:
                found[name] = (self._number(self._function(name) / "sriov_numvfs"), total)
        return found

    def vfs_command(self, nic: str) -> str:
        """What makes as many VFs of a NIC as two links need, or as it can have."""
        function = self._function(nic)
        count = min(4, self._number(function / "sriov_totalvfs"))
        return f"echo {count} >/sys/bus/pci/devices/{function.name}/sriov_numvfs"

    def virtual_functions(self, nic: str) -> list[VirtualFunction]:
        """The VFs of a NIC, by index."""
        folder = self._function(nic)
        found = [one for link in folder.glob("virtfn*") if (one := self.virtual_function(link.resolve().name))]
        return sorted(found, key=lambda one: one.index)

    def virtual_function(self, address: str) -> VirtualFunction | None:
        """The VF at this PCI address (0000:01:10.0); None if there is none, or if it is no VF."""
        folder = self.sys / "bus" / "pci" / "devices" / address
        if not (folder / "physfn").exists():
            return None
        physical = (folder / "physfn").resolve()
        links = {link.resolve().name: link.name for link in physical.glob("virtfn*")}
        index = re.fullmatch(r"virtfn(\d+)", links.get(address, ""))
        if index is None:
            return None
        names = [path.name for where in ("net/*", "virtio*/net/*") for path in sorted(physical.glob(where))]
        driver = self._link(folder / "driver") or ""
        return VirtualFunction(address, int(index[1]), names[0] if names else "", driver, self.group(address))

    def has_pci(self, address: str) -> bool:
        """Whether there is a PCI function at this address."""
        return (self.sys / "bus" / "pci" / "devices" / address).exists()

    def group(self, address: str) -> str | None:
        """The IOMMU group of a PCI function; None without an IOMMU."""
        return self._link(self.sys / "bus" / "pci" / "devices" / address / "iommu_group")

    def iommu_groups(self) -> int:
        """How many IOMMU groups there are. Without any, no PCI function can be handed to a machine."""
        return len(list((self.sys / "kernel" / "iommu_groups").glob("*")))

    def machines_with(self, word: str) -> Iterator[str]:
        """libvirt's names of the running machines whose QEMU has `word` in its arguments."""
        for path in sorted(self.proc.glob("[0-9]*/cmdline")):
            try:
                words = path.read_bytes().decode(errors="replace").split("\0")
            except OSError:  # it has ended
                continue
            if "qemu" in words[0] and any(word in one for one in words[1:]):
                named = re.search(r"(?:^|\0)guest=([^,\0]+)", "\0".join(words))
                yield named[1] if named else Path(words[0]).name

    @property
    def boot(self) -> str:
        """What tells this boot of the host from every other one."""
        return self._text(self.proc / "sys" / "kernel" / "random" / "boot_id")

    @property
    def _net(self) -> Path:
        return self.sys / "class" / "net"

    def _function(self, nic: str) -> Path:
        """The folder of a NIC's PCI function. Between it and a virtio NIC there is the device on the virtio bus."""
        folder = (self._net / nic / "device").resolve()
        return folder.parent if VIRTIO.fullmatch(folder.name) else folder

    @staticmethod
    def _text(path: Path) -> str:
        try:
            return path.read_text().strip()
        except OSError:
            return ""

    @classmethod
    def _number(cls, path: Path) -> int:
        text = cls._text(path)
        return int(text) if text.isdecimal() else 0

    @staticmethod
    def _link(path: Path) -> str | None:
        return path.resolve().name if path.exists() else None


#: What follows the name of a NIC's driver.
NO_ADMINISTRATION = "cannot administer VFs: no VLAN, no spoof check, and each machine sets its MAC address itself"


class VfSettings(Frozen):
    """What a physical function enforces for one VF. `vlan`: 0 is none. None: the driver does not have the setting."""

    mac: str
    vlan: int = 0
    spoof_check: bool | None = None
    trust: bool | None = None

    @field_validator("mac")
    @classmethod
    def _lower(cls, mac: str) -> str:
        return mac.lower()


class Ip:
    """Calls `ip`. Raises CannotMeasure with its own words if it fails."""

    def run(self, arguments: Sequence[str]) -> str:
        """What `ip` prints."""
        try:
            done = subprocess.run(["ip", *arguments], capture_output=True, text=True, timeout=30, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise CannotMeasure(f"`ip {' '.join(arguments)}`: {error}", "provision/host/install") from error
        if done.returncode:
            said = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
            raise CannotMeasure(f"`ip {' '.join(arguments)}` failed: {said}", "fwlab doctor")
        return done.stdout

    def addresses(self, nic: str) -> list[str]:
        """The NIC's own addresses, without those that the kernel gives by itself (IPv6 link-local)."""
        entries = json.loads(self.run(["-json", "address", "show", "dev", nic]) or "[]")
        found = [address for entry in entries for address in entry.get("addr_info", [])]
        return [f"{one['local']}/{one['prefixlen']}" for one in found if one.get("scope") != "link"]

    def listed_vfs(self, nic: str) -> dict[int, VfSettings]:
        """The settings of the VFs of a NIC. None are listed if its driver cannot administer them."""
        entries = json.loads(self.run(["-json", "-details", "link", "show", "dev", nic]) or "[]")
        return {int(one["vf"]): _settings(one) for entry in entries for one in entry.get("vfinfo_list", [])}

    def vf(self, nic: str, index: int) -> VfSettings | None:
        """The settings of one VF of a NIC, or None if its driver cannot administer VFs.

        Raises CannotMeasure if the NIC lists others only.
        """
        listed = self.listed_vfs(nic)
        if listed and index not in listed:
            raise CannotMeasure(f"{nic} does not list its VF {index}", f"ip link show dev {nic}")
        return listed.get(index)

    def set_vf(self, nic: str, index: int, wanted: VfSettings) -> None:
        """Set a VF. Settings that are None stay as they are."""
        words = ["link", "set", "dev", nic, "vf", str(index), "mac", wanted.mac, "vlan", str(wanted.vlan)]
        for name, value in (("spoofchk", wanted.spoof_check), ("trust", wanted.trust)):
            if value is not None:
                words += [name, "on" if value else "off"]
        self.run(words)


def _settings(listed: dict[str, Any]) -> VfSettings:
    """One entry of `vfinfo_list`. iproute2 5 and earlier call the address "mac"."""
    vlans = [one.get("vlan", 0) for one in listed.get("vlan_list", [])]
    return VfSettings(
        mac=str(listed.get("address") or listed.get("mac")),
        vlan=vlans[0] if vlans else listed.get("vlan", 0),
        spoof_check=listed.get("spoofchk"),
        trust=listed.get("trust"),
    )
