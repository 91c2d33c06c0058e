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
from functools import partial
from pathlib import Path
from typing import Any

from fwlab.metrics.offered_load import BUDGET_S
from tests.nested_host.machine import FUNCTIONS, Host
from tests.nested_host.record import Record, Step

#: Where the image has the checkout (provision/nested-host/70-checkout.sh).
CHECKOUT = "/opt/fwlab"
#: Marks raw results. No range names this class, so none is judged by its speed.
HOST_CLASS = "nested-host"
LAB = "lab03-ipset"
EXERCISE = "ex1-one-host"
#: Kinds of links for which host.yml names NICs, and whose machines need the full kernel (guides/links.md).
NAMED_NICS, FULL_KERNEL = ("macvtap", "sriov"), ("sriov",)
#: A search may exceed its budget by the trial that was under way, on a host that takes its time.
SLACK_S = 30
#: Limits (s) that only end what hangs: beside other work, an emulated host may get a tenth of one core.
SHORT_S, LONG_S = 7200, 21600

Judge = Callable[[int, str], tuple[bool, str]]


def succeeds(status: int, output: str) -> tuple[bool, str]:
    """A command that exits with 0; says its last line."""
    last = next((line for line in reversed(output.splitlines()) if line.strip()), "no output")
    return status == 0, last.strip() if status == 0 else f"exit {status}: {last.strip()}"


def document(output: str) -> Any:
    """The JSON document at the end of what a command printed. Raises ValueError if there is none."""
    lines = output.splitlines()
    if "{" not in lines:
        raise ValueError("no document")
    return json.loads("\n".join(lines[lines.index("{") :]))


def of_document(judge: Callable[[Any], tuple[bool, str]]) -> Judge:
    """A judge of a command by its document; its exit code may be that of a verdict."""

    def judged(status: int, output: str) -> tuple[bool, str]:
        try:
            return judge(document(output))
        except (ValueError, KeyError, TypeError) as error:
            return False, f"exit {status}: {type(error).__name__} {error}"

    return judged


def finds_kvm(found: Any) -> tuple[bool, str]:
    """`fwlab doctor --json`: KVM booted a kernel, the real testbed was asked for, and nothing required is missing."""
    findings = [item for item in found["findings"] if item["required"]]
    missing = [f"{item['item']}: {item['says']}" for item in findings if not item["ok"]]
    ok = bool(found["kvm"]["works"]) and found["testbed"] == "real" and not missing
    return ok, "; ".join([f"testbed {found['testbed']}: {found['kvm']['says']}", *missing])


def runs_under_kvm(status: int, output: str) -> tuple[bool, str]:
    """libvirt's descriptions of three machines, all of type kvm."""
    kinds = re.findall(r"<domain type='(\w+)'", output)
    return status == 0 and kinds == ["kvm"] * 3, f"domains: {', '.join(kinds) or 'none'}"


def measured(link: str, found: Any) -> tuple[bool, str]:
    """`fwlab run --json`: each case has a figure from the real testbed on this link, whatever the verdict on it."""
    testbed = found["testbed"]
    kind = testbed["name"], testbed["accelerator"], testbed["link"]
    medians = {case["id"]: case["median"] for case in found["cases"]}
    words = ", ".join(f"{name} {'no figure' if pps is None else f'{pps:.0f} pps'}" for name, pps in medians.items())
    return kind == ("real", "kvm", link) and None not in medians.values(), f"{', '.join(kind)}: {words}"


def searched(found: Any) -> tuple[bool, str]:
    """Raw results with a search for throughput: it kept to its budget, and found upper bounds."""
    searches = [] if found is None else (found["cases"][0].get("benchmarks") or {}).get("searches", [])
    if not searches:
        return False, "no search was made"
    one = searches[0]
    bounds = ", ".join(f"loss {goal['loss_ratio']:.1%}: {goal['lower']} to {goal['upper']}" for goal in one["goals"])
    said = f"{len(one['trials'])} trials in {one['spent_s']:.0f} s, {'ended' if one['ended'] else 'cut off'}; {bounds}"
    bounded = all(goal["upper"] is not None for goal in one["goals"])
    return one["spent_s"] <= BUDGET_S + SLACK_S and bounded, said


def delivers(wanted: set[str], found: Any) -> tuple[bool, str]:
    """`fwlab check --json`: the verdicts on delivery are these. That on speed means nothing on an emulated host."""
    checks = [check for exercise in found["exercises"] for check in exercise["checks"]]
    outcomes = {check["outcome"] for check in checks if check["metric"] == "delivered"}
    return outcomes == wanted, f"delivery: {', '.join(sorted(outcomes)) or 'not judged'}; in all: {found['verdict']}"


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

    def data(self, path: str) -> Any:
        """A JSON file of the checkout; None if there is none."""
        try:
            return json.loads(self.text(f"cat {path}"))
        except ValueError:
            return None

    def text(self, command: str) -> str:
        """What a command prints; not a step."""
        return self.host.run(f"cd {CHECKOUT} && {command}", lambda line: None, timeout_s=SHORT_S)[1]


def environment(link: str | None = None) -> dict[str, str]:
    """The variables of a user who wants the real testbed, and this kind of link.

    Machines boot one after the other: together on one emulated CPU, each is so slow that its kernel gives devices up.
    """
    chosen = {"FWLAB_LINK": link} if link else {}
    testbed = {"FWLAB_TESTBED": "real", "FWLAB_ACCEL": "kvm", "FWLAB_BOOT_TIMEOUT": str(LONG_S)}
    vagrant = {"VAGRANT_NO_COLOR": "1", "VAGRANT_NO_PARALLEL": "1"}
    return {**testbed, **vagrant, "FWLAB_HOST_CLASS": HOST_CLASS, "COLUMNS": "120", **chosen}


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
    entry = "LABEL=fwlab-boxes /mnt/boxes ext4 ro,x-systemd.device-timeout=0 0 0"
    link = f"ln -sfn /mnt/boxes /var/cache/fwlab/boxes && echo {entry} >>/etc/fstab"
    return (
        shell.step("boxes' disk", f"{mount} && {link}")
        and shell.step("make setup", "make setup", limit_s=LONG_S)
        and make_boxes(shell)
    )


def make_boxes(shell: Shell, *, full: bool = False) -> bool:
    """Add the boxes to Vagrant, with the full kernel if that is asked for; returns whether that worked."""
    name = f"{'FWLAB_KERNEL=full ' if full else ''}make boxes"
    return shell.step(name, f"{name} LAB={LAB}", limit_s=LONG_S)


def check_host(shell: Shell) -> bool:
    """Virtual functions, IOMMU, and `fwlab doctor`; returns whether machines can be started."""
    files = "/sys/bus/pci/devices/*/sriov_numvfs"
    each = f"for file in {files}; do echo {FUNCTIONS} >$file; done; cat {files}"
    functions = f"{each}; for vf in /sys/bus/pci/devices/*/physfn; do lspci -nns $(basename $(dirname $vf)); done"
    shell.step("virtual functions", functions)
    shell.step("IOMMU groups", "dmesg | grep -m 1 'IOMMU enabled' && ls /sys/kernel/iommu_groups | wc -l")
    return shell.step("fwlab doctor", printed(".venv/bin/fwlab doctor --json --probe"), of_document(finds_kvm))


def check_link(shell: Shell, link: str, cases: list[str], *, search: bool = False) -> None:
    """The lab's machines on this kind of link: up, a measurement, an exercise right and wrong, destroyed.

    `search`: also search for the throughput of the first case, which takes minutes.
    """
    name, fwlab = f"{link}: fwlab", ".venv/bin/fwlab"
    work, solutions = f"labs/{LAB}/work/{EXERCISE}", f"labs/{LAB}/rulesets/{EXERCISE}"
    if link in NAMED_NICS and not shell.step(
        f"{link}: host.yml", f"rm -f host.yml && {fwlab} doctor --draft-host-file"
    ):
        return
    if link in FULL_KERNEL and not make_boxes(shell, full=True):
        return
    try:
        if not shell.step(f"{link}: vagrant up", f"vagrant up {LAB}", limit_s=LONG_S):
            return
        machines = f"$(virsh list --name | grep {LAB})"
        shell.step(f"{link}: KVM", f"for name in {machines}; do virsh dumpxml $name; done", runs_under_kvm)
        run = f"{fwlab} run {LAB} {' '.join(cases)} --testbed real --trials 3 --json --output reports/{link}"
        shell.step(f"{name} run", printed(run), of_document(partial(measured, link)), LONG_S)
        if (results := shell.data(f"reports/{link}/run.json")) is not None:
            shell.record.runs[link] = results
        for part, wanted in (("reference", {"pass"}), ("mistake", {"fail", "pass"})):
            place = f"rm -rf {work} && mkdir -p {work} && cp -R {solutions}/{part}/. {work}/"
            check = printed(f"{fwlab} check {LAB} {EXERCISE} --testbed real --trials 3 --json")
            shell.step(f"{name} check, {part}", f"{place} && {check}", of_document(partial(delivers, wanted)), LONG_S)
        if search:
            run = f"{fwlab} run {LAB} {cases[0]} --also throughput --also pdr --testbed real --trials 3 --json"
            command = printed(f"{run} --output reports/search")
            shell.step(f"{name} run, throughput", command, of_document(lambda _: (True, "measured")), LONG_S)
            found = shell.data("reports/search/run.json")
            shell.record.add(Step(f"{link}: the search's budget", "reports/search/run.json", 0, *searched(found)))
    finally:
        shell.step(f"{link}: vagrant destroy", f"vagrant destroy -f {LAB}")
        if link in FULL_KERNEL:
            make_boxes(shell)


def printed(command: str) -> str:
    """The command, its document after all that it says on standard error."""
    return f"{{ {command} >/tmp/document; status=$?; cat /tmp/document; exit $status; }}"
