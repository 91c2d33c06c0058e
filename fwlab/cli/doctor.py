# SPDX-License-Identifier: GPL-2.0-or-later
"""`fwlab doctor`: which testbed would be used and why, what is missing, and the command that provides it."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import Console

from fwlab.checkout.project import Project, find_project, load_topology
from fwlab.cli.options import Json
from fwlab.cli.output import print_json
from fwlab.generator.selection import choose as choose_engine
from fwlab.host.environment import cache_directory, libvirt_uri
from fwlab.host.hardware_probe import Finding, probe_hardware
from fwlab.host.kvm_probe import kvm_works
from fwlab.host.memory import memory_left
from fwlab.host.nics import Devices, Ip
from fwlab.images.boxes import built_boxes, kernels_of_boxes, outdated
from fwlab.images.disk_use import LIMIT, PARTS, bytes_of, bytes_of_machines
from fwlab.images.programs import ELSEWHERE, PACKER
from fwlab.machines.plan import qemu_traceable
from fwlab.measure.calibration import load_host_class
from fwlab.measure.host_room import memory_of_a_set
from fwlab.model.errors import EXIT_FAIL, EXIT_PASS, EXIT_UNMEASURED, BadInput, CannotMeasure
from fwlab.model.topology import Topology
from fwlab.testbed.choices import link_kinds
from fwlab.testbed.host_file import NAME, host_file_path, load_host_file, write_draft
from fwlab.testbed.host_links.prepare import HostLinks
from fwlab.testbed.link_kinds import LINKS
from fwlab.testbed.selection import TestbedRequest, choose
from fwlab.testbed.throttle import try_throttling

#: `make setup` installs them all, where the release has them.
PROGRAMS = ("vagrant", "virsh", "qemu-system-x86_64", "qemu-img", PACKER, "mmdebstrap", "ssh", "xorriso")
#: Only a host that builds the boxes needs these.
BUILDING = (PACKER, "mmdebstrap")


def doctor(
    as_json: Json = False,
    probe: Annotated[bool, typer.Option("--probe", help="Try KVM again, even if the answer is remembered.")] = False,
    draft_host_file: Annotated[
        bool, typer.Option("--draft-host-file", help="Write a first host.yml, from the NICs of this host.")
    ] = False,
) -> None:
    """Say which testbed would be used, and what is missing."""
    project = find_project()
    if draft_host_file:
        write_draft(project)
        return
    images = _images(project)
    findings = [
        *programs(boxes_built=images.ok),
        _libvirt(project),
        images,
        *_links(project),
        _throttling(project),
        _memory(project),
        _disk(),
        _host_class(project),
    ]
    kvm = kvm_works(again=probe)
    findings += probe_hardware(Devices(), Ip(), kvm)
    testbed, engine = choose(TestbedRequest()), choose_engine(project)
    ready = all(f.ok for f in findings if f.required)
    if as_json:
        document = {
            "testbed": testbed.name,
            "why": testbed.why,
            "kvm": {"works": kvm.works, "says": kvm.why, "remembered": kvm.remembered},
            "engine": {"name": engine.name, "why": engine.why},
            "ready": ready,
            "findings": [asdict(f) for f in findings],
        }
        print_json(document)
    else:
        console = Console(highlight=False)
        console.print(f"testbed: [bold]{testbed.name}[/] ({testbed.why}); with `--testbed real`: {kvm.why}")
        if kvm.remembered:
            tried = f"        KVM was tried at {kvm.remembered} and is not tried each time"
            console.print(f"{tried}; again: `fwlab doctor --probe`", soft_wrap=True, markup=False)
        console.print(f"engine: [bold]{engine.name}[/] ({engine.why})")
        for finding in sorted(findings, key=lambda one: not one.required):
            mark = (
                "[green]ok[/]     " if finding.ok else "[red]missing[/]" if finding.required else "[yellow]without[/]"
            )
            console.print(f"{mark} {finding.item}: {finding.says}", soft_wrap=True)
            if not finding.ok:
                console.print(f"        next: {finding.next}", markup=False, soft_wrap=True)
    raise typer.Exit(EXIT_PASS if ready else EXIT_UNMEASURED)


def programs(*, boxes_built: bool) -> list[Finding]:
    """What runs the labs and, unless the boxes are built, what builds them."""
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    found = {name: shutil.which(name, path=path) for name in PROGRAMS}
    return [
        Finding(
            name,
            bool(where),
            where or "not installed",
            f"make setup{ELSEWHERE if name == PACKER else ''}",
            not (boxes_built and name in BUILDING),
        )
        for name, where in found.items()
    ]


def _libvirt(project: Project) -> Finding:
    """Root's with systemd is to run; any other one `vagrant up` starts, and stops again."""
    uri, script = libvirt_uri(), project.root / "provision/host/libvirt"
    try:
        asked = subprocess.run([script, "status", uri], capture_output=True, text=True, check=False)
    except OSError as error:
        return Finding("libvirt", False, f"{script}: {error.strerror}", "is this checkout complete? git status")
    if asked.returncode == EXIT_PASS:
        return Finding("libvirt", True, f"{uri} answers")
    own = "qemu:///session" if os.getuid() else "qemu:///system"
    if asked.returncode == EXIT_FAIL and uri == own:
        return Finding("libvirt", True, f"{uri} does not run; `vagrant up` starts it")
    message, _, hint = asked.stderr.strip().partition("\n  next: ")
    return Finding(
        "libvirt", False, message.removeprefix("libvirt: "), hint or f"unset FWLAB_LIBVIRT_URI: {own} needs no rights"
    )


def _found(item: str, says: Callable[[], str]) -> Finding:
    """What is found, or the error of looking."""
    try:
        return Finding(item, True, says())
    except (BadInput, CannotMeasure) as error:
        return Finding(item, False, error.message, error.hint)


def _images(project: Project) -> Finding:
    def says() -> str:
        images = built_boxes(project)
        if old := outdated(project.root, images, images):
            raise CannotMeasure(f"{', '.join(old)}: built from other files than are here now", "make boxes")
        kernel = images.get("dut-linux", {}).get("manifest", {}).get("kernel", "unknown")
        return f"{', '.join(sorted(images))}; the DUT's kernel is {kernel}"

    return _found("boxes", says)


def _links(project: Project) -> list[Finding]:
    """For each kind of link one finding, or one for each thing that the host lacks for it."""
    topology = load_topology(project)
    used, kernels = link_kinds(topology), kernels_of_boxes(project)
    findings = []
    for kind in (*used, *(kind for kind in LINKS.values() if kind not in used)):
        needed = kind in used
        lacking = [
            Finding(f"link {kind.name}", False, one.what, one.next, needed)
            for one in kind.requirements(kernels)
            if not one.met
        ]
        # For a link that was not requested, the first gap is enough.
        shown = lacking if needed else lacking[:1]
        findings += shown or [Finding(f"link {kind.name}", True, kind.summary, required=needed)]
    return [*findings, *_host_file(project, topology)]


def _host_file(project: Project, topology: Topology) -> list[Finding]:
    """host.yml if there is one, and what is still changed on this host."""
    findings = []

    def says() -> str:
        file = load_host_file(project, topology)
        return f"macvtap for {_named(file.macvtap)}; sriov for {_named(file.sriov)}"

    if host_file_path(project).exists():
        findings.append(_found(NAME, says))
    links = HostLinks(project, topology)
    for lab in links.labs():
        lost = links.lost(lab)
        said = lost.message if lost else f"this host is changed for {lab}, until its machines are destroyed"
        hint = lost.hint if lost else ""
        findings.append(Finding(f"links of {lab}", lost is None, said, hint, False))
    return findings


def _named(links: Iterable[str]) -> str:
    return " and ".join(links) or "no link"


def _throttling(project: Project) -> Finding:
    """The DUT is throttled through ptrace, which some distributions forbid. It is tried on a QEMU without a machine."""
    emulator = qemu_traceable(project.root) if os.getuid() else "qemu-system-x86_64"

    def says() -> str:
        try_throttling(emulator)
        return "allowed"

    return _found("throttling the DUT", says)


def _memory(project: Project) -> Finding:
    needed, room = memory_of_a_set(project), memory_left()
    return Finding("memory", room.mib >= needed, f"{room} available, three machines need {needed}", room.hint)


def _disk() -> Finding:
    cache, machines = bytes_of(cache_directory()), bytes_of_machines()
    parts = ", ".join(f"{part} {bytes_of(cache_directory() / part) >> 20}" for part in PARTS)
    says = f"{cache_directory()} takes {cache >> 20} MiB ({parts}), machines and their boxes {machines >> 20} MiB"
    hint = "`packer/build --prune` keeps only what this checkout uses; `vagrant destroy` a lab that you do not need"
    return Finding("disk", max(cache, machines) <= LIMIT, says, hint, required=False)


def _host_class(project: Project) -> Finding:
    """The calibration of this checkout, which only the real testbed uses. A run says whether it still holds."""

    def says() -> str:
        found = load_host_class(project)
        if found is None:
            return "not calibrated, which matters on the real testbed only"
        ceiling = f"the generator sends {found.ceiling / 1e3:,.1f} kpps over {found.setup.link}"
        return f"{found.name}, calibrated {found.measured.date()}: {ceiling}"

    return _found("host class", says)
