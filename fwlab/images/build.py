# SPDX-License-Identifier: GPL-2.0-or-later
"""Build one image: its base, its staged provisioning, Packer, and the box in the cache.

Debian's Packer writes a box in the first version of Vagrant's format for libvirt: box.img, its format and its size. The
Vagrant plugin of newer Packers writes the second version: box_0.img in a list of disks. All else reads the first.

The files of a base are read only when a box is built from it, so they take little room in the cache: the disk is
compressed to a quarter, and bases with the same kernel share its file.

Boxes may have Debian's full kernel, which has the drivers of virtual functions, instead of its cloud kernel. Figures of
the virtual testbed belong to a kernel, so the boxes keep the cloud kernel unless somebody asks for the other.
"""

import datetime
import filecmp
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fwlab.checkout.project import Project
from fwlab.dut.system import MakersImage
from fwlab.host.environment import accelerator
from fwlab.host.kvm_probe import kvm_works
from fwlab.host.published_file import NONE, need_room
from fwlab.images.boxes import MAKERS, base_key, cached, content_key, engine_key, locked, publish
from fwlab.images.disk_use import BASE_DISK, BASE_RAMDISK
from fwlab.images.programs import PackerTools, Subprocesses
from fwlab.images.sources import TREX_SHA256, TREX_URL, CloudImage, Tarball, base_settings
from fwlab.model.errors import BadInput, BuildError
from fwlab.model.results import Accelerator


def virtual_gib(disk: Path) -> int:
    """The size of a qcow2 or raw disk as its machine sees it (GiB, rounded up)."""
    with disk.open("rb") as file:
        head = file.read(32)
    size = int.from_bytes(head[24:32], "big") if head.startswith(b"QFI\xfb") else disk.stat().st_size
    return -(-size // (1 << 30))


def to_first_format(box: Path) -> None:
    """Rewrite a box of the second format that has one disk; leave one of the first as it is.

    Uses tar(1), because Python's tarfile takes the times in Packer's archives for a part of the name.
    """
    names = subprocess.run(["tar", "-tf", box], check=True, capture_output=True, text=True).stdout.split()
    if "box_0.img" not in names:
        return
    parts = box.with_name(f"{box.name}.parts")
    parts.mkdir()
    subprocess.run(["tar", "-xf", box, "-C", parts], check=True)
    disk, metadata = parts / "box.img", parts / "metadata.json"
    (parts / "box_0.img").rename(disk)
    kept = {name: value for name, value in json.loads(metadata.read_text()).items() if name != "disks"}
    metadata.write_text(json.dumps({**kept, "format": "qcow2", "virtual_size": virtual_gib(disk)}) + "\n")
    rewritten = parts / box.name
    members = ["Vagrantfile", "box.img", "metadata.json"]
    subprocess.run(["tar", "-cf", rewritten, "--owner=0", "--group=0", "-C", parts, *members], check=True)
    rewritten.replace(box)


#: Look for repetitions as far back as 128 MiB: it saves some per cent, and unpacking takes that much memory.
_WINDOW = "--long=27"
_LEVEL = "-9"


def pack_base(programs: Subprocesses, disk: Path, log: Path, image: str) -> Path:
    """Compress `disk` and remove it; returns the compressed file, which lies next to it. Raises BuildError."""
    packed = disk.with_name(BASE_DISK)
    command = ["zstd", "-q", "-f", "-T0", _LEVEL, _WINDOW, "--rm", str(disk), "-o", str(packed)]
    programs.run(command, log, f"{image}: compressing its base")
    return packed


def unpack_base(programs: Subprocesses, packed: Path, disk: Path, log: Path, image: str) -> Path:
    """Write the disk of a compressed base to `disk`, with holes where it is empty; returns it. Raises BuildError."""
    command = ["zstd", "-q", "-d", "-f", "--sparse", _WINDOW, str(packed), "-o", str(disk)]
    programs.run(command, log, f"{image}: unpacking its base")
    return disk


def share_file(made: Path, directory: Path) -> None:
    """Move a file into the directory of its base, or link to the same file of another base there."""
    target = directory / made.name
    for other in directory.parent.glob(f"*/{made.name}"):
        with suppress(OSError):  # another build may be removing it, or the file system has no links
            if other != target and filecmp.cmp(other, made, shallow=False):
                target.hardlink_to(other)
                made.unlink()
                return
    made.replace(target)


KERNEL_VARIABLE = "FWLAB_KERNEL"
CLOUD, FULL = "linux-image-cloud-amd64", "linux-image-amd64"
#: What the images with the full kernel have in addition, relative to the checkout.
SCRIPTS = "packer/full-kernel"


def full_kernel_wanted(base: CloudImage | None) -> bool:
    """Whether $FWLAB_KERNEL asks for it. Raises BadInput."""
    match os.environ.get(KERNEL_VARIABLE, ""):
        case "" | "cloud":
            return False
        case "full" if base is None:
            return True
        case "full":
            message = f"{KERNEL_VARIABLE}=full: a cloud image brings its own kernel"
            raise BadInput(message, f"unset {KERNEL_VARIABLE}, or FWLAB_BASE_URL and FWLAB_BASE_CHECKSUM")
        case other:
            raise BadInput(f"{KERNEL_VARIABLE}={other}: must be cloud or full", f"unset {KERNEL_VARIABLE}")


def put_full_kernel(root: Path, provision: Path) -> None:
    """Change a copy of provision/ so that images made from it have the full kernel. Raises BuildError."""
    packages = provision / "common" / "packages.txt"
    text = packages.read_text()
    if CLOUD not in text.splitlines():
        raise BuildError(f"provision/common/packages.txt: {CLOUD} is not in it", "git diff provision/common")
    packages.write_text(text.replace(f"{CLOUD}\n", f"{FULL}\n"))
    for script in sorted((root / SCRIPTS).glob("*.sh")):
        shutil.copy2(script, provision / "common")


def base_builder(root: Path, image: str, work: Path) -> Path:
    """packer/base/build in a copy of what it reads, for bases with the full kernel."""
    copy = work / "checkout"
    shutil.copytree(root / "packer" / "base", copy / "packer" / "base")
    (copy / "provision").mkdir()
    shutil.copy2(root / "provision" / "run", copy / "provision")
    for name in ("common", image):
        shutil.copytree(root / "provision" / name, copy / "provision" / name)
    put_full_kernel(root, copy / "provision")
    return copy / "packer" / "base" / "build"


def guest_accelerator(kernel: Path | None) -> Accelerator:
    """What Packer's machine runs with: $FWLAB_ACCEL, else KVM if it runs this kernel (None: any), else TCG."""
    return accelerator() or ("kvm" if kvm_works(kernel, boot_sector=True).works else "tcg")


def makers_settings(image: str, sha256: str) -> dict[str, str]:
    """The variables of the content key of a box in MAKERS. `sha256`: of the image that it is made from."""
    return {"base_url": "", "base_checksum": f"sha256:{sha256}", "system": MAKERS[image].name}


def key_settings(base: CloudImage | None, *, full: bool, trex: str | None) -> dict[str, str]:
    """The variables of another image's content key. `trex`: SHA-256 of the tarball if it is in it."""
    contained = {"trex_sha256": trex} if trex is not None else {}
    return base_settings(base) | ({"kernel": FULL} if full else {}) | contained


@dataclass(frozen=True)
class Builder:
    """Builds images of one checkout.

    cache     the cache directory
    programs  the programs that run at present
    say       called with each line of progress
    tarball   TRex for the generator's image; None: without
    base      the cloud image to start from; None: a base made from Debian packages
    makers    by box in MAKERS, what it is made from; one that is missing is not built
    full      whether images with Linux get Debian's full kernel
    tools     what a build needs on this host
    """

    project: Project
    cache: Path
    programs: Subprocesses
    say: Callable[[str], None]
    tarball: Tarball | None = None
    base: CloudImage | None = None
    makers: Mapping[str, MakersImage] = field(default_factory=dict)
    full: bool = False
    tools: PackerTools = field(default_factory=PackerTools)

    @property
    def packer(self) -> Path:
        """The folder of Packer's templates."""
        return self.project.root / "packer"

    def ready_box(self, image: str) -> dict[str, Any]:
        """The entry of images.json for one image, which is built unless the cache has it. Raises BuildError."""
        settings = self._settings(image)
        key = content_key(self.project.root, image, settings)
        box = self.cache / "boxes" / f"{image}-{key[:12]}.box"
        with locked(self.cache / "locks" / image, self.programs.stopped):
            record = cached(box)
            if record is None:
                if box.exists():
                    self.say(f"{image}: {box.name} in the cache is damaged, building it again")
                    box.unlink()
                record = self.make_box(image, key, box)
        name = f"fwlab-{image}-{key[:12]}"
        entry = {"box": name, "key": key, "settings": settings, "path": str(box)}
        entry |= {name: record[name] for name in ("sha256", "manifest")}
        systems = [system.name for system in MAKERS.values()]
        return entry | {name: record[name] for name in ("trex", *systems) if name in record}

    def key(self, image: str) -> str:
        """The image's content key. Raises SourceError if that of a box in `makers` cannot be known."""
        return content_key(self.project.root, image, self._settings(image))

    def _settings(self, image: str) -> dict[str, str]:
        if image in self.makers:
            return makers_settings(image, self.makers[image].sha256)
        tarball = self._tarball_for(image)
        return key_settings(self.base, full=self.full, trex=tarball.sha256 if tarball is not None else None)

    def make_box(self, image: str, key: str, box: Path) -> dict[str, Any]:
        """Build one image and put its box into the cache; returns the box's record. Raises BuildError."""
        tarball = self._tarball_for(image)
        if tarball is not None and tarball.path is None:
            raise BuildError(
                f"{image}: its image contains TRex {tarball.version}, whose tarball is lost from the cache",
                f"set {TREX_URL} and {TREX_SHA256} again, or {TREX_URL}={NONE} to do without",
            )
        self.tools.require(self.packer)
        self.cache.mkdir(parents=True, exist_ok=True)
        need_room(self.cache)
        work = self.cache / "work" / f"{image}-{os.getpid()}"
        log = self.cache / "logs" / f"{image}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        log.unlink(missing_ok=True)
        started = time.monotonic()
        try:
            work.mkdir(parents=True)
            self._provision(image, key, work, log)
            to_first_format(work / f"{image}.box")
            manifest = json.loads((work / "image.json").read_text())
            extra = {"trex": tarball.record()} if tarball is not None else {}
            if image in self.makers:
                extra = {MAKERS[image].name: self.makers[image].record()}
            record = publish(work / f"{image}.box", box, {"key": key, "manifest": manifest, **extra})
        finally:
            with suppress(OSError):  # there may be none; it shows why a machine allowed no login
                shutil.copyfile(work / "console.log", log.with_name(f"{image}-console.log"))
            shutil.rmtree(work, ignore_errors=True)
        self.say(f"{image}: built in {time.monotonic() - started:.0f} s, {record['size'] / 1e6:.0f} MB")
        return record

    def _tarball_for(self, image: str) -> Tarball | None:
        """Only the generator contains TRex."""
        return self.tarball if image == "generator" else None

    def prepare(self, image: str, folder: Path) -> list[str]:
        """Put into a new folder what Packer reads and where it writes; returns the command that builds the box there.

        Raises BuildError.
        """
        self.tools.require(self.packer)
        folder.mkdir(parents=True)
        need_room(folder)
        return self._prepared(image, self.key(image), folder, folder / "log")

    def _provision(self, image: str, key: str, work: Path, log: Path) -> None:
        """Run Packer: the box and the manifest are in `work` then."""
        command = self._prepared(image, key, work, log)
        self.say(f"{image}: Packer provisions it")
        quiet = {"CHECKPOINT_DISABLE": "1", "PACKER_CACHE_DIR": str(self.cache / "downloads")}
        try:
            self.programs.run(command, log, f"{image}: packer", quiet)
        except BuildError as error:
            if image not in self.makers:
                raise
            raise self.makers[image].explained(error, _text(work / "console.log")) from error
        if self.key(image) != key:
            raise BuildError(f"{image}: its files were edited while it was being built", "packer/build")

    def _prepared(self, image: str, key: str, work: Path, log: Path) -> list[str]:
        """Put into `work` what Packer reads, its variables among them; returns its command."""
        values = {"image": image, "work": str(work), "key": key, "seed": str(work / "seed.iso")}
        values |= {"ssh_key": str(work / "id_ed25519"), "provision": str(self._staged(image, work, log))}
        tarball = self._tarball_for(image)
        if tarball is not None and tarball.path is not None:
            values |= {"trex_url": tarball.path.as_uri(), "trex_sha256": tarball.sha256}
        values["built"] = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        values |= self._base_values(image, work, log)
        system = MAKERS[image].name if image in self.makers else ""
        self.programs.run([str(self.packer / "seed"), str(work), system], log, f"{image}: seed")
        variables = work / f"{image}.pkrvars.hcl"
        variables.write_text("".join(f"{name} = {hcl(value)}\n" for name, value in values.items()))
        templates = self.tools.templates(self.packer, work)
        return ["packer", "build", "-color=false", f"-var-file={variables}", str(templates)]

    def _base_values(self, image: str, work: Path, log: Path) -> dict[str, str]:
        """Packer's variables for the base."""
        if image in self.makers:
            disk = self.makers[image].disk(self.cache, work, self.say, self.programs.stopped)
            size = {"disk_size": f"{virtual_gib(disk) << 10}M"}
            return {"base": str(disk), **size, "accelerator": guest_accelerator(None)}
        if self.base is not None:
            disk = self.base.fetched(self.cache, self.say, self.programs.stopped)
            values = {"base": str(disk), "base_checksum": self.base.checksum}
            return {**values, "accelerator": guest_accelerator(None)}
        made = self._made_base(image, work, log)
        kernel = made / "vmlinuz"
        disk = unpack_base(self.programs, made / BASE_DISK, work / "base.raw", log, image)
        values = {"base": str(disk), "kernel": str(kernel), "initrd": str(made / BASE_RAMDISK)}
        return {**values, "accelerator": guest_accelerator(kernel)}

    def _made_base(self, image: str, work: Path, log: Path) -> Path:
        """The directory with disk, vmlinuz and initrd.img for an image, made unless the cache has it."""
        key = base_key(self.project.root, image, key_settings(None, full=self.full, trex=None))
        directory = self.cache / "bases" / f"{image}-{key[:12]}"
        if cached(directory / BASE_DISK) and (directory / BASE_RAMDISK).exists():
            return directory
        self.say(f"{image}: making its base from Debian packages")
        made = work / "base"
        build = base_builder(self.project.root, image, work) if self.full else self.packer / "base" / "build"
        self.programs.run([str(build), image, str(made)], log, f"{image}: base")
        packed = pack_base(self.programs, made / "disk.raw", log, image)
        shutil.rmtree(directory, ignore_errors=True)  # of what is left there, nothing was trusted
        directory.mkdir(parents=True)
        for name in ("vmlinuz", BASE_RAMDISK):
            share_file(made / name, directory)
        publish(packed, directory / BASE_DISK, {"key": key})
        for old in directory.parent.glob(f"{image}-*"):
            if old != directory:
                shutil.rmtree(old, ignore_errors=True)  # it is made again in a minute
        return directory

    def _engine(self, log: Path) -> Path:
        """The replay engine, compiled with the images' libraries, not the host's, unless the cache has it."""
        key = engine_key(self.project.root)
        engine = self.cache / "engines" / f"fwlab-replay-{key[:12]}"
        with locked(self.cache / "locks" / "engine", self.programs.stopped):
            if not cached(engine):
                self.say("generator: compiling its replay engine")
                shutil.rmtree(engine.parent, ignore_errors=True)  # an older one is compiled again in a minute
                engine.parent.mkdir(parents=True)
                made = engine.with_name("new")
                self.programs.run([str(self.packer / "base" / "engine"), str(made)], log, "generator: replay engine")
                publish(made, engine, {"key": key})
        return engine

    def _staged(self, image: str, work: Path, log: Path) -> Path:
        """A copy of provision/ with what this image needs and no more."""
        root, staged = self.project.root, work / "provision"
        staged.mkdir()
        for name in ("run", "idempotence_check"):
            shutil.copy2(root / "provision" / name, staged)
        shutil.copytree(root / "provision" / image, staged / image)
        if image in self.makers:
            (staged / image / "cleanup").replace(staged / "cleanup")
            return staged
        shutil.copy2(root / "provision" / "cleanup", staged)
        shutil.copytree(root / "provision" / "common", staged / "common")
        if self.full:
            put_full_kernel(root, staged)
        if self.base is not None:
            shutil.copy2(self.packer / "cloud" / "05-cloud-image.sh", staged / "common")
            shutil.copy2(self.packer / "base" / "dpkg.cfg", staged / "common")
        if image == "generator":
            (staged / "engine").mkdir()
            shutil.copy2(self._engine(log), staged / "engine" / "fwlab-replay")
            if self.tarball is not None and self.tarball.path is not None:
                shutil.copyfile(self.tarball.path, staged / "trex.tar.gz")
        return staged


def hcl(text: str) -> str:
    """A string as HCL spells it, where `${` and `%{` begin an expression."""
    return json.dumps(text, ensure_ascii=False).replace("${", "$${").replace("%{", "%%{")


def _text(path: Path) -> str:
    return path.read_text(errors="replace") if path.exists() else ""
