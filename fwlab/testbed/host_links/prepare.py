# SPDX-License-Identifier: GPL-2.0-or-later
"""Prepare this host for the links of a lab's machines, and restore it.

What is changed is written to a file before the first change, which is removed after the last one is undone. So whatever
ends a program in between, the next one knows what there may be to undo.
"""

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from filelock import FileLock
from pydantic import ValidationError

from fwlab.checkout.atomic_write import write_atomically
from fwlab.checkout.project import Project
from fwlab.host.nics import Devices, Ip
from fwlab.images.boxes import kernels_of_boxes
from fwlab.model.declared import Frozen
from fwlab.model.errors import BadInput, CannotMeasure
from fwlab.model.topology import Topology
from fwlab.testbed.hardware import HOST_CHANGES, checkout_key, device_name, domain_prefix
from fwlab.testbed.host_file import NAME, HostFile, load_host_file
from fwlab.testbed.host_links.changes import Change, HostLinkKind, LinkOnHost
from fwlab.testbed.link_kinds import LINKS


class State(Frozen):
    """One file. `kinds`: the kind of each link; `boot`: the boot of the host that the changes were made in."""

    format: Literal["fwlab-host-links/1"] = "fwlab-host-links/1"
    checkout: str
    lab: str
    kinds: dict[str, str]
    boot: str
    changes: list[Change]


SCRIPT = "provision/host/links"
#: The kind whose NICs are not virtio's.
HANDED_OVER = "sriov"


@dataclass(frozen=True)
class HostLinks:
    """The links of one checkout on this host. `folder`: the files of all its labs, and of those of other checkouts."""

    project: Project
    topology: Topology
    devices: Devices = field(default_factory=Devices)
    ip: Ip = field(default_factory=Ip)
    folder: Path = HOST_CHANGES

    def prepare(self, lab_id: str, kinds: Mapping[str, str]) -> None:
        """Do on the host what links of these kinds need. Does nothing if it is done already.

        kinds  the kind of each link, by the link's name
        Raises BadInput for a wrong host.yml, CannotMeasure if the host cannot carry the links. It is then unchanged.
        """
        needed = {name: kind for name, kind in kinds.items() if isinstance(LINKS[kind], HostLinkKind)}
        path = self.path(lab_id)
        if not needed and not path.exists():
            return
        self._reject_mixed(kinds)
        for kind in dict.fromkeys(needed.values()):
            for one in LINKS[kind].requirements(kernels_of_boxes(self.project)):
                if not one.met:
                    raise CannotMeasure(f"link kind {kind}: {one.what}", one.next)
        if self._done(path, kinds):
            return
        if os.geteuid():
            words = " ".join(f"{name}={kind}" for name, kind in kinds.items())
            message = f"the links of {lab_id} need a change on this host, which only root can make"
            raise CannotMeasure(message, f"sudo {SCRIPT} up {lab_id} {words}")
        with self._locked():
            if self._done(path, kinds):
                return
            state = _read(path)
            if state is not None:
                self._reject_running(lab_id)
                self._undo(path, state)
            self._apply(path, lab_id, kinds, needed)

    def restore(self, lab_id: str) -> bool:
        """Undo what was done for a lab. False if there was nothing. Raises CannotMeasure while its machines run."""
        path = self.path(lab_id)
        if not path.exists():
            return False
        if os.geteuid():
            message = f"what was changed on this host for {lab_id} can only be undone by root"
            raise CannotMeasure(message, f"sudo {SCRIPT} restore {lab_id}")
        with self._locked():
            state = _read(path)
            if state is None:
                return False
            self._reject_running(lab_id)
            self._undo(path, state)
        return True

    def path(self, lab_id: str) -> Path:
        """The file of a lab."""
        return self.folder / f"{checkout_key(self.project.root)}-{lab_id}.json"

    def labs(self) -> list[str]:
        """The labs of this checkout for which this host is changed."""
        start = f"{checkout_key(self.project.root)}-"
        return [path.stem.removeprefix(start) for path in self._all() if path.name.startswith(start)]

    def lost(self, lab_id: str) -> CannotMeasure | None:
        """What is missing on the host of what the lab's links need, as an error; None if nothing is."""
        state = _read(self.path(lab_id))
        missing = self._missing(state) if state else []
        if not missing:
            return None
        hint = f"vagrant destroy -f {lab_id}, see `fwlab doctor`, then vagrant up {lab_id}"
        return CannotMeasure(f"this host lost a link of {lab_id}: {missing[0]}", hint)

    def _all(self) -> dict[Path, State]:
        """All files of this boot. Raises CannotMeasure for one that cannot be read."""
        found = {path: _read(path) for path in sorted(self.folder.glob("*.json"))}
        return {path: state for path, state in found.items() if state is not None and state.boot == self.devices.boot}

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Only one program changes this host at a time."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            lock = FileLock(self.folder / "lock", timeout=60)
        except OSError as error:
            raise CannotMeasure(f"{self.folder}: {error.strerror}", "run it as root") from error
        with lock:
            yield

    def _make(self, path: Path, state: State) -> None:
        """Write the file, then make the changes. If one fails, all are undone. Raises CannotMeasure."""
        write_atomically(path, state.model_dump_json(indent=1) + "\n", error=CannotMeasure)
        try:
            for change in state.changes:
                change.apply(self.ip)
        except BaseException:
            self._undo(path, state)
            raise

    def _undo(self, path: Path, state: State) -> None:
        """Undo every change, the last one first, then remove the file.

        One that cannot be undone does not stop the others. The file then stays, and CannotMeasure is raised.
        """
        problems = []
        # After a boot nothing is left of the changes, and the same names may mean other devices.
        for change in reversed(state.changes) if state.boot == self.devices.boot else ():
            try:
                change.undo(self.ip, self.devices)
            except CannotMeasure as error:
                problems.append(error.message)
        if problems:
            raise CannotMeasure("\n".join(problems), f"{SCRIPT} restore {state.lab}")
        path.unlink(missing_ok=True)

    def _apply(self, path: Path, lab_id: str, kinds: Mapping[str, str], needed: Mapping[str, str]) -> None:
        changes: list[Change] = []
        for index, (name, link) in enumerate(self.topology.links.items()):
            kind = LINKS[needed[name]] if name in needed else None
            if isinstance(kind, HostLinkKind):
                macs = {role: end.mac for role, end in link.ends.items()}
                device = device_name(checkout_key(self.project.root), lab_id, index)
                on_host = LinkOnHost(
                    name, lab_id, device, link.mtu, macs, self._machines(lab_id), self._read_file, self.devices, self.ip
                )
                changes += kind.changes(on_host)
        used = {change.device: state for state in self._all().values() for change in state.changes}
        for change in changes:
            if other := used.get(change.device):
                message = f"{NAME}: {change.device} carries a link of {other.lab} in {other.checkout}"
                raise CannotMeasure(message, f"there: vagrant destroy -f {other.lab}; or name another one in {NAME}")
        if changes:
            state = State(
                checkout=str(self.project.root), lab=lab_id, kinds=dict(kinds), boot=self.devices.boot, changes=changes
            )
            self._make(path, state)

    @staticmethod
    def _reject_mixed(kinds: Mapping[str, str]) -> None:
        """A machine's drivers number its NICs: those of VFs first, and so not in the order of the links."""
        if HANDED_OVER in kinds.values() and set(kinds.values()) != {HANDED_OVER}:
            others = sorted(set(kinds.values()) - {HANDED_OVER})
            message = (
                f"links of kinds {HANDED_OVER} and {', '.join(others)} in one lab: a machine would swap their NICs"
            )
            raise BadInput(message, f"export FWLAB_LINK={HANDED_OVER}, or the same kind for each link in topology.yml")

    def _done(self, path: Path, kinds: Mapping[str, str]) -> bool:
        state = _read(path)
        return state is not None and state.kinds == dict(kinds) and not self._missing(state)

    def _missing(self, state: State) -> list[str]:
        if state.boot != self.devices.boot:
            return ["the host has been rebooted since"]
        found = (change.missing(self.ip, self.devices) for change in state.changes)
        return [what for what in found if what is not None]

    def _reject_running(self, lab_id: str) -> None:
        start = self._machines(lab_id)
        running = [name for name in self.devices.machines_with(f"guest={start}") if _is_of(name, start)]
        if running:
            message = f"the machines of {lab_id} run, and use what would be undone"
            raise CannotMeasure(message, f"vagrant destroy -f {lab_id}")

    def _machines(self, lab_id: str) -> str:
        return domain_prefix(self.project.root) + lab_id

    def _read_file(self) -> HostFile:
        return load_host_file(self.project, self.topology)


def kinds_from(words: list[str], topology: Topology, usual: Mapping[str, str]) -> dict[str, str]:
    """LINK=KIND for each link that differs from `usual`. Raises BadInput."""
    kinds = dict(usual)
    for word in words:
        name, _, kind = word.partition("=")
        if name not in topology.links or kind not in LINKS:
            known = f"links: {', '.join(topology.links)}; kinds: {', '.join(LINKS)}"
            raise BadInput(f"{word}: must be LINK=KIND; {known}", f"{SCRIPT} up LAB generator-dut=virtio")
        kinds[name] = kind
    return kinds


def _is_of(machine: str, start: str) -> bool:
    """Whether libvirt's name is that of a machine of the lab: its DUT, or a name with a role behind it."""
    return machine == start or machine in (f"{start}-generator", f"{start}-sink")


def _read(path: Path) -> State | None:
    """One file, whatever boot it is from; None if there is none. Raises CannotMeasure if it cannot be read."""
    try:
        return State.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        hint = f"look at `ip link` for what is left of it, then rm {path}"
        raise CannotMeasure(f"{path}: not a record of what was changed on this host", hint) from error
