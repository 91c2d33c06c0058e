# SPDX-License-Identifier: GPL-2.0-or-later
"""What runs on the emulated host, by the project's own commands. Each step says what it wants to see.

`prepare` is done once for an image and its boxes; its disk is kept. `check_host` and `check_link` are done in each run.
"""

from __future__ import annotations

import json
import re
import shlex
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.nested_host.machine import Host
from tests.nested_host.record import Record, Step

#: Where the image has the checkout (provision/nested-host/70-checkout.sh).
CHECKOUT = "/opt/fwlab"
LAB = "lab03-ipset"
EXERCISE = "ex1-one-host"
#: Few virtual functions are enough: one for each end of a link.
VFS = 4
#: Limits (s) that only end what hangs: an emulated host beside other work is a hundred times slower.
SHORT_S, LONG_S = 1800, 7200

Judge = Callable[[int, str], tuple[bool, str]]


def succeeds(status: int, output: str) -> tuple[bool, str]:
    """A command that exits with 0; says its last line."""
    last = next((line for line in reversed(output.splitlines()) if line.strip()), "no output")
    return status == 0, last.strip() if status == 0 else f"exit {status}: {last.strip()}"


def finds_kvm(status: int, output: str) -> tuple[bool, str]:
    """`fwlab doctor --json` that chose the real testbed because KVM started a kernel, and misses nothing."""
    try:
        found = json.loads(output[output.index("{") :])
        missing = [f"{item['item']}: {item['says']}" for item in found["findings"] if not item["ok"]]
        ok = bool(found["kvm"]["works"]) and found["testbed"] == "real" and not missing
        return ok, "; ".join([f"testbed {found['testbed']}: {found['kvm']['says']}", *missing])
    except (ValueError, KeyError, TypeError) as error:
        return False, f"exit {status}, and no document: {error}"


def runs_under_kvm(status: int, output: str) -> tuple[bool, str]:
    """libvirt's descriptions of three machines, all of type kvm."""
    kinds = re.findall(r"<domain type='(\w+)'", output)
    return status == 0 and kinds == ["kvm"] * 3, f"domains: {', '.join(kinds) or 'none'}"


def measured(status: int, output: str) -> tuple[bool, str]:
    """`fwlab run` or `check` that measured: pass (0) or a judged failure (1). 3 is "could not be measured"."""
    return status in (0, 1), f"exit {status}"


@dataclass(frozen=True)
class Shell:
    """Commands in the checkout on the host, each a step of the record."""

    host: Host
    record: Record
    environment: dict[str, str]

    def step(self, name: str, command: str, judge: Judge = succeeds, limit_s: float = SHORT_S) -> bool:
        """Run one command and record it; returns whether it did what it should."""
        self.record.tell(f"--- {name}: {command}")
        began = time.monotonic()
        settings = " ".join(f"{key}={shlex.quote(value)}" for key, value in self.environment.items())
        full = f"cd {CHECKOUT} && export {settings} && {command}"
        status, output = self.host.run(full, self.record.tell, timeout_s=limit_s)
        ok, says = judge(status, output)
        self.record.add(Step(name, command, round(time.monotonic() - began, 1), ok, says))
        return ok

    def text(self, command: str) -> str:
        """What a command prints; not a step."""
        return self.host.run(f"cd {CHECKOUT} && {command}", lambda line: None, timeout_s=SHORT_S)[1]


def environment(link: str | None = None) -> dict[str, str]:
    """The variables of a user who wants the real testbed, and this kind of link."""
    chosen = {"FWLAB_LINK": link} if link else {}
    testbed = {"FWLAB_TESTBED": "real", "FWLAB_ACCEL": "kvm", "FWLAB_BOOT_TIMEOUT": str(LONG_S)}
    return {**testbed, "VAGRANT_NO_COLOR": "1", "COLUMNS": "120", **chosen}


def put_checkout(host: Host, record: Record, archive: Path) -> None:
    """Replace the checkout by the one in `archive`, a tar file. The .venv and .fwlab stay."""
    record.tell("--- the checkout")
    keep = "find . -mindepth 1 -maxdepth 1 ! -name .venv ! -name .fwlab ! -name .vagrant -exec rm -rf {} +"
    command = f"mkdir -p {CHECKOUT} && cd {CHECKOUT} && {keep} && tar -x --no-same-owner -f -"
    status, output = host.run(command, record.tell, timeout_s=SHORT_S, data=archive)
    record.add(Step("checkout", "tar -x", 0, *succeeds(status, output or "unpacked")))


def prepare(shell: Shell) -> bool:
    """Set the host up and add the boxes to Vagrant; returns whether that worked."""
    mount = "mkdir -p /mnt/boxes /var/cache/fwlab && mount -o ro LABEL=fwlab-boxes /mnt/boxes"
    link = "ln -sfn /mnt/boxes /var/cache/fwlab/boxes && echo LABEL=fwlab-boxes /mnt/boxes ext4 ro 0 0 >>/etc/fstab"
    return (
        shell.step("boxes' disk", f"{mount} && {link}")
        and shell.step("make setup", "make setup", limit_s=LONG_S)
        and shell.step("make boxes", f"make boxes LAB={LAB}", limit_s=LONG_S)
    )


def check_host(shell: Shell) -> bool:
    """Virtual functions, and `fwlab doctor`; returns whether machines can be started."""
    files = "/sys/class/net/*/device/sriov_numvfs"
    functions = f"for file in {files}; do echo {VFS} >$file; done; cat {files}; lspci -nn | grep -i virtual.function"
    shell.step("virtual functions", functions)
    shell.step("IOMMU groups", "ls /sys/kernel/iommu_groups | wc -l && dmesg | grep -m 1 'IOMMU enabled'")
    return shell.step("fwlab doctor", ".venv/bin/fwlab doctor --json --probe", finds_kvm)


def check_link(shell: Shell, link: str, cases: list[str]) -> None:
    """The lab's machines on this kind of link: up, a measurement, an exercise right and wrong, destroyed."""
    work = f"labs/{LAB}/work/{EXERCISE}"
    solution = f"labs/{LAB}/rulesets/{EXERCISE}/reference"
    try:
        if not shell.step(f"{link}: vagrant up", f"vagrant up {LAB}", limit_s=LONG_S):
            return
        names = f"$(virsh list --name | grep {LAB})"
        shell.step(f"{link}: KVM", f"for name in {names}; do virsh dumpxml $name; done", runs_under_kvm)
        shell.step(
            f"{link}: fwlab run",
            f".venv/bin/fwlab run {LAB} {' '.join(cases)} --testbed real --trials 3 --output reports/{link}",
            measured,
            LONG_S,
        )
        shell.record.runs[link] = _document(shell, f"reports/{link}/run.json")
        check = f".venv/bin/fwlab check {LAB} {EXERCISE} --testbed real --json"
        place = f"rm -rf {work} && mkdir -p {work} && cp -R {solution}/. {work}/"
        shell.step(f"{link}: fwlab check, reference", f"{place} && {check}", measured, LONG_S)
    finally:
        shell.step(f"{link}: vagrant destroy", f"vagrant destroy -f {LAB}")


def _document(shell: Shell, path: str) -> Any:
    try:
        return json.loads(shell.text(f"cat {path}"))
    except ValueError:
        return None
