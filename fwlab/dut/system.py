# SPDX-License-Identifier: GPL-2.0-or-later
"""An operating system that a DUT can run: what is known of it before there is such a DUT.

Vagrant's planner imports all of them at each command, so a system imports the rest when somebody asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from fwlab.dut.protocol import Dut
    from fwlab.host.ssh import Ssh
    from fwlab.model.errors import BuildError

#: QEMU's arguments for virtio NICs without event indexes. With them, a NIC whose notification is lost can stop for
#: good; without them, only until the next packet.
UNINDEXED = ("-global", "virtio-net-pci.event_idx=off")


class DutSystem(Protocol):
    """What a package of fwlab.dut, or a plug-in, declares of a system. A subclass defines what has no default here.

    forwarding  the sysctl that says whether it forwards IPv4 packets
    guest       Vagrant's word for it; `shell`: in which Vagrant runs commands there
    seed        files on the seed CD, each with a template in provision/cloud-init
    savable     whether its saved state can start another machine
    arguments   QEMU's
    other_nics  whether it drives more models of NIC than the usual one
    image       the module (an ImageSource) that knows the image of its makers, from which `packer/build` makes the box
                dut-NAME; None for a box that is made from Debian's packages, or elsewhere
    """

    name: str
    forwarding: str
    guest: str
    shell: str
    seed: tuple[str, ...]
    savable: bool = False
    arguments: tuple[str, ...] = ()
    other_nics: bool = False
    image: str | None = None

    def connect(self, ssh: Ssh, devices: list[str]) -> Dut:
        """A connection to the DUT behind `ssh`. Nothing is sent before `open`.

        devices  the DUT's ends of the links, in the direction of the traffic
        """


class MakersImage(Protocol):
    """One image of a system's makers."""

    @property
    def sha256(self) -> str:
        """Raises SourceError if it must be looked up and cannot be."""

    def record(self) -> dict[str, str]:
        """What .fwlab/images.json keeps of it: url and sha256."""

    def disk(self, cache: Path, work: Path, say: Callable[[str], None], stopped: Callable[[], bool]) -> Path:
        """The disk, verified and unpacked into `work`. Raises SourceError; nothing is left then."""

    def explained(self, error: BuildError, console: str) -> BuildError:
        """Why Packer failed, if what the machine said on its console tells; else the same error."""


class ImageSource(Protocol):
    """A module that knows them. URL_NAME: the environment variable that names one, or leaves it out."""

    URL_NAME: str

    def chosen_image(self, known: Mapping[str, str] | None) -> MakersImage | None:
        """The one to use, whose record was `known` last time; None to leave it out. Raises SourceError."""
