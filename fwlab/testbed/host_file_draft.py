# SPDX-License-Identifier: GPL-2.0-or-later
"""A first host.yml, from the NICs that this host has and nothing else uses."""

import sys

from fwlab.host.atomic_write import write_atomically
from fwlab.host.devices import VFIO, Devices, VirtualFunction
from fwlab.host.iproute import NO_ADMINISTRATION, Ip
from fwlab.host.project import Project, load_topology
from fwlab.model.errors import BadInput, CannotMeasure
from fwlab.model.topology import Topology
from fwlab.testbed.host_file import DUMMY, NAME, host_file_path

HEAD = """\
# SPDX-License-Identifier: GPL-2.0-or-later
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
