# SPDX-License-Identifier: GPL-2.0-or-later
"""What was changed on this host for the links of a lab: written before the first change, removed after the last undo.

So whatever ends a program in between, the next one knows what there may be to undo.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from filelock import FileLock
from pydantic import ValidationError

from fwlab.host.atomic_write import write_atomically
from fwlab.host.devices import Devices
from fwlab.host.iproute import Ip
from fwlab.host.project import Project
from fwlab.model.declared import Frozen
from fwlab.model.errors import CannotMeasure
from fwlab.testbed.hardware import HOST_CHANGES, checkout_key
from fwlab.testbed.host_links.changes import Change


class State(Frozen):
    """One file. `kinds`: the kind of each link; `boot`: the boot of the host that the changes were made in."""

    format: Literal["fwlab-host-links/1"] = "fwlab-host-links/1"
    checkout: str
    lab: str
    kinds: dict[str, str]
    boot: str
    changes: list[Change]


@dataclass(frozen=True)
class States:
    """The files of this host."""

    devices: Devices
    ip: Ip
    folder: Path = HOST_CHANGES

    def path(self, project: Project, lab_id: str) -> Path:
        """The file of one lab of one checkout."""
        return self.folder / f"{checkout_key(project.root)}-{lab_id}.json"

    def all(self) -> dict[Path, State]:
        """All files of this boot. Raises CannotMeasure for one that cannot be read."""
        found = {path: self._read(path) for path in sorted(self.folder.glob("*.json"))}
        return {path: state for path, state in found.items() if state.boot == self.devices.boot}

    def read(self, path: Path) -> State | None:
        """One file, whatever boot it is from; None if there is none."""
        return self._read(path) if path.exists() else None

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Only one program changes this host at a time."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            lock = FileLock(self.folder / "lock", timeout=60)
        except OSError as error:
            raise CannotMeasure(f"{self.folder}: {error.strerror}", "run it as root") from error
        with lock:
            yield

    def apply(self, path: Path, state: State) -> None:
        """Write the file, then make the changes. If one fails, all are undone. Raises CannotMeasure."""
        write_atomically(path, state.model_dump_json(indent=1) + "\n", error=CannotMeasure)
        try:
            for change in state.changes:
                change.apply(self.ip)
        except BaseException:
            self.undo(path, state)
            raise

    def undo(self, path: Path, state: State) -> None:
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
            raise CannotMeasure("\n".join(problems), f"provision/host/links restore {state.lab}")
        path.unlink(missing_ok=True)

    def _read(self, path: Path) -> State:
        try:
            return State.model_validate_json(path.read_bytes())
        except (OSError, ValidationError) as error:
            hint = f"look at `ip link` for what is left of it, then rm {path}"
            raise CannotMeasure(f"{path}: not a record of what was changed on this host", hint) from error
