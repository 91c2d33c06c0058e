# SPDX-License-Identifier: GPL-2.0-or-later
"""libvirt's and QEMU's tools in fakes, for machines that are saved and restored without any machine."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from fwlab.machines.saved import SavedMachine
from fwlab.machines.seed import make_key
from tests.fakes.machines_checkout import LAB, settings

DOMAIN = """<domain type='qemu' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>
  <name>NAME</name><uuid>UUID</uuid><memory unit='KiB'>MEMORY</memory>
  <devices><emulator>EMULATOR</emulator>
    <disk type='file' device='disk'><source file='DISK' index='1'/><target dev='vda' bus='virtio'/></disk>
    <interface type='udp'><mac address='52:54:00:00:00:01'/>
      <source address='127.0.0.1' port='PORT'><local address='127.0.0.1' port='LOCAL'/></source></interface>
  </devices>
  <qemu:commandline><qemu:arg value='-netdev'/>
    <qemu:arg value='user,id=management,hostfwd=tcp:127.0.0.1:SSHPORT-10.0.2.15:22,'/></qemu:commandline>
</domain>
"""
VALUES = {
    "NAME": "fwlab-1-lab03-ipset",
    "UUID": "b2e1",
    "MEMORY": "524288",
    "EMULATOR": "/bin/echo",
    "DISK": "/images/one.img",
    "SSHPORT": "22031",
    "PORT": "44030",
    "LOCAL": "44031",
}
#: Each writes its words to `calls`; the first word of $FAIL is the one that fails.
FAKE = """#!/bin/sh
echo "$(basename "$0") $*" >>"$CALLS"
case "$(basename "$0") $*" in *"${FAIL:-nothing fails}"*) echo "refused" >&2; exit 1;; esac
"""
VIRSH = (
    FAKE
    + """case "$*" in *dumpxml*) cat "$DOMAIN_XML";; *snapshot-create\\ *) cat >/dev/null;; esac
"""
)
QEMU_IMG = (
    FAKE
    + """[ "$1" != info ] || echo '{"full-backing-filename": "/images/box.img"}'
"""
)
ZSTD = (
    FAKE
    + """case "$1" in -dqf) cp "$2" "$4";; *) shift $(($# - 1)); cat "$1";; esac
"""
)


def domain(**changed: str) -> str:
    text = DOMAIN
    for name, value in {**VALUES, **changed}.items():
        text = text.replace(name, value)
    return text


class Bench:
    """A checkout, a domain, and the fakes; `did` is what they were called with in the last action."""

    def __init__(self, root: Path) -> None:
        self.root, self.cache = root, root / "cache"
        self.disk = root / "machine.img"
        self.disk.write_text("new disk")
        (root / "domain.xml").write_text(domain(DISK=str(self.disk)))
        programs = root / "programs"
        programs.mkdir()
        for name, text in {"virsh": VIRSH, "qemu-img": QEMU_IMG, "zstd": ZSTD, "ssh": FAKE}.items():
            (programs / name).write_text(text)
            (programs / name).chmod(0o755)
        self.did: list[str] = []

    def act(self, action: str, **extra: str) -> dict[str, Any]:
        """Call `restore` or `save` of the DUT's saved machine; `new` is what a machine without a saved state does."""
        calls = self.root / "calls"
        calls.write_text("")
        own = {
            "PATH": f"{self.root / 'programs'}:{os.environ['PATH']}",
            "CALLS": str(calls),
            "DOMAIN_XML": str(self.root / "domain.xml"),
        }
        with settings(self.root, **own, **extra) as plan:
            make_key(plan)
            machine = plan.machine(LAB)
            machine.seed.parent.mkdir(parents=True, exist_ok=True)
            machine.seed.with_suffix(".sha256").write_text("seed")
            saved = SavedMachine(machine)
            steps = ["restore", "save"] if action == "new" else [action]
            done = [getattr(saved, step)() for step in steps]
        self.did = calls.read_text().splitlines()
        return {"done": done[-1], "warnings": saved.warnings}

    def saved(self, suffix: str) -> list[Path]:
        return sorted((self.cache / "saved").glob(f"*{suffix}"))

    def save(self) -> Path:
        """Restore finds no state; then one is saved."""
        before = self.saved(".qcow2.zst")
        assert self.act("new")["done"]
        (state,) = set(self.saved(".qcow2.zst")) - set(before)
        return state
