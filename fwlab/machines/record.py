# SPDX-License-Identifier: GPL-2.0-or-later
"""Record in .fwlab/LAB/machines.json what `vagrant up` made: testbed, boxes and links.

The record describes what libvirt has defined, not what was asked for, because a halted machine starts again as it was
made. fwlab reads it before it measures (fwlab/testbed/machine_record.py).
"""

from __future__ import annotations

import fcntl
import itertools
import json
import os
import re
import xml.etree.ElementTree as ET
from typing import Any

from fwlab.checkout.atomic_write import write_atomically, write_errors_as
from fwlab.host.process import Failed, virsh
from fwlab.machines.plan import Machine, json_object, testbed_of
from fwlab.machines.seed import remove_seed
from fwlab.testbed import hardware

FORMAT = "fwlab-machines/1"
ACCELERATORS = {"qemu": "tcg", "kvm": "kvm"}
#: Where libvirt writes QEMU's own arguments.
ARGUMENTS = "{http://libvirt.org/schemas/domain/qemu/1.0}commandline/{http://libvirt.org/schemas/domain/qemu/1.0}arg"


def update(machine: Machine, box: str) -> dict[str, Any]:
    """Record what libvirt has under the machine's name, made from `box`; remove the machine if libvirt has nothing.

    Returns the lab's machines by role. Raises BadInput if the record cannot be written.
    """
    path = machine.plan.root / ".fwlab" / machine.lab.id / "machines.json"
    with write_errors_as(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.with_name(f"{path.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            recorded = json_object(path)
            machines = recorded.get("machines")
            machines = dict(machines) if isinstance(machines, dict) else {}
            xml = _defined(machine.domain)
            if xml is None:
                machines.pop(machine.role, None)
                remove_seed(machine)
            else:
                machines[machine.role] = describe(machine, xml, box)
            if machines:
                testbed = _testbed(machines.get("dut"), recorded.get("testbed"))
                document = {"format": FORMAT, "lab": machine.lab.id, "testbed": testbed}
                write_atomically(path, json.dumps({**document, "machines": machines}, indent=2) + "\n")
            else:
                path.unlink(missing_ok=True)
    return machines


def describe(machine: Machine, xml: str, box: str) -> dict[str, Any]:
    """One machine, from libvirt's XML."""
    domain = ET.fromstring(xml)  # noqa: S314 - libvirt's
    words = [argument.get("value", "") for argument in domain.findall(ARGUMENTS)]
    clock = next((value for option, value in itertools.pairwise(words) if option == "-icount"), "")
    shift = re.search(r"shift=(\d+)", clock)
    links = _links(machine, domain, words)
    return {
        "domain": domain.findtext("name"),
        "box": box,
        "accelerator": ACCELERATORS.get(domain.get("type", ""), domain.get("type")),
        "icount_shift": int(shift[1]) if shift else None,
        "link": "+".join(sorted(set(links.values()))),
        "links": links,
    }


def _links(machine: Machine, domain: ET.Element, words: list[str]) -> dict[str, str]:
    """The kind of each link, by its name. An interface belongs to the link whose MAC address it has.

    A PCI device that was handed over has none in the XML: those are the links that are left, in their order. `words`:
    QEMU's arguments, which make hubs.
    """
    by_mac: dict[str | None, str] = {}
    for interface in domain.findall("devices/interface"):
        mac = interface.find("mac")
        by_mac[None if mac is None else mac.get("address")] = interface.get("type", "")
    types: dict[str, str | None] = {end.name: by_mac.pop(end.near["mac"], None) for end in machine.ends}
    for name in hardware.links_on_hubs(words):
        types[name] = types.get(name) or hardware.CARRIER
    left = iter([*by_mac.values(), *("hostdev" for _ in domain.findall("devices/hostdev[@type='pci']"))])
    found = {name: kind or next(left, None) for name, kind in types.items()}
    return {name: _kind(interface) for name, interface in found.items() if interface}


def _kind(interface: str) -> str:
    """The kind of link that has this type of interface in libvirt; the type itself if there is none."""
    for name, nic in hardware.NICS.items():
        if nic.interface == interface:
            return name
    from fwlab.testbed.link_kinds import LINKS

    return next((name for name, kind in LINKS.items() if kind.interface == interface), interface)


def _testbed(dut: dict[str, Any] | None, recorded: object) -> str | None:
    """The testbed that the DUT was made for: a plug-in's, if one is chosen or recorded, before the built-in ones."""
    if dut is None:
        return None
    names = [str(name) for name in (os.environ.get("FWLAB_TESTBED"), recorded) if name and name not in hardware.DUTS]
    for name in (*names, *hardware.DUTS):
        kind = testbed_of(name)
        if kind is not None and kind.matches(dut["accelerator"], dut["icount_shift"]):
            return name
    return None


def _defined(domain: str) -> str | None:
    try:
        return virsh("dumpxml", domain)
    except Failed:
        return None
