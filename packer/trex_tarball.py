# SPDX-License-Identifier: GPL-2.0-or-later
"""TRex's tarball on its way into the generator's image: fetched once, proved by its checksum, kept in the cache.

The tarball comes from TRex's makers and is no part of this project. Once given, it stays chosen for this checkout:
.fwlab/images.json says which one the generator's image holds.
"""

from __future__ import annotations

import json
import os
import re
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from box_cache import REPOSITORY, BuildError, sha256_of
from fetching import Wanted

URL, SHA256 = "FWLAB_TREX_URL", "FWLAB_TREX_SHA256"
#: What the address may say to build the image without TRex again.
NONE = "none"


@dataclass(frozen=True)
class Tarball:
    """A release that was asked for. `path` is where it is, proved; None where only a cached image can hold it."""

    sha256: str
    version: str
    path: Path | None

    def record(self) -> dict[str, str]:
        return {"version": self.version, "sha256": self.sha256}


def tarball(cache: Path, say: Callable[[str], None]) -> Tarball | None:
    """The tarball that the environment asks for, else the one of this checkout's image; None without either.

    Raises BuildError where the address, the checksum or the file is wrong; then nothing is left in the cache.
    """
    url, wanted = os.environ.get(URL, ""), os.environ.get(SHA256, "").lower()
    if url == NONE:
        return None
    if not url and not wanted:
        return _chosen_before(cache)
    if not (url and wanted):
        raise BuildError(f"{URL} and {SHA256} go together", "set both, or neither")
    if not re.fullmatch(r"[0-9a-f]{64}", wanted):
        raise BuildError(f"{SHA256} is not a SHA-256: {wanted[:80]}", "give the 64 hex digits that sha256sum prints")
    kept = cache / "trex" / f"{wanted}.tar.gz"
    release = Wanted("TRex", url, "sha256", wanted, URL, SHA256)
    if not release.holds(kept):
        release.fetch(kept, say, version_of)
    return Tarball(wanted, version_of(kept), kept)


def _chosen_before(cache: Path) -> Tarball | None:
    try:
        known = json.loads((REPOSITORY / ".fwlab" / "images.json").read_text())["generator"]["trex"]
        sha256, version = known["sha256"], known["version"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    kept = cache / "trex" / f"{sha256}.tar.gz"
    return Tarball(sha256, version, kept if kept.is_file() and sha256_of(kept) == sha256 else None)


def version_of(path: Path) -> str:
    """v3.06, say: the folder that the release lies in. Raises BuildError where the file is no TRex release."""
    no = BuildError(
        f"{path}: not a release of TRex: it must hold vX.Y/t-rex-64", "give the tarball as it was published"
    )
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                found = re.fullmatch(r"(?:\./)?(v\d[\w.]*)/t-rex-64", member.name)
                if found:
                    return found[1]
    except (tarfile.TarError, EOFError, OSError) as error:
        raise no from error
    raise no
