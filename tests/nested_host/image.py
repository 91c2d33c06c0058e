# SPDX-License-Identifier: GPL-2.0-or-later
"""The emulated host's disk, made by packer/base/build, and the disk with the boxes.

packer/base/build runs in a staged copy, in which the role "nested-host" has what provision/host/packages.txt names.
All that needs a network or much CPU time happens here: packages, and the .venv from wheels.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from fwlab.checkout.project import Project
from fwlab.host.environment import cache_directory
from fwlab.host.published_file import need_room
from fwlab.images.boxes import LINUX_IMAGES, base_key, cached, publish, record_path
from fwlab.images.build import CLOUD, KERNEL_VARIABLE, Builder
from fwlab.images.programs import Subprocesses
from fwlab.model.errors import CannotMeasure

ROLE = "nested-host"
DISK_MIB = 16384
#: What decides what is in the image, besides what base_key knows.
MORE_PARTS = ("provision/host/packages.txt", "provision/host/venv", "requirements-dev.lock", "pyproject.toml")
#: For the image (3 GiB), its tar, what a run writes, and the boxes.
NEEDED_BYTES = 16 << 30

Tell = Callable[[str], None]


def image_key(root: Path) -> str:
    """The content key of the host's image."""
    parts = {name: hashlib.sha256((root / name).read_bytes()).hexdigest() for name in MORE_PARTS}
    return base_key(root, ROLE, {**parts, "disk_mib": str(DISK_MIB)})[:12]


def host_image(project: Project, folder: Path, log: Path, tell: Tell) -> Path:
    """The folder with disk.raw, vmlinuz and initrd.img, made unless it is there. Raises CannotMeasure."""
    made = folder / f"image-{image_key(project.root)}"
    if made.exists():  # it is moved there whole; hashing 16 GiB each time would take minutes
        return made
    need_room(folder, NEEDED_BYTES)
    tell("making the host's image from Debian packages (some minutes)")
    wheels = folder / "wheels"
    pip = [str(project.root / ".venv/bin/pip"), "download", "--quiet", "--require-hashes"]
    run([*pip, "-r", str(project.root / "requirements-dev.lock"), "-d", str(wheels)], log, "wheels")
    for old in folder.glob("image-*"):
        shutil.rmtree(old)
    with tempfile.TemporaryDirectory(dir=folder, prefix="building-") as name:
        staged = stage(project.root, wheels, Path(name))
        out = Path(name) / "out"
        run([str(staged / "packer/base/build"), ROLE, str(out)], log, "image", {"FWLAB_BASE_MIB": str(DISK_MIB)})
        out.rename(made)
    return made


def stage(root: Path, wheels: Path, work: Path) -> Path:
    """A copy of what packer/base/build reads, with the role's list and the checkout beside its scripts."""
    staged = work / "staged"
    provision, role = staged / "provision", staged / "provision" / ROLE
    shutil.copytree(root / "packer/base", staged / "packer/base")
    shutil.copytree(root / "provision/common", provision / "common")
    shutil.copytree(root / "provision" / ROLE, role)
    shutil.copy2(root / "provision/run", provision)
    common = provision / "common/packages.txt"
    # The role's list has the full kernel instead.
    common.write_text("".join(line for line in common.read_text().splitlines(True) if line.strip() != CLOUD))
    lists = [root / "provision/host/packages.txt", root / "provision" / ROLE / "packages.txt"]
    (role / "packages.txt").write_text("".join(path.read_text() for path in lists))
    shutil.copytree(wheels, role / "wheels")
    for path in checkout_files(root):
        target = role / "checkout" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(root / path, target)
    return staged


def checkout_files(root: Path) -> list[str]:
    """The files that git lists, as they are in the work tree; results/ is left out: nothing there is measured with."""
    said = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, text=True, check=True).stdout
    names = [name for name in said.split("\0") if name]
    return [name for name in names if not name.startswith("results/") and (root / name).is_file()]


def boxes_disk(project: Project, folder: Path, log: Path, *, full: bool) -> Path:
    """A read-only ext4 disk with the usual boxes, and (`full`) those with the full kernel; made unless it is there.

    Raises CannotMeasure if they are not built.
    """
    boxes = _boxes(project, full=False) + (_boxes(project, full=True) if full else [])
    key = hashlib.sha256("".join(box.name for box in boxes).encode()).hexdigest()[:12]
    disk = folder / f"boxes-{key}.raw"
    if cached(disk):
        return disk
    for old in folder.glob("boxes-*"):
        old.unlink()
    with tempfile.TemporaryDirectory(dir=folder, prefix="boxes.") as name:
        work, content = Path(name), Path(name) / "content"
        content.mkdir()
        for path in [part for box in boxes for part in (box, record_path(box))]:
            shutil.copy2(path, content)
        size = sum(path.stat().st_size for path in content.iterdir())
        mkfs = ["mkfs.ext4", "-q", "-F", "-L", "fwlab-boxes", "-m", "0", "-O", "^has_journal", "-d", str(content)]
        run([*mkfs, str(work / "disk"), f"{(size >> 20) * 11 // 10 + 32}M"], log, "boxes")
        publish(work / "disk", disk, {"key": key})
    return disk


def _boxes(project: Project, *, full: bool) -> list[Path]:
    cache = cache_directory()
    builder = Builder(project, cache, Subprocesses(), lambda line: None, full=full)
    boxes = [cache / "boxes" / f"{image}-{builder.key(image)[:12]}.box" for image in LINUX_IMAGES]
    if missing := [box.name for box in boxes if not (box.exists() and record_path(box).exists())]:
        kernel = f"{KERNEL_VARIABLE}=full " if full else ""
        raise CannotMeasure(f"boxes are not built: {', '.join(missing)}", f"{kernel}packer/build --no-vagrant")
    return boxes


def run(command: list[str], log: Path, name: str, more: dict[str, str] | None = None) -> None:
    """Run a command, its output into `log`. Raises CannotMeasure, which quotes the log's end."""
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    environment = {**os.environ, "PATH": path, **(more or {})}
    with log.open("ab") as output:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment, check=False
        )
    if done.returncode:
        tail = "\n".join(f"  {line}" for line in log.read_text(errors="replace").splitlines()[-8:])
        raise CannotMeasure(f"{name}: {Path(command[0]).name} failed with {done.returncode}:\n{tail}", f"read {log}")
