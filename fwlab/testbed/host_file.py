# SPDX-License-Identifier: GPL-2.0-or-later
"""host.yml: what of this host's hardware the links may use. It belongs to one host and is not part of the repository.

`fwlab doctor --draft-host-file` writes a first one.
"""

from collections import Counter
from pathlib import Path
from typing import Annotated

from pydantic import Field, model_validator

from fwlab.host.project import Project
from fwlab.host.yaml_files import read_yaml_file
from fwlab.model.declared import Frozen
from fwlab.model.errors import BadInput
from fwlab.model.faults import validated
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
