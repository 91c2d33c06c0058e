# SPDX-License-Identifier: GPL-2.0-or-later
"""Run the real testbed on an emulated host: python -m tests.nested_host [--links KIND,KIND] [--cases CASE,CASE]

Builds a Debian host image unless it is built, boots it under QEMU's TCG with KVM, an IOMMU and NICs with virtual
functions, puts this checkout and its boxes in, and runs `fwlab doctor`, `vagrant up` and a measurement there, for each
kind of link. Writes results/nested-host/DATE.json.gz, DATE.log and, per link, DATE-LINK.json.gz. It takes hours on two
cores and needs no KVM.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil

from fwlab.checkout.project import Project, find_project
from fwlab.host.published_file import need_room
from fwlab.measure.provenance import commit, host_facts
from fwlab.model.errors import EXIT_FAIL, EXIT_PASS, BadInput, CannotMeasure, FwlabError
from fwlab.testbed.link_kinds import LINKS
from tests.nested_host.image import NEEDED_BYTES, boxes_disk, checkout_files, host_image, run
from tests.nested_host.machine import CPUS, MEMORY_MIB, Host, HostFiles, started
from tests.nested_host.private_qemu import PrivateQemu, private_qemu
from tests.nested_host.record import Record, chosen_cases, recorded
from tests.nested_host.steps import FULL_KERNEL, LAB, Shell, check_host, check_link, environment, prepare, put_checkout

PROJECT = find_project(Path(__file__))
#: All machines share the emulated CPU, so the generator is slow. A long list of rules saturates the DUT nevertheless.
CASES = ("iptables-rules-16384",)
#: What the emulated host needs besides what this one uses.
SPARE_MIB = 1024
PROGRAMS = ("mmdebstrap", "mkfs.ext4", "qemu-img", "xorriso", "setpriv", "ssh", "timeout")


def main(words: Sequence[str] | None = None) -> int:
    """Exit 0 all as wanted, 1 a step was not, 2 bad usage, 3 the emulated host did not come up, 130 interrupted."""
    parser = argparse.ArgumentParser(prog="tests.nested_host", description=(__doc__ or "").split("\n\n", maxsplit=1)[0])
    parser.add_argument("--links", default="socket", help="kinds of links, separated by commas (default: socket)")
    parser.add_argument("--cases", default=",".join(CASES), help=f"cases of {LAB} (default: {','.join(CASES)})")
    parser.add_argument("--keep", action="store_true", help="leave the host running until Enter is pressed")
    chosen = parser.parse_args(words)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        links, cases = chosen_links(chosen.links), chosen_cases(PROJECT, LAB, chosen.cases)
        reject_small_host()
        return EXIT_PASS if nested_host(PROJECT, links, cases, keep=chosen.keep) else EXIT_FAIL
    except FwlabError as error:
        sys.stderr.write(f"nested host: {error}\n")
        return error.exit_code
    except KeyboardInterrupt:
        sys.stderr.write("nested host: interrupted; the emulated host was ended\n")
        return 130


def chosen_links(words: str) -> list[str]:
    """Kinds of links by name. Raises BadInput for one that does not exist."""
    links = [word for word in words.split(",") if word]
    if not links or (unknown := [link for link in links if link not in LINKS]):
        wrong = f"unknown link kind {', '.join(unknown)}" if links else "no link kind"
        raise BadInput(f"--links: {wrong}; there are: {', '.join(LINKS)}", "make nested-host LINKS=socket")
    return links


def reject_small_host() -> None:
    """Raises CannotMeasure if a program or memory is missing."""
    path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    missing = [name for name in PROGRAMS if not (shutil.which(name) or shutil.which(name, path=path))]
    if missing:
        raise CannotMeasure(f"not installed: {', '.join(missing)}", "make setup")
    available = psutil.virtual_memory().available >> 20
    if available < MEMORY_MIB + SPARE_MIB:
        raise CannotMeasure(
            f"{available} MiB of memory available, the emulated host needs {MEMORY_MIB + SPARE_MIB}",
            "vagrant destroy a lab that you do not need",
        )


def nested_host(project: Project, links: list[str], cases: Sequence[str], *, keep: bool) -> bool:
    """Everything, one run at a time; returns whether each step did what it should. Raises CannotMeasure."""
    with recorded(project, "nested-host") as (folder, work, record):
        _run(project, folder, work, record, links, cases, keep)
    return record.ok


def _run(
    project: Project, folder: Path, work: Path, record: Record, links: list[str], cases: Sequence[str], keep: bool
) -> None:
    log = folder / "build.log"
    qemu = private_qemu(project.root, folder, log)
    image = host_image(project, folder, log, record.tell)
    boxes = boxes_disk(project, folder, log, full=bool(set(links) & set(FULL_KERNEL)))
    login = folder / "login"  # kept: cloud-init takes the key at the first boot, and the prepared disk has had that
    login.mkdir(mode=0o700, exist_ok=True)
    run([str(project.root / "packer/seed"), str(login)], log, "seed")
    outer = host_facts()
    record.facts = {
        "qemu": qemu.version(),
        "cpus": CPUS,
        "memory_mib": MEMORY_MIB,
        "image": image.name,
        "boxes": boxes.stem,
        "commit": commit(project),
        "outer": {"cpu": outer.cpu, "cores": outer.cores, "kernel": outer.kernel, "load_average": outer.load_average},
    }
    archive = make_archive(project, work)
    prepared = folder / f"prepared-{image.name.split('-')[1]}-{boxes.stem.split('-')[1]}.qcow2"
    if not prepared.exists():
        need_room(folder, NEEDED_BYTES)
        for old in folder.glob("prepared-*"):
            old.unlink()
        disk = overlay(image / "disk.raw", "raw", work / "prepared.qcow2")
        with _booted(qemu, image, disk, boxes, login, work, record) as host:
            put_checkout(host, record, archive)
            whole = prepare(Shell(host, record, environment())) and host.power_off()
        if not whole:
            raise CannotMeasure("the emulated host could not be set up", f"read results/nested-host or {log}")
        disk.rename(prepared)
    disk = overlay(prepared, "qcow2", work / "run.qcow2")
    with _booted(qemu, image, disk, boxes, login, work, record) as host:
        put_checkout(host, record, archive)
        shell = Shell(host, record, environment())
        if check_host(shell):
            record.facts["guest"] = shell.text("uname -r; qemu-system-x86_64 --version; virsh --version").splitlines()
            for link in links:
                check_link(Shell(host, record, environment(link)), link, cases, search=link == links[0])
        if keep:
            sys.stderr.write(f"the host runs until you press Enter; log in by:\n  {' '.join(host.login)}\n")
            sys.stdin.readline()
        host.power_off()


@contextlib.contextmanager
def _booted(
    qemu: PrivateQemu, image: Path, disk: Path, boxes: Path, login: Path, work: Path, record: Record
) -> Iterator[Host]:
    files = HostFiles(image / "vmlinuz", image / "initrd.img", disk, boxes, login / "seed.iso", login / "id_ed25519")
    with started(qemu, files, work) as host:
        try:
            record.tell(f"booting; SSH on port {host.ssh_port}")
            record.tell(f"SSH answers after {host.await_boot():.0f} s")
            yield host
        except FwlabError as error:
            for line in host.console.read_text(errors="replace").splitlines()[-20:]:
                record.tell(f"console: {line}")
            record.tell(f"error: {error}")
            raise


def overlay(base: Path, form: str, disk: Path) -> Path:
    """A new qcow2 disk over `base`, which stays as it is."""
    create = ["qemu-img", "create", "-q", "-f", "qcow2", "-F", form, "-b", str(base), str(disk)]
    done = subprocess.run(create, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CannotMeasure(f"qemu-img: {done.stderr.strip()}", f"rm {base}")
    return disk


def make_archive(project: Project, work: Path) -> Path:
    """The checkout as a tar file: its last commit, so that results name it, and the work tree's tracked files."""
    clone, archive = work / "clone", work / "checkout.tar"
    git = ["git", "clone", "--quiet", "--depth", "1", f"file://{project.root}", str(clone)]
    done = subprocess.run(git, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CannotMeasure(f"git clone: {done.stderr.strip()}", "git status")
    for name in checkout_files(project.root):
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(project.root / name, clone / name)
    subprocess.run(["tar", "-C", str(clone), "-cf", str(archive), "."], check=True)
    shutil.rmtree(clone)
    return archive


if __name__ == "__main__":
    sys.exit(main())
