# SPDX-License-Identifier: GPL-2.0-or-later
"""A machine's identity at its first boot: the checkout's SSH key and a NoCloud seed.

The seed is a small CD made from the templates in provision/cloud-init. A changed template or topology changes the
instance id, so that cloud-init applies the seed at the next start.
"""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import tempfile
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fwlab.checkout.atomic_write import write_errors_as
from fwlab.host.process import Failed, output_of
from fwlab.machines.plan import Machine, Plan, nic_of
from fwlab.model.errors import BadInput

if TYPE_CHECKING:
    from jinja2 import Environment

#: They take mkisofs's arguments. Distributions differ in which they have.
MAKERS = (["xorriso", "-as", "mkisofs"], ["genisoimage"])


@dataclass(frozen=True)
class Seed:
    """The seed of a machine. `public_key`: the SSH key that it lets in."""

    machine: Machine
    public_key: str

    def files(self) -> dict[str, str]:
        """The texts on the CD, by file name."""
        names = self.machine.system.seed
        instance = hashlib.sha256(self._render(names[0], "").encode()).hexdigest()[:16]
        return {name: self._render(name, instance) for name in names}

    def write(self) -> None:
        """Write the CD so that QEMU can read it as another user, and its fingerprint. Raises BadInput."""
        maker = next((words for words in MAKERS if shutil.which(words[0])), None)
        if maker is None:
            raise BadInput("xorriso is missing: it makes the machines' seeds", "provision/host/install")
        target = self.machine.seed
        with write_errors_as(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix="seed-", dir=target.parent) as work:
                names = [Path(work, name) for name in self.machine.system.seed]
                for path, text in zip(names, self.files().values(), strict=True):
                    path.write_text(text)
                image = Path(work, "seed.iso")
                options = ["-quiet", "-volid", "cidata", "-joliet", "-rock", "-output", str(image)]
                run([*maker, *options, *map(str, names)])
                image.chmod(0o644)
                image.replace(target)
            portable = replace(self, public_key="KEY").files()
            digest = hashlib.sha256(repr(sorted(portable.items())).encode()).hexdigest()
            _fingerprint_file(self.machine).write_text(digest)

    def _render(self, name: str, instance: str) -> str:
        plan = self.machine.plan
        return str(
            _templates(plan.root / "provision" / "cloud-init")
            .get_template(f"{name}.j2")
            .render(
                machine=self.machine,
                topology=plan.topology,
                routes=_routes(self.machine),
                nic_of=nic_of,
                public_key=self.public_key,
                instance=instance,
            )
        )


def fingerprint_of(machine: Machine) -> str:
    """A hash of the seed without its SSH key. Raises OSError unless the seed was written."""
    return _fingerprint_file(machine).read_text()


def remove_seed(machine: Machine) -> None:
    """Remove the seed of a machine that is destroyed. One that starts gets a new one."""
    for path in (machine.seed, _fingerprint_file(machine)):
        path.unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # other machines of this checkout have theirs there
        machine.seed.parent.rmdir()


def make_key(plan: Plan) -> None:
    """Make the key with which `vagrant ssh` and fwlab log in, unless it is there. Raises BadInput."""
    path = plan.private_key
    if path.exists():
        return
    with write_errors_as(path):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "fwlab", "-f", str(path)])


def public_key(plan: Plan) -> str:
    """The other half of the key."""
    return plan.private_key.with_suffix(".pub").read_text().strip()


def run(command: list[str]) -> None:
    """Run a program that makes a file. Raises BadInput if it is missing or fails."""
    try:
        output_of(command)
    except FileNotFoundError as error:
        raise BadInput(f"{command[0]} is missing", "provision/host/install") from error
    except Failed as error:
        raise BadInput(str(error), "df -h, then try again") from error


def _fingerprint_file(machine: Machine) -> Path:
    return machine.seed.with_suffix(".sha256")


@cache
def _templates(folder: Path) -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    # They make YAML and shell, for which jinja2 has no escapes; what is filled in comes from topology.yml.
    return Environment(  # noqa: S701
        loader=FileSystemLoader(folder),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=StrictUndefined,
    )


def _routes(machine: Machine) -> list[dict[str, Any]]:
    """What lies behind the far end of each link."""
    found = []
    for end in machine.ends:
        for number, prefix in enumerate(end.behind_far):
            family = "ipv6" if ":" in prefix else "ipv4"
            gateway = end.far[family].split("/")[0]
            name = f"{end.near['dev']}_{number}"
            found.append({"link": end.name, "name": name, "family": family, "to": prefix, "by": gateway})
    return found
