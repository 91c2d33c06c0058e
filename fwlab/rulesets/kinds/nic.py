# SPDX-License-Identifier: GPL-2.0-or-later
"""The NIC that the DUT uses on both links, by QEMU's name for its model: the whole file is that one word.

A lab whose `needs.nics` name models has them on both links in addition to the usual NIC (fwlab/testbed/hardware.py),
and all NICs of a link hear the same frames. Their MAC addresses differ in the third byte alone. The driver of a NIC
that is not in use is not loaded. The NIC in use is always eth0 or eth1, so other files need not know which it is.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from fwlab.rulesets.kind import Call, DutShell, Faults, KernelView, Loader, Refusal, RulesetKind
from fwlab.rulesets.kinds.lines import LINKS, instructions


class NicModel(NamedTuple):
    """A model of NIC: the kernel's driver, and by which number the PCI bus knows it."""

    driver: str
    alias: str


#: By QEMU's name.
MODELS = {
    "vmxnet3": NicModel("vmxnet3", "v000015ADd000007B0"),
    "e1000": NicModel("e1000", "v00008086d0000100E"),
    "e1000e": NicModel("e1000e", "v00008086d000010D3"),
    "rtl8139": NicModel("8139cp", "v000010ECd00008139"),
}
#: Names of the usual NICs while another is used, in the order of the links.
PARKED = ("usual0", "usual1")
#: Packets that a receive ring holds: as many as the usual NIC's (topology.yml).
RING = "1024"
NETWORKD = ("systemctl", "stop", "systemd-networkd.socket", "systemd-networkd.service")
#: A NIC that was not in use holds old frames (ten thousand in QEMU, a full ring). They are gone once nothing has
#: arrived for a moment. Maximum number of checks, a twentieth of a second apart.
TRIES = 100


def validate(lines: list[str]) -> Faults:
    """One word: the model."""
    found = list(instructions(lines))
    how = f"write one of: {', '.join(MODELS)}"
    for number, words in found:
        if number != found[0][0] or len(words) > 1 or words[0] not in MODELS:
            yield number, f"unknown NIC model: {' '.join(words[:4])}", how


def models_there(machine: DutShell) -> list[str]:
    """The models that this DUT has in addition to its usual NIC, and whose driver its kernel has."""
    files = (f"/sys/bus/pci/devices/0000:00:{slot:02x}.0/modalias" for slot in range(32))
    listed = machine.run("grep", "-hs", "", *files)
    return [
        name
        for name, model in MODELS.items()
        if model.alias in listed.stdout and machine.run("modinfo", model.driver).returncode == 0
    ]


def missing_from_kernel(shown: KernelView, lines: list[str]) -> str | None:
    """The link that another driver serves."""
    wanted = MODELS[lines[0].split()[0]].driver
    for device in LINKS:
        found = shown.run("ethtool -i %s", device)
        if f"driver: {wanted}\n" not in found:
            return f"{device} by {wanted}"
    return None


class Nic(NamedTuple):
    """An Ethernet device: its name and its MAC address as it was made."""

    name: str
    mac: str

    def shares_link_with(self, other: "Nic") -> bool:
        """Whether both are on the same link."""
        mine, theirs = self.mac.split(":"), other.mac.split(":")
        return mine[:2] + mine[3:] == theirs[:2] + theirs[3:]


class NicLoader(Loader):
    """Gives the names, addresses, routes and neighbours of the usual NICs to the others, and back."""

    def prepare(self) -> None:
        """Before the start state is recorded: no NIC but the usual ones, and these as eth0 and eth1.

        The kernel loads the drivers of all NICs when it boots, in any order, and counts the NICs in that order.
        """
        nics = self._nics()
        others = [nic for nic in nics if any(nic is not one and nic.shares_link_with(one) for one in nics)]
        if not others:
            return
        self.undo(loaded=True)
        self.machine.run("rmmod", *(model.driver for model in MODELS.values()))
        usual = [nic for nic in self._nics() if nic.mac.split(":")[2] == "00"]
        if [nic.name for nic in usual[: len(LINKS)]] == list(LINKS):
            return
        # The management NIC keeps its name if it can: taking it down would cut the connection.
        wrong = [nic for place, nic in enumerate(usual) if place < len(LINKS) or nic.name in LINKS]
        names = [*LINKS, "management"][: len(wrong)]
        self._batch(f"link set dev {nic.name} down" for nic in wrong)
        self._batch(f"link set dev {nic.name} name new{number}" for number, nic in enumerate(wrong))
        self._batch(f"link set dev new{number} name {name}" for number, name in enumerate(names))
        self._batch(f"link set dev {name} up" for name in names)
        self.machine.run("systemctl", "restart", "systemd-networkd.service")
        self.machine.run("sleep", "1")

    def calls(self, name: str, text: str, *, each: bool) -> Sequence[Call]:
        [(_, [model])] = instructions(text.split("\n"))
        driver = MODELS[model].driver
        usual = self._nics()[: len(LINKS)]
        if self.machine.run("modprobe", driver).returncode:
            raise Refusal(f"{name}: this DUT's kernel has no driver {driver}")
        self.machine.run("udevadm", "settle", "--timeout=5")
        self.machine.run(*NETWORKD)
        batch: list[str] = []
        rings: list[list[str]] = []
        for link, parked, before in zip(LINKS, PARKED, usual, strict=True):
            other = next((nic for nic in self._nics() if nic.name != link and nic.shares_link_with(before)), None)
            if other is None:
                raise Refusal(f"{name}: this DUT has no {model} on {link}")
            rings.append(["ethtool", "-G", other.name, "rx", RING])
            batch += self._swap(link, parked, other.name, f"address {before.mac}")
        for ring in rings:  # refused where the ring has that size already
            self.machine.run(*ring)
        return [(["ip", "-batch", "-"], "\n".join(batch) + "\n")]

    def undo(self, loaded: bool) -> None:
        if not loaded:
            return
        parked = [(link, name) for link, name in zip(LINKS, PARKED, strict=True) if self._exists(name)]
        if not parked:
            return
        self.machine.run(*NETWORKD)
        for link, name in parked:
            if self._exists(link):
                self._batch(self._swap(link, f"other{link}", name, ""))
            else:  # an agent was killed half-way; addresses and routes come back with the start state
                self._batch([f"link set dev {name} down", f"link set dev {name} name {link}"])
                self._batch([f"link set dev {link} up"])
        self.machine.run("rmmod", *(model.driver for model in MODELS.values()))
        self._drain()

    def _exists(self, device: str) -> bool:
        return self.machine.exists(f"/sys/class/net/{device}")

    def _swap(self, link: str, parked: str, other: str, changed: str) -> Iterator[str]:
        """The NIC `link` gets the name `parked`; the NIC `other` takes its name and all that was set up there."""
        held = list(self._held(link))
        yield f"link set dev {link} down"
        yield f"link set dev {other} down"
        yield f"address flush dev {link}"
        yield f"link set dev {link} name {parked}"
        yield f"link set dev {other} name {link}"
        yield f"link set dev {link} up"
        if changed:  # after `up`, by which QEMU's vmxnet3 goes back to the MAC address that it was made with
            yield f"link set dev {link} {changed}"
        yield from held

    def _held(self, link: str) -> Iterator[str]:
        """What `ip -batch` needs to set the link up as it is now."""
        for one in self._json("-j", "address", "show", "dev", link):
            for held in one.get("addr_info", []):
                nodad = " nodad" if held["family"] == "inet6" else ""
                yield f"address add {held['local']}/{held['prefixlen']} dev {link}{nodad}"
        for family in ("-4", "-6"):
            for line in self.machine.run("ip", family, "route", "show", "dev", link).stdout.splitlines():
                if " proto kernel" not in line:
                    words = [word for word in line.split() if word not in ("linkdown", "dead")]
                    yield f"route replace {words[0]} dev {link} {' '.join(words[1:])}"
            shown = self.machine.run("ip", family, "neighbour", "show", "dev", link, "nud", "permanent")
            for line in shown.stdout.splitlines():
                address, _, mac = line.split()[:3]
                yield f"neighbour replace {address} lladdr {mac} dev {link} nud permanent"

    def _nics(self) -> list[Nic]:
        """All NICs, the usual ones first, in the order of the PCI bus."""
        found = []
        for one in self._json("-j", "-d", "link", "show"):
            if one.get("link_type") == "ether" and one.get("parentbus") in ("pci", "virtio"):
                place = one["parentbus"] != "virtio", one["parentdev"]
                found.append((place, Nic(one["ifname"], one.get("permaddr", one["address"]))))
        return [nic for _, nic in sorted(found)]

    def _json(self, *words: str) -> list[dict[str, Any]]:
        listed: list[dict[str, Any]] = json.loads(self.machine.run("ip", *words).stdout or "[]")
        return listed

    def _batch(self, lines: Iterable[str]) -> None:
        self.machine.run("ip", "-force", "-batch", "-", text="\n".join(lines) + "\n")

    def _drain(self) -> None:
        last = ""
        for _ in range(TRIES):
            self.machine.run("sleep", "0.05")
            now = "".join(self.machine.read(f"/sys/class/net/{link}/statistics/rx_packets") for link in LINKS)
            if now == last:
                return
            last = now


#: Before anything that sets up or filters the links.
KIND = RulesetKind(
    name="nic",
    suffix=".nic",
    position=5,
    validate=validate,
    loader=NicLoader,
    missing_from_kernel=missing_from_kernel,
    machine_setting=True,
)
