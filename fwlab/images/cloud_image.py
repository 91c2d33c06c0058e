# SPDX-License-Identifier: GPL-2.0-or-later
"""An official Debian 12 cloud image as the base of the boxes, instead of one made from packages.

A download is kept in the cache; a file of this host is used in place. Either is verified by its checksum.
"""

import os
import re
from collections.abc import Callable
from pathlib import Path

from fwlab.images.box_cache import locked
from fwlab.images.download import PublishedFile
from fwlab.images.errors import BuildError

URL, CHECKSUM = "FWLAB_BASE_URL", "FWLAB_BASE_CHECKSUM"
#: By the number of hex digits: Debian publishes SHA-512, others SHA-256.
ALGORITHMS = {64: "sha256", 128: "sha512"}


class CloudImage:
    """One cloud image, which all images of a build share."""

    def __init__(self, file: PublishedFile) -> None:
        self._file = file
        self._refused: BuildError | None = None

    def fetched(self, cache: Path, say: Callable[[str], None], stopped: Callable[[], bool]) -> Path:
        """The verified image: in the cache, or where its address says if that is a path.

        The boxes are built side by side. The first build downloads it; the others wait and get the image, or the same
        error. Raises BuildError.
        """
        file = self._file
        if file.path is not None:
            file.verify_in_place(file.path)
            check_disk(file.path, file.url)
            return file.path
        kept = cache / "downloads" / f"{file.digest}.img"
        with locked(cache / "locks" / f"base-{file.digest[:12]}", stopped):
            if self._refused is not None:
                raise self._refused
            if not file.is_at(kept):
                try:
                    file.fetch(kept, say, lambda draft: check_disk(draft, file.url), stopped)
                except BuildError as error:
                    self._refused = error
                    raise
        return kept

    @property
    def checksum(self) -> str:
        """As Packer writes it: sha512:..."""
        return f"{self._file.algorithm}:{self._file.digest}"


def cloud_image() -> CloudImage | None:
    """The image that the environment asks for; None if it asks for none. Raises BuildError if a variable is wrong."""
    url, checksum = os.environ.get(URL, ""), os.environ.get(CHECKSUM, "").lower()
    if bool(url) != bool(checksum):
        raise BuildError("FWLAB_BASE_URL and FWLAB_BASE_CHECKSUM go together", "set both, or neither")
    if not url:
        return None
    prefix, _, digest = checksum.rpartition(":")
    algorithm = ALGORITHMS.get(len(digest))
    if not re.fullmatch(r"[0-9a-f]+", digest) or algorithm is None or prefix not in ("", algorithm):
        raise BuildError(
            f"{CHECKSUM} is no SHA-512 or SHA-256: {checksum[:160]}",
            "give the hex digits that sha512sum prints; Debian lists them in SHA512SUMS beside its images",
        )
    return CloudImage(PublishedFile("cloud image", url, algorithm, digest, URL, CHECKSUM))


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
