# SPDX-License-Identifier: GPL-2.0-or-later
"""A new machine continues from the state in which one like it was saved: that takes seconds in place of a boot.

Where there is no such state, the machine boots as always, and its state is saved for the next one. The cache keeps, by
a key of all that the state depends on, the machine's disk with an internal snapshot of its memory (see
fwlab/testbed/qemu_process.py), compressed; a record with its SHA-256; and a key pair that lets the next checkout in,
because the machine knows the SSH key of the checkout that saved it. Labs, ports and checkouts may differ.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import re
import shutil
import subprocess
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path

from fwlab.checkout.own_folder import own_folder
from fwlab.host.environment import cache_directory, timeout_scale
from fwlab.host.process import output_of, virsh
from fwlab.host.ssh import FAST_KEX
from fwlab.images.boxes import sha256_of
from fwlab.images.disk_use import STATE, remove_state, trim
from fwlab.machines.plan import Machine, json_object
from fwlab.machines.record import ARGUMENTS
from fwlab.machines.seed import fingerprint_of, public_key
from fwlab.machines.vm_state import free, state_in

FORMAT = "fwlab-saved/2"
SNAPSHOT = "fwlab-saved"
#: How many states are kept of machines with one role: two checkouts with different boxes do not disturb each other.
KEPT = 2
#: A tenth smaller than by the usual level, and restored as fast; a state is saved once.
COMPRESS = ["zstd", "-q", "-9", "--long=27", "-T0", "-c"]
#: Room for a disk with a machine's memory, in addition to the compressed one (bytes).
NEEDED = 2 << 30
#: What a step raises that did not work. The machine then boots.
UNUSABLE = (OSError, ValueError, LookupError, ET.ParseError)
RECORD, KEY, LOCK = f"{STATE}.json", ".key", ".lock"
SSH = ["ssh", "-F", "none", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no", "-o", "LogLevel=ERROR"]
SSH += ["-o", "UserKnownHostsFile=/dev/null", "-o", "IdentitiesOnly=yes", "-o", f"KexAlgorithms=^{FAST_KEX}"]


class SavedMachine:
    """A machine that libvirt has defined, and its saved state. `warnings`: messages to the user."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._folder = cache_directory() / "saved"
        self.warnings: list[str] = []

    def restore(self) -> bool:
        """Start the machine, which has a new disk, from the saved state. If it does not run then, it is as it was."""
        disk = None
        try:
            if not self._fits() or not self._is_whole():
                return False
            disk = self._disk
            self._put_disk()
            read_once = state_in(disk)
            self._revert()
            free(disk, read_once)  # while the snapshot keeps it from being used for anything else
            with ThreadPoolExecutor() as pool:
                let_in = pool.submit(self._let_in)
                virsh("snapshot-delete", self._domain, SNAPSHOT)
                let_in.result()
            with contextlib.suppress(OSError):  # one that came with a container's image is only read
                self._file(STATE).touch()  # the states that were not used for longest are removed first
        except UNUSABLE as error:
            self.warnings.append(f"the saved state cannot be used, so it boots: {error}")
            self._undo(disk)
            return False
        finally:
            if disk is not None:
                _fresh(disk).unlink(missing_ok=True)
        return True

    def save(self) -> bool:
        """Save the state of the machine, which has just booted. The machine goes on. Returns whether it was saved."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with self._file(LOCK).open("w") as lock:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    return False  # that of another machine is being saved
                if self._file(STATE).exists():
                    return False
                self._save()
            for state in self._states()[:-KEPT]:
                remove_state(state)
            trim(cache_directory())
        except UNUSABLE as error:
            self.warnings.append(f"its state was not saved, so the next machine boots, too: {error}")
            return False
        return True

    @property
    def _domain(self) -> str:
        return self._machine.domain

    @cached_property
    def _xml(self) -> str:
        """The description of the machine while it does not run."""
        return virsh("dumpxml", "--inactive", self._domain)

    @cached_property
    def _disk(self) -> Path:
        for disk in ET.fromstring(self._xml).findall("devices/disk"):  # noqa: S314 - libvirt's
            target, source = disk.find("target"), disk.find("source")
            if target is not None and source is not None and target.get("dev") == "vda" and source.get("file"):
                return Path(str(source.get("file")))
        raise OSError("its disk is not a file")

    @cached_property
    def _key(self) -> str:
        emulator = ET.fromstring(self._xml).findtext("devices/emulator")  # noqa: S314 - libvirt's
        if not emulator:
            raise OSError("its description names no emulator")
        version = output_of([emulator, "--version"]).partition("\n")[0].strip()
        return fingerprint(self._xml, fingerprint_of(self._machine), self._machine.box or "", version)

    def _file(self, suffix: str) -> Path:
        return self._folder / f"{self._machine.role}-{self._key}{suffix}"

    def _states(self) -> list[Path]:
        """The states of machines with this role, the one that was not used for longest first."""
        found = self._folder.glob(f"{self._machine.role}-*{STATE}")
        return sorted(found, key=lambda path: path.stat().st_mtime)

    def _fits(self) -> bool:
        if self._file(STATE).exists():
            return True
        if self._states():
            self.warnings.append("no saved state fits its box, NICs and this host's QEMU, so it boots, and is saved")
        return False

    def _is_whole(self) -> bool:
        """Whether the state is what was saved. A damaged one is removed."""
        recorded = json_object(self._file(RECORD)).get("sha256")
        if recorded == sha256_of(self._file(STATE)) and self._file(KEY).exists():
            return True
        self.warnings.append(f"{self._file(STATE)} is damaged: removing it, and booting")
        remove_state(self._file(STATE))
        return False

    def _put_disk(self) -> None:
        """Replace the new disk by the saved one, which stands on the same box."""
        _require_room(self._disk.parent)
        known = json.loads(output_of(["qemu-img", "info", "--output=json", str(self._disk)]))
        below = known["full-backing-filename"]
        self._disk.rename(_fresh(self._disk))
        output_of(["zstd", "-dqf", str(self._file(STATE)), "-o", str(self._disk)])
        output_of(["qemu-img", "rebase", "-u", "-F", "qcow2", "-b", below, str(self._disk)])

    def _revert(self) -> None:
        snapshot = f"""<domainsnapshot>
          <name>{SNAPSHOT}</name><state>running</state><creationTime>{int(time.time())}</creationTime>
          <memory snapshot='internal'/><disks><disk name='vda' snapshot='internal'/></disks>
          {self._xml}
        </domainsnapshot>"""
        virsh("snapshot-create", self._domain, "/dev/stdin", "--redefine", text=snapshot)
        virsh("snapshot-revert", self._domain, SNAPSHOT, "--running")

    def _let_in(self) -> None:
        """Let only this checkout log in."""
        new, key = ".ssh/authorized_keys.new", public_key(self._machine.plan)
        self._login(self._file(KEY), f"echo '{key}' >{new} && mv {new} .ssh/authorized_keys")

    def _undo(self, disk: Path | None) -> None:
        """After a failure: the machine is off, and has its new disk."""
        for words in (["destroy", self._domain], ["snapshot-delete", self._domain, SNAPSHOT, "--metadata"]):
            with contextlib.suppress(OSError):
                virsh(*words)
        if disk is not None and _fresh(disk).exists():
            _fresh(disk).replace(disk)

    def _save(self) -> None:
        _require_room(self._folder)
        with own_folder("being-saved-", self._folder) as work:
            pair, made = work / "key", work / "disk.zst"
            output_of(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "fwlab-saved", "-f", str(pair)])
            with self._admitted(pair.with_suffix(".pub").read_text().strip()):
                self._keep_disk(made)
            # The key and the record are there before the file for which they are read.
            pair.replace(self._file(KEY))
            self._file(RECORD).write_text(json.dumps({"format": FORMAT, "sha256": sha256_of(made)}) + "\n")
            made.replace(self._file(STATE))

    @contextlib.contextmanager
    def _admitted(self, key: str) -> Iterator[None]:
        """The snapshot of a machine that lets the owner of this key in. The machine itself, afterwards, does not."""
        own = self._machine.plan.private_key
        admit = f"systemctl is-system-running --wait >/dev/null; echo '{key}' >>.ssh/authorized_keys && sync"
        self._login(own, admit)
        virsh("snapshot-create-as", self._domain, SNAPSHOT)
        try:
            self._login(own, "sed -i '$d' .ssh/authorized_keys")
            yield
        finally:
            virsh("snapshot-delete", self._domain, SNAPSHOT)

    def _keep_disk(self, target: Path) -> None:
        """Copy the disk while the machine is suspended: QEMU has written everything and writes nothing."""
        try:
            virsh("suspend", self._domain)
            target.touch(0o600)  # not of the disk's owner, who is QEMU's user
            with target.open("wb") as file:
                done = subprocess.run([*COMPRESS, str(self._disk)], stdout=file, check=False)
            if done.returncode:
                raise OSError(f"zstd: {self._disk} cannot be compressed")
        finally:
            virsh("resume", self._domain)

    def _login(self, identity: Path, command: str) -> None:
        timeout = ["-o", f"ConnectTimeout={round(20 * timeout_scale())}"]
        to = ["-i", str(identity), "-p", str(self._machine.ssh_port), f"vagrant@{self._machine.plan.address}"]
        output_of([*SSH, *timeout, *to, command])


def fingerprint(xml: str, seed: str, box: str, qemu: str) -> str:
    """What a saved state depends on, as a hash: everything but names, paths, ports and SSH keys.

    xml   libvirt's description of the machine
    seed  its fingerprint; `box`: by name; `qemu`: version, since the program's path does not count
    """
    domain = ET.fromstring(xml)  # noqa: S314 - libvirt's
    for parent in list(domain.iter()):
        for child in list(parent):
            identity = parent is domain and child.tag in ("name", "uuid", "title", "description", "metadata")
            place = child.tag in ("emulator", "backingStore") or (parent.tag == "disk" and child.tag == "address")
            if identity or place:
                parent.remove(child)
            elif child.tag in ("source", "local"):
                for name in ("file", "path", "port", "startupPolicy", "index"):
                    child.attrib.pop(name, None)
    for argument in domain.findall(ARGUMENTS):
        argument.set("value", re.sub(r"(tcp:|udp=|localaddr=)[\d.]+:\d+", r"\1", argument.get("value", "")))
    text = ET.canonicalize(ET.tostring(domain, encoding="unicode"), strip_text=True)
    return hashlib.sha256(json.dumps([FORMAT, text, seed, box, qemu]).encode()).hexdigest()[:16]


def _fresh(disk: Path) -> Path:
    """Where a machine's new disk waits while the saved one is tried."""
    return disk.with_name(f"{disk.name}.fresh")


def _require_room(folder: Path) -> None:
    free = shutil.disk_usage(folder).free
    if free < NEEDED:
        raise OSError(f"{folder} has {free >> 20} MiB left, {NEEDED >> 20} are needed")
