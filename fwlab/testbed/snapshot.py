# SPDX-License-Identifier: GPL-2.0-or-later
"""Save the DUT's memory and disk, and restore them.

A submission may leave the DUT in any state, or dead. Restoring takes about a second, whatever happened to the guest:
QEMU keeps the state inside the machine's disk image (an internal snapshot of libvirt's) and starts from it again.
"""

from fwlab.model.errors import CannotMeasure
from fwlab.testbed.qemu_process import domain_of, qemu_of, virsh

NAME = "fwlab-start-state"
#: It takes half a second on an idle host. After this something is broken (s).
TIMEOUT_S = 120


class Snapshot:
    """The saved state of the machine whose QEMU forwards an SSH port. Raises CannotMeasure if libvirt refuses."""

    def __init__(self, address: str, ssh_port: int) -> None:
        self._domain = domain_of(qemu_of(address, ssh_port))

    def take(self) -> None:
        """Save the present state. Replaces one that an interrupted session may have left."""
        self.discard()
        self._virsh("snapshot-create-as", self._domain, NAME)

    def restore(self) -> None:
        """Run from the saved state again. Connections to the machine are lost; its ports stay the same."""
        self._virsh("snapshot-revert", self._domain, NAME, "--running", "--force")

    def discard(self) -> None:
        """Delete the state, if there is one."""
        virsh("snapshot-delete", self._domain, NAME, timeout_s=TIMEOUT_S)

    def _virsh(self, *words: str) -> None:
        done = virsh(*words, timeout_s=TIMEOUT_S)
        if done.returncode:
            said = (done.stderr or done.stdout).strip()
            raise CannotMeasure(f"virsh {words[0]} {self._domain}: {said}", "vagrant destroy -f LAB; vagrant up LAB")
