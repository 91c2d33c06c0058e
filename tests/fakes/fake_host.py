# SPDX-License-Identifier: GPL-2.0-or-later
"""A host made of files: NICs, a NIC with VFs, an IOMMU, running machines, and an `ip` that changes them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from fwlab.host.nics import Devices, Ip
from fwlab.model.errors import CannotMeasure

PF = "0000:01:00.0"
#: The VFs of the NIC "enp1s0", by index.
VFS = ["0000:01:10.0", "0000:01:10.2", "0000:01:10.4", "0000:01:10.6"]
#: The VFs of NICs of virtio, by NIC.
VIRTIO_VFS = {"enp2s0": ["0000:02:00.1", "0000:02:00.2"], "enp3s0": ["0000:03:00.1", "0000:03:00.2"]}
NO_MAC = "00:00:00:00:00:00"


class FakeHost(Ip):
    """`calls`: what was asked of `ip`, in order. `fail_at`: the call, counted from 0, that fails."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.devices = Devices(root / "sys", root / "dev", root / "proc")
        self.vfs: dict[int, dict[str, object]] = {}
        self.own_addresses: dict[str, list[str]] = {}
        self.calls: list[str] = []
        self.fail_at: int | None = None
        self.write("proc/sys/kernel/random/boot_id", "boot-1")
        for name in ("dev/net/tun", "dev/vhost-net", "dev/kvm"):
            self.write(name, "")
        self.nic("lo", state="unknown")
        self.nic("enp9s0")

    def write(self, path: str, text: str) -> Path:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)
        return self.root / path

    def nic(self, name: str, *, state: str = "up", wireless: bool = False) -> None:
        self.write(f"sys/class/net/{name}/operstate", f"{state}\n")
        if wireless:
            (self.root / f"sys/class/net/{name}/wireless").mkdir()

    def sriov(self, *, iommu: bool = True, vfs: int = 4) -> None:
        """A NIC "enp1s0" with VFs."""
        self.physical("enp1s0", PF, "", 8, VFS[:vfs])
        for index, address in enumerate(VFS[:vfs]):
            self.bind(address, "igbvf")
            if iommu:
                self.group(address, index + 20)
            self.vfs[index] = {"mac": NO_MAC, "vlan": 0, "spoofchk": True, "trust": False}

    def virtio_sriov(self) -> None:
        """NICs "enp2s0" and "enp3s0" with VFs, which their drivers cannot administer."""
        for number, (nic, addresses) in enumerate(VIRTIO_VFS.items()):
            self.physical(nic, f"0000:0{number + 2}:00.0", f"virtio{number}", 2, addresses)
            for index, address in enumerate(addresses):
                self.bind(address, "virtio-pci")
                self.group(address, 30 + 2 * number + index)

    def physical(self, nic: str, address: str, between: str, most: int, vfs: Sequence[str]) -> None:
        """A NIC with VFs. `between`: what is between the NIC and its PCI function, if anything."""
        self.nic(nic)
        functions = self.root / "sys/bus/pci/devices"
        self.write(f"sys/bus/pci/devices/{address}/sriov_totalvfs", f"{most}\n")
        self.write(f"sys/bus/pci/devices/{address}/sriov_numvfs", f"{len(vfs)}\n")
        (functions / address / between / "net" / nic).mkdir(parents=True)
        (self.root / f"sys/class/net/{nic}/device").symlink_to(functions / address / between)
        for index, vf in enumerate(vfs):
            (functions / vf).mkdir()
            (functions / vf / "physfn").symlink_to(functions / address)
            (functions / address / f"virtfn{index}").symlink_to(functions / vf)

    def group(self, address: str, number: int) -> None:
        """A PCI function's IOMMU group."""
        folder = self.root / f"sys/kernel/iommu_groups/{number}"
        folder.mkdir(parents=True)
        (self.root / "sys/bus/pci/devices" / address / "iommu_group").symlink_to(folder)

    def bind(self, address: str, driver: str) -> None:
        folder = self.root / "sys/bus/pci/drivers" / driver
        folder.mkdir(parents=True, exist_ok=True)
        link = self.root / "sys/bus/pci/devices" / address / "driver"
        link.unlink(missing_ok=True)
        link.symlink_to(folder)

    def lose_vfs(self) -> None:
        """As when the PF's driver is loaded anew."""
        folder = self.root / "sys/bus/pci/devices"
        for index, address in enumerate(VFS):
            (folder / PF / f"virtfn{index}").unlink()
            for path in (folder / address).iterdir():
                path.unlink()
            (folder / address).rmdir()
        self.vfs.clear()

    def machine(self, pid: int, name: str, *words: str) -> None:
        line = ["/usr/bin/qemu-system-x86_64", "-name", f"guest={name},debug-threads=on", *words, ""]
        self.write(f"proc/{pid}/cmdline", "\0".join(line))

    def nics(self) -> dict[str, object]:
        """Everything that links may change: the NICs, and what each VF is set to."""
        return {"nics": self.devices.nics(), "vfs": json.loads(json.dumps(self.vfs))}

    # ---- `ip` --------------------------------------------------------------------------------------------------

    def run(self, arguments: Sequence[str]) -> str:
        self.calls.append(" ".join(arguments))
        if self.fail_at is not None and len(self.calls) > self.fail_at:
            self.fail_at = None
            raise CannotMeasure(f"`ip {self.calls[-1]}` failed: RTNETLINK answers: Operation not permitted", "")
        match list(arguments):
            case ["-json", "address", "show", "dev", nic]:
                found = [{"local": one, "prefixlen": 24, "scope": "global"} for one in self.own_addresses.get(nic, [])]
                found.append({"local": "fe80::1", "prefixlen": 64, "scope": "link"})
                return json.dumps([{"ifname": nic, "addr_info": found}])
            case ["-json", "-details", "link", "show", "dev", nic]:
                listed = [
                    {"vf": index, "address": vf["mac"], "vlan_list": [{"vlan": vf["vlan"]} if vf["vlan"] else {}]}
                    | {name: vf[name] for name in ("spoofchk", "trust") if name in vf}
                    for index, vf in self.vfs.items()
                ]
                return json.dumps([{"ifname": nic, "vfinfo_list": listed if nic == "enp1s0" else []}])
            case ["link", "add", "name", name, "type", _, *_]:
                self.nic(name, state="down")
            case ["link", "delete", "dev", name, "type", _]:
                (self.root / f"sys/class/net/{name}/operstate").unlink()
                (self.root / f"sys/class/net/{name}").rmdir()
            case ["link", "set", "dev", name, "up"]:
                self.nic(name, state="unknown")
            case ["link", "set", "dev", "enp1s0", "vf", index, *words]:
                for name, value in zip(words[::2], words[1::2], strict=True):
                    said = int(value) if name == "vlan" else {"on": True, "off": False}.get(value, value)
                    self.vfs[int(index)][name] = said
            case ["link", "set", "dev", _, "alias", *_]:
                pass
            case other:
                raise AssertionError(other)
        return ""
