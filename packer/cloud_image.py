# SPDX-License-Identifier: GPL-2.0-or-later
"""An official Debian 12 cloud image as the base of the boxes, instead of one made from packages.

A download is kept in the cache; a file of this host is used where it lies. Either is proved by its checksum.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

from box_cache import BuildError, locked
from fetching import Wanted

URL, CHECKSUM = "FWLAB_BASE_URL", "FWLAB_BASE_CHECKSUM"
#: By the number of hex digits: Debian publishes SHA-512, others SHA-256.
ALGORITHMS = {64: "sha256", 128: "sha512"}
_refused: dict[Wanted, BuildError] = {}


def cloud_image() -> Wanted | None:
    """The image that the environment asks for; None without one. Raises BuildError where it is half-said."""
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
            "give the hex digits that sha512sum prints; beside Debian's images they are in SHA512SUMS",
        )
    return Wanted("cloud image", url, algorithm, digest, URL, CHECKSUM)


def settings_of(image: Wanted | None) -> dict[str, str]:
    """What of it decides the content of a box: its checksum. Where it came from does not, and base_url stays empty.

    (Without that word the key of every box would be another.)
    """
    return {"base_url": "", "base_checksum": f"{image.algorithm}:{image.digest}" if image else ""}


def fetched(image: Wanted, cache: Path, say: Callable[[str], None], stopped: Callable[[], bool]) -> Path:
    """Where the image is, proved: in the cache, or where its address says if that is a path.

    The boxes are built side by side from one image: the first downloads it, and what the others have waited for is
    the image or what was wrong with it.
    """
    if image.path is not None:
        image.prove_in_place()
        check_disk(image.path, image.url)
        return image.path
    kept = cache / "downloads" / f"{image.digest}.img"
    with locked(cache / "locks" / f"base-{image.digest[:12]}", stopped):
        if image in _refused:
            raise _refused[image]
        if not image.holds(kept):
            try:
                image.fetch(kept, say, lambda draft: check_disk(draft, image.url), stopped)
            except BuildError as error:
                _refused[image] = error
                raise
    return kept


def check_disk(path: Path, name: str) -> None:
    """Raises BuildError unless the file begins as QEMU's format does or as a disk with a boot sector."""
    with path.open("rb") as file:
        head = file.read(512)
    if head[:4] != b"QFI\xfb" and head[510:] != b"\x55\xaa":
        raise BuildError(
            f"{name}: neither a qcow2 image nor a raw disk with a boot sector",
            "Debian's genericcloud image in its .qcow2 form is one",
        )
