# SPDX-License-Identifier: GPL-2.0-or-later
"""The FreeBSD image that the box dut-freebsd is made from: fetched once, verified, unpacked for each build.

It comes from FreeBSD's makers and is no part of this project. Once given, it stays chosen for this checkout:
.fwlab/images.json says from which one the box was made.

Its bytes are checked before anything boots: booting an image without a login would only time out.
"""

import http.client
import lzma
import mmap
import os
import re
import shutil
import subprocess
import urllib.request
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path

from fwlab.host.published_file import NONE, TIMEOUT_S, PublishedFile, need_room
from fwlab.model.errors import BuildError, SourceError

BOX = "dut-freebsd"

#: The default release of the image: the newest of the 14 series in November 2026.
RELEASE = "14.5"
#: The first with nuageinit and with official images that contain it.
OLDEST = 14
IMAGE = f"FreeBSD-{RELEASE}-RELEASE-amd64-BASIC-CLOUDINIT-ufs.qcow2.xz"
OFFICIAL = f"https://download.freebsd.org/releases/VM-IMAGES/{RELEASE}-RELEASE/amd64/Latest/{IMAGE}"
#: What to do about an image that does not fit.
EXAMPLE = f"use an official BASIC-CLOUDINIT-ufs image, such as {OFFICIAL}"


SECTOR = 512
#: Sectors of a GPT with its partition table.
TABLE_SECTORS = 34
#: Types of FreeBSD's partitions for UFS and ZFS in a GPT, as stored; and of its slice in an MBR.
GPT_UFS = bytes.fromhex("b67c6e51cf6ed6118ff800022d09712b")
GPT_ZFS = bytes.fromhex("ba7c6e51cf6ed6118ff800022d09712b")
MBR_TYPE = 0xA5
#: In the text of freebsd-version(1).
USERLAND = re.compile(rb'USERLAND_VERSION="(\d+)\.(\d+)-')
NUAGEINIT = re.compile(rb"# PROVIDE: nuageinit\n")
#: The kernel's first lines, and what ends when it halts.
BANNER = re.compile(r"^FreeBSD (\d+)\.(\d+)-\S+", re.MULTILINE)


def check_freebsd(disk: Path, name: str) -> None:
    """Raise SourceError, which calls the image `name`, unless the disk can be a FreeBSD that the labs can use.

    A missing version string or file is ignored for compressed disks.
    """
    table = _first_sectors(disk, name)
    if GPT_ZFS in table and GPT_UFS not in table:
        raise SourceError(f"{name}: its root is ZFS, whose memory and threads would disturb measurements", EXAMPLE)
    slices = {table[446 + 16 * number + 4] for number in range(4)}
    if GPT_UFS not in table and MBR_TYPE not in slices:
        raise SourceError(f"{name}: not a disk of FreeBSD: it has no partition of that type", EXAMPLE)
    with disk.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        found = USERLAND.search(content)
        if found is None:
            return
        release = f"{found[1].decode()}.{found[2].decode()}"
        if int(found[1]) < OLDEST:
            raise SourceError(f"{name}: FreeBSD {release} is too old; {OLDEST} or later is needed", EXAMPLE)
        if NUAGEINIT.search(content) is None:
            raise SourceError(f"{name}: FreeBSD {release} without nuageinit, so no login would be possible", EXAMPLE)


def _first_sectors(disk: Path, name: str) -> bytes:
    """The partition table. Raises SourceError if QEMU cannot read the disk."""
    command = ["qemu-img", "dd", f"bs={SECTOR}", f"count={TABLE_SECTORS}", f"if={disk}", "-O", "raw"]
    draft = disk.with_name(f"{disk.name}.table")
    try:
        done = subprocess.run([*command, f"of={draft}"], capture_output=True, text=True, check=False)
        if done.returncode:
            raise SourceError(f"{name}: not a disk image: {done.stderr.strip().splitlines()[-1]}", EXAMPLE)
        return draft.read_bytes().ljust(SECTOR * TABLE_SECTORS, b"\0")
    finally:
        draft.unlink(missing_ok=True)


URL_NAME, SUM_NAME = "FWLAB_FREEBSD_URL", "FWLAB_FREEBSD_SHA256"
#: The file of checksums in the official images' folder.
CHECKSUMS = "CHECKSUM.SHA256"
XZ = b"\xfd7zXZ\0"
CHUNK = 1 << 20
#: Room for the disk and for Packer's two copies of it, as a multiple of the file's size.
ROOM_PACKED, ROOM_PLAIN = 20, 3


class FreebsdImage:
    """One image. `digest`: its SHA-256 if it is known, else that in CHECKSUM.SHA256 in the same folder."""

    def __init__(self, url: str, digest: str = "") -> None:
        self.url = url
        self._digest = digest

    @cached_property
    def sha256(self) -> str:
        """Raises SourceError if it must be looked up and cannot be."""
        return self._digest or published_sum(self.url)

    def record(self) -> dict[str, str]:
        """What .fwlab/images.json keeps of it."""
        path = self._file("").path
        return {"url": self.url if path is None else str(path), "sha256": self.sha256}

    def disk(self, cache: Path, work: Path, say: Callable[[str], None], stopped: Callable[[], bool]) -> Path:
        """The disk, verified and unpacked into `work`. Raises SourceError; nothing is left then."""
        kept = cache / "downloads" / f"{self.sha256}.freebsd"
        try:
            packed = self._file(self.sha256).obtained(kept, say, lambda _: None, stopped)
        except BuildError as error:
            raise SourceError(error.message, error.hint) from error
        disk = work / "freebsd.img"
        try:
            self._unpack(packed, disk, stopped)
            check_freebsd(disk, self.url)
        except BaseException:
            disk.unlink(missing_ok=True)
            raise
        return disk

    def explained(self, error: BuildError, console: str) -> BuildError:
        """Why Packer failed, if what the machine said on its console tells; else the same error."""
        found = BANNER.search(console)
        if found is not None and int(found[1]) < OLDEST:
            release = f"{found[1]}.{found[2]}"
            return SourceError(f"{self.url}: FreeBSD {release} is too old; {OLDEST} or later is needed", EXAMPLE)
        if "Timeout waiting for SSH" not in error.message:
            return error
        if found is None:
            return SourceError(f"{self.url}: no FreeBSD started from it", EXAMPLE)
        return SourceError(f"{self.url}: {found[0]} started, but allows no login: does it have nuageinit?", EXAMPLE)

    def _file(self, digest: str) -> PublishedFile:
        return PublishedFile("FreeBSD", self.url, "sha256", digest, URL_NAME, SUM_NAME)

    def _unpack(self, packed: Path, disk: Path, stopped: Callable[[], bool]) -> None:
        with packed.open("rb") as file:
            compressed = file.read(len(XZ)) == XZ
        need_room(disk.parent, packed.stat().st_size * (ROOM_PACKED if compressed else ROOM_PLAIN) + (1 << 30))
        if not compressed:
            shutil.copyfile(packed, disk)
            return
        try:
            with lzma.open(packed) as source, disk.open("wb") as target:
                while part := source.read(CHUNK):
                    if stopped():
                        raise BuildError(f"{BOX}: stopped while its image was unpacked")
                    target.write(part)
        except (lzma.LZMAError, EOFError) as error:
            raise SourceError(
                f"{self.url}: cannot be unpacked: {error}", "get it again; it is damaged, though its checksum fits"
            ) from error


def published_sum(url: str) -> str:
    """The SHA-256 of `url` in CHECKSUM.SHA256 in the same folder. Raises SourceError."""
    folder, _, name = url.rpartition("/")
    address = f"{folder}/{CHECKSUMS}" if folder else CHECKSUMS
    sums = PublishedFile(CHECKSUMS, address, "sha256", "", URL_NAME, SUM_NAME)
    hint = f"set {SUM_NAME} to the SHA-256 of the image, or put {CHECKSUMS} into the same folder"
    try:
        if sums.path is not None:
            text = sums.path.read_text(errors="replace")
        else:
            with urllib.request.urlopen(address, timeout=TIMEOUT_S) as answer:  # noqa: S310
                text = answer.read(CHUNK).decode(errors="replace")
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "strerror", None) or getattr(error, "reason", None) or error
        if sums.path is None:
            again = f"{URL_NAME}=PATH {SUM_NAME}=SUM packer/build {BOX}"
            hint = f"download the image by other means, then: {again}"
        raise SourceError(f"{address}: {reason}", hint) from error
    found = re.search(rf"^SHA256 \({re.escape(name)}\) = ([0-9a-f]{{64}})$", text, re.MULTILINE)
    if found is None:
        raise SourceError(f"{address}: no SHA-256 of {name}", hint)
    return found[1]


def chosen_image(known: Mapping[str, str] | None) -> FreebsdImage | None:
    """The image that the environment names, else that of this checkout's box, else the official one; None for `none`.

    Nothing is fetched yet. Raises SourceError if a variable is wrong.

    known  what `record` said of the box's image; None if there is no such box
    """
    url, wanted = os.environ.get(URL_NAME, ""), os.environ.get(SUM_NAME, "").lower().removeprefix("sha256:")
    if wanted and not url:
        raise SourceError(f"{SUM_NAME} is set and {URL_NAME} is not", "set both, or neither")
    if wanted and not re.fullmatch(r"[0-9a-f]{64}", wanted):
        raise SourceError(f"{SUM_NAME} is not a SHA-256: {wanted[:80]}", "give the 64 hex digits that sha256sum prints")
    if url == NONE:
        return None
    if url:
        return FreebsdImage(url, wanted)
    return FreebsdImage(OFFICIAL) if known is None else FreebsdImage(known["url"], known["sha256"])
