# SPDX-License-Identifier: GPL-2.0-or-later
"""What boxes with Linux are made from and others publish: cloud images, TRex's tarball."""

import os
import re
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fwlab.checkout.project import Project
from fwlab.host.published_file import NONE, PublishedFile
from fwlab.images.boxes import built_boxes, locked, sha256_of
from fwlab.model.errors import BuildError, CannotMeasure

BASE_URL, BASE_CHECKSUM = "FWLAB_BASE_URL", "FWLAB_BASE_CHECKSUM"
#: By the number of hex digits: Debian publishes SHA-512, others SHA-256.
ALGORITHMS = {64: "sha256", 128: "sha512"}


class CloudImage:
    """An official Debian 12 cloud image as the base of the boxes, instead of one made from packages.

    All images of a build share it. A download is kept in the cache; a file of this host is used in place.
    """

    def __init__(self, file: PublishedFile) -> None:
        self._file = file
        self._refused: BuildError | None = None

    def fetched(self, cache: Path, say: Callable[[str], None], stopped: Callable[[], bool]) -> Path:
        """The verified image: in the cache, or where its address says if that is a path.

        The boxes are built side by side. The first build downloads it; the others wait and get the image, or the same
        error. Raises BuildError.
        """
        file = self._file
        kept = cache / "downloads" / f"{file.digest}.img"
        with locked(cache / "locks" / f"base-{file.digest[:12]}", stopped):
            if self._refused is not None:
                raise self._refused
            try:
                return file.obtained(kept, say, lambda found: check_disk(found, file.url), stopped)
            except BuildError as error:
                self._refused = error
                raise

    @property
    def checksum(self) -> str:
        """As Packer writes it: sha512:..."""
        return f"{self._file.algorithm}:{self._file.digest}"


def cloud_image() -> CloudImage | None:
    """The image that the environment asks for; None if it asks for none. Raises BuildError if a variable is wrong."""
    url, checksum = os.environ.get(BASE_URL, ""), os.environ.get(BASE_CHECKSUM, "").lower()
    if bool(url) != bool(checksum):
        raise BuildError("FWLAB_BASE_URL and FWLAB_BASE_CHECKSUM go together", "set both, or neither")
    if not url:
        return None
    prefix, _, digest = checksum.rpartition(":")
    algorithm = ALGORITHMS.get(len(digest))
    if not re.fullmatch(r"[0-9a-f]+", digest) or algorithm is None or prefix not in ("", algorithm):
        raise BuildError(
            f"{BASE_CHECKSUM} is no SHA-512 or SHA-256: {checksum[:160]}",
            "give the hex digits that sha512sum prints; Debian lists them in SHA512SUMS next to its images",
        )
    return CloudImage(PublishedFile("cloud image", url, algorithm, digest, BASE_URL, BASE_CHECKSUM))


def base_settings(image: CloudImage | None) -> dict[str, str]:
    """The part of a box's content key that names its base: the checksum, not the address.

    base_url stays empty. It is kept so that existing cache keys stay valid.
    """
    return {"base_url": "", "base_checksum": image.checksum if image else ""}


def check_disk(path: Path, name: str) -> None:
    """Raise BuildError unless the file starts like a qcow2 image or like a disk with a boot sector."""
    with path.open("rb") as file:
        head = file.read(512)
    if head[:4] != b"QFI\xfb" and head[510:] != b"\x55\xaa":
        raise BuildError(
            f"{name}: neither a qcow2 image nor a raw disk with a boot sector",
            "use, for example, Debian's genericcloud image in its .qcow2 form",
        )


TREX_URL, TREX_SHA256 = "FWLAB_TREX_URL", "FWLAB_TREX_SHA256"


@dataclass(frozen=True)
class Tarball:
    """A release that was asked for. `path`: the verified file; None if only a cached image can contain it."""

    sha256: str
    version: str
    path: Path | None

    def record(self) -> dict[str, str]:
        """What the image's manifest says about TRex."""
        return {"version": self.version, "sha256": self.sha256}


def trex_tarball(project: Project, cache: Path, say: Callable[[str], None]) -> Tarball | None:
    """The tarball that the environment asks for, else that of this checkout's image; None without either.

    Raises BuildError if address, checksum or file is wrong. Nothing is left in the cache then.
    """
    url, wanted = os.environ.get(TREX_URL, ""), os.environ.get(TREX_SHA256, "").lower()
    if url == NONE:
        return None
    if not url and not wanted:
        return _chosen_before(project, cache)
    if not (url and wanted):
        raise BuildError(f"{TREX_URL} and {TREX_SHA256} go together", "set both, or neither")
    if not re.fullmatch(r"[0-9a-f]{64}", wanted):
        raise BuildError(
            f"{TREX_SHA256} is not a SHA-256: {wanted[:80]}", "give the 64 hex digits that sha256sum prints"
        )
    kept = cache / "trex" / f"{wanted}.tar.gz"
    release = PublishedFile("TRex", url, "sha256", wanted, TREX_URL, TREX_SHA256)
    if not release.is_at(kept):
        release.fetch(kept, say, version_of)
    return Tarball(wanted, version_of(kept), kept)


def _chosen_before(project: Project, cache: Path) -> Tarball | None:
    try:
        known = built_boxes(project)["generator"]["trex"]
        sha256, version = known["sha256"], known["version"]
    except (CannotMeasure, KeyError, TypeError):
        return None
    kept = cache / "trex" / f"{sha256}.tar.gz"
    return Tarball(sha256, version, kept if kept.is_file() and sha256_of(kept) == sha256 else None)


def version_of(path: Path) -> str:
    """The release's version, such as v3.06: the name of its folder. Raises BuildError if it is no TRex release."""
    unfit = BuildError(
        f"{path}: not a release of TRex: it must hold vX.Y/t-rex-64", "give the tarball as it was published"
    )
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                found = re.fullmatch(r"(?:\./)?(v\d[\w.]*)/t-rex-64", member.name)
                if found:
                    return found[1]
    except (tarfile.TarError, EOFError, OSError) as error:
        raise unfit from error
    raise unfit
