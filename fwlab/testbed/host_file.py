# SPDX-License-Identifier: GPL-2.0-or-later
"""host.yml: what of this host's hardware the links may use. It belongs to one host and is not part of the repository.

`fwlab doctor --draft-host-file` writes a first one, from the NICs that this host has and nothing else uses.
"""

import sys
from collections import Counter
from pathlib import Path
from typing import Annotated

from pydantic import Field, model_validator

from fwlab.checkout.atomic_write import write_atomically
from fwlab.checkout.project import Project, load_topology, validated
from fwlab.checkout.yaml_files import read_yaml_file
from fwlab.host.nics import NO_ADMINISTRATION, VFIO, Devices, Ip, VirtualFunction
from fwlab.model.declared import Frozen
from fwlab.model.errors import BadInput, CannotMeasure
from fwlab.model.topology import Role, Topology

NAME = "host.yml"
#: Instead of a NIC's name: the project makes a NIC for the link that leads nowhere.
DUMMY = "dummy"
DRAFT = "fwlab doctor --draft-host-file"
HINT = f"fix {NAME}, then `fwlab doctor`"

NicName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.@-]{0,14}$")]
PciAddress = Annotated[str, Field(pattern=r"^[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$")]


class MacvtapLink(Frozen):
    """The NIC that both ends of a link share: an existing one, or DUMMY."""

    nic: NicName


class SriovLink(Frozen):
    """The VFs of a link's two ends, by PCI address, and what their physical function enforces. `vlan`: 0 is none."""

    ends: dict[Role, PciAddress]
    vlan: int = Field(default=0, ge=0, le=4094)
    trust: bool = False
    spoof_check: bool = True


class HostFile(Frozen):
    """The whole file, by link."""

    macvtap: dict[str, MacvtapLink] = Field(default_factory=dict)
    sriov: dict[str, SriovLink] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _each_vf_once(self) -> "HostFile":
        used = Counter(address for link in self.sriov.values() for address in link.ends.values())
        twice = [address for address, times in used.items() if times > 1]
        if twice:
            raise ValueError(f"the VF {twice[0]} is named more than once; each end of a link needs its own")
        return self


def host_file_path(project: Project) -> Path:
    """Where host.yml lies: at the top of the checkout."""
    return project.root / NAME


def load_host_file(project: Project, topology: Topology) -> HostFile:
    """host.yml of this checkout. Raises BadInput if there is none, or naming the field."""
    path = host_file_path(project)
    if not path.exists():
        raise BadInput(f"{NAME}: there is none; it says which NICs of this host the links may use", DRAFT)
    file = validated(read_yaml_file(path, NAME, HINT), NAME, HostFile, hint=HINT)
    known = ", ".join(topology.links)
    named = [(section, name) for section in ("macvtap", "sriov") for name in getattr(file, section)]
    unknown = [(section, name) for section, name in named if name not in topology.links]
    faults = [f"{NAME}: {section}.{name}: there is no such link; there are: {known}" for section, name in unknown]
    for name, link in file.sriov.items():
        ends = topology.links[name].ends if name in topology.links else link.ends
        if set(link.ends) != set(ends):
            faults.append(f"{NAME}: sriov.{name}.ends: must name {' and '.join(ends)}")
    if faults:
        raise BadInput("\n".join(faults), HINT)
    return file


HEAD = """\
# What of this host's hardware the links may use. guides/links.md explains each field; `fwlab doctor` checks it.
"""
#: VLAN of the first link; the next link has the next. It keeps frames of one link out of the other.
FIRST_VLAN = 101
#: Of each link.
ENDS = 2
NO_VLANS = f"""\
# The driver of these NICs {NO_ADMINISTRATION}.
# So each link has a NIC of its own."""


def write_draft(project: Project) -> None:
    """Write host.yml. Raises BadInput if there is one."""
    path = host_file_path(project)
    if path.exists():
        raise BadInput(f"{NAME} exists already", f"edit it, or mv {NAME} {NAME}.old and repeat the command")
    write_atomically(path, draft(load_topology(project), Devices(), Ip()))
    sys.stdout.write(f"{NAME} is written: read it before you use it, then `fwlab doctor`\n")


def draft(topology: Topology, devices: Devices, ip: Ip) -> str:
    """The file's text."""
    lines = [HEAD, "macvtap:"]
    wired = [nic for nic in devices.nics() if nic != "lo" and not _unfit(nic, devices, ip)]
    lines.append(
        f"  # {DUMMY}: a NIC that the project makes. NICs that nothing else uses: {', '.join(wired) or 'none'}"
    )
    lines += [f"  {name}: {{ nic: {DUMMY} }}" for name in topology.links]
    return "\n".join([*lines, *_sriov(topology, devices, ip)]) + "\n"


def _sriov(topology: Topology, devices: Devices, ip: Ip) -> list[str]:
    """One NIC for all links, which its VLANs keep apart; or one for each, if their drivers cannot set VLANs."""
    links = topology.links
    lines: list[str] = []
    apart: list[VirtualFunction] = []
    for nic, (now, most) in devices.physical_functions().items():
        free = [vf for vf in devices.virtual_functions(nic) if vf.driver != VFIO and vf.group is not None]
        reason = _unfit(nic, devices, ip)
        administered = reason is not None or not free or bool(ip.listed_vfs(nic))
        wanted = sum(len(link.ends) for link in links.values()) if administered else ENDS
        if reason is None and len(free) < wanted:
            reason = f"has {len(free)} free VFs in IOMMU groups ({now} in all, at most {most}); {wanted} are needed"
        if reason is None and administered:
            return ["sriov:", *_links(topology, free, administered=True)]
        if reason is None:
            apart += free[:ENDS]
            reason = f"cannot set VLANs for its VFs; {len(links)} such NICs are needed, one for each link"
        lines.append(f"# sriov: {nic} {reason}")
    if len(apart) >= ENDS * len(links):
        return [NO_VLANS, "sriov:", *_links(topology, apart, administered=False)]
    return lines or ["# sriov: no NIC of this host has virtual functions"]


def _links(topology: Topology, free: list[VirtualFunction], *, administered: bool) -> list[str]:
    lines, left = [], iter(free)
    for index, (name, link) in enumerate(topology.links.items()):
        ends = ", ".join(f'{role}: "{next(left).address}"' for role in link.ends)
        lines += [f"  {name}:", f"    ends: {{ {ends} }}", f"    vlan: {FIRST_VLAN + index if administered else 0}"]
        lines += ["    trust: false", f"    spoof_check: {str(administered).lower()}"]
    return lines


def _unfit(nic: str, devices: Devices, ip: Ip) -> str | None:
    """Why test traffic must not use this NIC, in words."""
    if devices.is_wireless(nic):
        return "is wireless"
    if master := devices.master(nic):
        return f"is a port of {master}"
    try:
        addresses = ip.addresses(nic)
    except CannotMeasure as error:
        return error.message
    if addresses:
        return f"has the host's address {addresses[0]}"
    return None if devices.is_up(nic) else "is down"
