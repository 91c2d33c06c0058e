# SPDX-License-Identifier: GPL-2.0-or-later
"""TRex's tarball for the generator's image: fetched once, verified by its checksum, kept in the cache.

The tarball comes from TRex's makers and is no part of this project. Once given, it stays chosen for this checkout:
.fwlab/images.json says which one the generator's image contains.
"""

import os
import re
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fwlab.host.project import Project
from fwlab.images.box_cache import sha256_of
from fwlab.images.built_boxes import built_boxes
from fwlab.images.download import PublishedFile
from fwlab.images.errors import BuildError
from fwlab.model.errors import CannotMeasure

URL, SHA256 = "FWLAB_TREX_URL", "FWLAB_TREX_SHA256"
#: The value of FWLAB_TREX_URL that builds the image without TRex again.
NONE = "none"


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
    url, wanted = os.environ.get(URL, ""), os.environ.get(SHA256, "").lower()
    if url == NONE:
        return None
    if not url and not wanted:
        return _chosen_before(project, cache)
    if not (url and wanted):
        raise BuildError(f"{URL} and {SHA256} go together", "set both, or neither")
    if not re.fullmatch(r"[0-9a-f]{64}", wanted):
        raise BuildError(f"{SHA256} is not a SHA-256: {wanted[:80]}", "give the 64 hex digits that sha256sum prints")
    kept = cache / "trex" / f"{wanted}.tar.gz"
    release = PublishedFile("TRex", url, "sha256", wanted, URL, SHA256)
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
