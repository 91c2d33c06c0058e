# SPDX-License-Identifier: GPL-2.0-or-later
"""iproute2's `ip`: what this host's NICs are set to, and how that is changed."""

import json
import subprocess
from collections.abc import Sequence
from typing import Any

from pydantic import field_validator

from fwlab.model.declared import Frozen
from fwlab.model.errors import CannotMeasure

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
