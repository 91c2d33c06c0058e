# SPDX-License-Identifier: GPL-2.0-or-later
"""The FreeBSD image that the box dut-freebsd is made from: fetched once, verified, unpacked for each build.

It comes from FreeBSD's makers and is no part of this project. Once given, it stays chosen for this checkout:
.fwlab/images.json says from which one the box was made.
"""

import http.client
import lzma
import os
import re
import shutil
import urllib.request
from collections.abc import Callable
from functools import cached_property
from pathlib import Path

from fwlab.host.project import Project
from fwlab.images.box_cache import need_room
from fwlab.images.built_boxes import built_boxes
from fwlab.images.download import TIMEOUT_S, PublishedFile
from fwlab.images.errors import BuildError, SourceError
from fwlab.images.freebsd_disk import check_freebsd
from fwlab.images.freebsd_release import OFFICIAL
from fwlab.model.errors import CannotMeasure

FREEBSD = "dut-freebsd"
URL, SHA256 = "FWLAB_FREEBSD_URL", "FWLAB_FREEBSD_SHA256"
#: The value of FWLAB_FREEBSD_URL that leaves the image out.
NONE = "none"
#: Beside the official images.
CHECKSUMS = "CHECKSUM.SHA256"
XZ = b"\xfd7zXZ\0"
CHUNK = 1 << 20
#: Room for the disk and for Packer's two copies of it, as a multiple of the file's size.
ROOM_PACKED, ROOM_PLAIN = 20, 3


class FreebsdImage:
    """One image. `digest`: its SHA-256 if it is known, else that in CHECKSUM.SHA256 beside it."""

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
        file = self._file(self.sha256)
        try:
            if file.path is not None:
                file.verify_in_place(file.path)
                packed = file.path
            else:
                packed = cache / "downloads" / f"{self.sha256}.freebsd"
                if not file.is_at(packed):
                    file.fetch(packed, say, lambda _: None, stopped)
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

    def _file(self, digest: str) -> PublishedFile:
        return PublishedFile("FreeBSD", self.url, "sha256", digest, URL, SHA256)

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
                        raise BuildError(f"{FREEBSD}: stopped while its image was unpacked")
                    target.write(part)
        except (lzma.LZMAError, EOFError) as error:
            raise SourceError(
                f"{self.url}: cannot be unpacked: {error}", "get it again; it is damaged, though its checksum fits"
            ) from error


def published_sum(url: str) -> str:
    """The SHA-256 of `url` in CHECKSUM.SHA256 beside it. Raises SourceError."""
    folder, _, name = url.rpartition("/")
    address = f"{folder}/{CHECKSUMS}" if folder else CHECKSUMS
    sums = PublishedFile(CHECKSUMS, address, "sha256", "", URL, SHA256)
    hint = f"set {SHA256} to the SHA-256 of the image, or put {CHECKSUMS} beside it"
    try:
        if sums.path is not None:
            text = sums.path.read_text(errors="replace")
        else:
            with urllib.request.urlopen(address, timeout=TIMEOUT_S) as answer:  # noqa: S310
                text = answer.read(CHUNK).decode(errors="replace")
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "strerror", None) or getattr(error, "reason", None) or error
        if sums.path is None:
            hint = f"download the image by other means, then: {URL}=PATH {SHA256}=SUM packer/build {FREEBSD}"
        raise SourceError(f"{address}: {reason}", hint) from error
    found = re.search(rf"^SHA256 \({re.escape(name)}\) = ([0-9a-f]{{64}})$", text, re.MULTILINE)
    if found is None:
        raise SourceError(f"{address}: no SHA-256 of {name}", hint)
    return found[1]


def freebsd_image(project: Project) -> FreebsdImage | None:
    """The image that the environment names, else that of this checkout's box, else the official one; None for `none`.

    Nothing is fetched yet. Raises SourceError if a variable is wrong.
    """
    url, wanted = os.environ.get(URL, ""), os.environ.get(SHA256, "").lower().removeprefix("sha256:")
    if wanted and not url:
        raise SourceError(f"{SHA256} is set and {URL} is not", "set both, or neither")
    if wanted and not re.fullmatch(r"[0-9a-f]{64}", wanted):
        raise SourceError(f"{SHA256} is not a SHA-256: {wanted[:80]}", "give the 64 hex digits that sha256sum prints")
    if url == NONE:
        return None
    if url:
        return FreebsdImage(url, wanted)
    known = chosen_before(project)
    return known if known is not None else FreebsdImage(OFFICIAL)


def chosen_before(project: Project) -> FreebsdImage | None:
    """The image of this checkout's box; None if it has no such box."""
    try:
        known = built_boxes(project)[FREEBSD]["freebsd"]
        return FreebsdImage(str(known["url"]), str(known["sha256"]))
    except (CannotMeasure, KeyError, TypeError):
        return None
