# SPDX-License-Identifier: GPL-2.0-or-later
"""Unpack a stranger's .zip or .tar.gz. Only folders and plain files are made, and only below one folder.

Neither zipfile's nor tarfile's own extraction is used: both formats become a list of members with names, and one
function checks and writes them. Counts and sizes are limited by what is really read, whatever the archive claims.
"""

import gzip
import hashlib
import os
import shutil
import stat
import tarfile
import unicodedata
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path, PurePosixPath
from typing import IO

from fwlab.grading.archive_members import CHUNK, EXPORT, SMALL, STUDENT, Limits, Member, Unreadable
from fwlab.grading.room import NoRoom, no_room
from fwlab.grading.tar_members import TarMembers
from fwlab.grading.zip_members import ZipMembers
from fwlab.model.printable import printable

#: The suffixes of archives that are unpacked.
SUFFIXES = (".zip", ".tar.gz", ".tgz")
#: Those of others, for a message.
_OTHERS = (
    *(".tar.xz", ".tar.bz2", ".tar.zst", ".txz", ".tbz2", ".tar"),
    *(".rar", ".7z", ".gz", ".bz2", ".xz", ".zst"),
)
#: What is said of them.
UNPACKED = "only .zip, .tar.gz and .tgz are unpacked"
#: What macOS packs beside the files: a folder that nobody sees on a disk. It is left out, at any depth.
_BESIDE = "__MACOSX"
#: Folders inside folders, and bytes of a name.
_DEEPEST, _LONGEST_NAME = 32, 255
#: What a damaged archive makes the standard library raise.
_DAMAGED = (
    zipfile.BadZipFile, tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError, ValueError, NotImplementedError,
    IndexError, KeyError, OverflowError, RuntimeError,
)  # fmt: skip


def is_archive(name: str) -> bool:
    """Whether a file of this name is unpacked."""
    return name.lower().endswith(SUFFIXES)


def is_packed(name: str) -> bool:
    """Whether a file of this name is an archive, unpacked here or not."""
    return name.lower().endswith((*SUFFIXES, *_OTHERS))


def stem(name: str) -> str:
    """The archive's name without its suffix."""
    suffix = next((suffix for suffix in (*SUFFIXES, *_OTHERS) if name.lower().endswith(suffix)), "")
    return name[: len(name) - len(suffix)]


def unpack(archive: Path, folder: Path, limits: Limits = STUDENT) -> None:
    """Unpack into `folder`, which is made. Raises Unreadable with the reason, and NoRoom for a full disk.

    What was written before an error stays there; the caller removes the folder.
    """
    opened = ZipMembers if archive.name.lower().endswith(".zip") else TarMembers
    try:
        _refuse_special(archive, limits)
        folder.mkdir(parents=True)
        with opened(archive, limits) as members:
            _write(members, folder, limits, archive.stat().st_size)
    except _DAMAGED as error:
        raise Unreadable(f"damaged archive: {printable(error) or type(error).__name__}", "hand it in again") from error
    except OSError as error:
        if no_room(error):
            raise NoRoom.at(folder, error) from error
        raise Unreadable(f"cannot be unpacked: {error.strerror or type(error).__name__}", "hand it in again") from error


def _refuse_special(archive: Path, limits: Limits) -> None:
    found = archive.lstat()
    if not stat.S_ISREG(found.st_mode):
        raise Unreadable("not a plain file", "hand in the archive itself")
    if found.st_size > limits.total:
        raise Unreadable(f"more than {limits.total >> 20} MiB", "hand in the rulesets alone")


# ---- what both formats have in common -------------------------------------------------------------------------


def _write(members: Iterator[Member], folder: Path, limits: Limits, size: int) -> None:
    """Write the members, each new name once. `size` is that of the whole archive."""
    made = _Names(folded=limits is not EXPORT)
    room = limits.total
    for number, member in enumerate(members, 1):
        if number > limits.members:
            raise Unreadable(f"more than {limits.members} files and folders", "hand in the rulesets alone")
        path = _path(member.name)
        if path is None:
            continue
        path = _fitting(path) if limits is EXPORT else path
        made.add(path, is_folder=member.open is None)
        target = folder / path
        if member.open is None:
            target.mkdir(parents=True, exist_ok=True)
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        with closing(member.open()) as source:
            room -= _copy(source, target, path, limits, room, size if member.packed is None else member.packed)


def _copy(source: IO[bytes], target: Path, path: PurePosixPath, limits: Limits, room: int, packed: int) -> int:
    """Copy one member; returns its bytes."""
    done = 0
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(target, flags, 0o600), "wb") as file:
        while chunk := source.read(CHUNK):
            done += len(chunk)
            if done > limits.file:
                raise Unreadable(f"{_shown(path)}: more than {limits.file >> 20} MiB", "use a set")
            if done > room:
                raise Unreadable(f"more than {limits.total >> 20} MiB unpacked", "hand in the rulesets alone")
            if done > SMALL and done > limits.ratio * max(packed, 1):
                what = f"{_shown(path)}: more than {limits.ratio} times as large as packed"
                raise Unreadable(what, "hand in the folder, not packed")
            file.write(chunk)
    return done


class _Names:
    """The names in an archive.

    folded  refuse two that some file system takes for one: they would be graded differently there. In the export of a
            class one student's names are no reason to refuse the others
    """

    def __init__(self, *, folded: bool) -> None:
        self._folding = folded
        self._kinds: dict[PurePosixPath, bool] = {}
        self._folded: dict[str, PurePosixPath] = {}

    def add(self, path: PurePosixPath, *, is_folder: bool) -> None:
        """Raises Unreadable for a second member of that name, or of a name that differs only in case or in form."""
        for parent in reversed(path.parents[:-1]):
            self._add(parent, is_folder=True)
        if not is_folder and self._kinds.get(path) is False:
            raise Unreadable(f"{_shown(path)} is there twice", "hand in one of them")
        self._add(path, is_folder=is_folder)

    def _add(self, path: PurePosixPath, *, is_folder: bool) -> None:
        other = self._folded.setdefault(unicodedata.normalize("NFC", str(path)).casefold(), path)
        if other != path and self._folding:
            raise Unreadable(f"{_shown(other)} and {_shown(path)} differ only in case", "rename one of them")
        if self._kinds.setdefault(path, is_folder) != is_folder:
            raise Unreadable(f"{_shown(path)} is a file and a folder", "hand in one of them")


def _path(name: str) -> PurePosixPath | None:
    """The relative path of a member; None for what is left out. Raises Unreadable for one that leads elsewhere."""
    plain = name.replace("\\", "/")  # some Windows programs write them
    parts = [part for part in plain.split("/") if part not in ("", ".")]
    if plain.startswith("/") or ".." in parts or (len(plain) > 1 and plain[1] == ":" and plain[0].isalpha()):
        raise Unreadable(f"{printable(name)}: a path that leads out of the archive", "hand in the folders alone")
    if "\0" in name or len(parts) > _DEEPEST:
        raise Unreadable(f"{printable(name)}: not a usable name", "rename it")
    if not parts or _BESIDE in parts:
        return None
    return PurePosixPath(*parts)


def _fitting(path: PurePosixPath) -> PurePosixPath:
    """A path of names that a file can have: a platform writes the student's name before that of the file."""
    return PurePosixPath(*(_cut(part) if len(os.fsencode(part)) > _LONGEST_NAME else part for part in path.parts))


def _cut(name: str) -> str:
    data = os.fsencode(name)
    head, tail = (part.decode(errors="ignore") for part in (data[:180], data[-40:]))
    return f"{head}{hashlib.sha256(data).hexdigest()[:8]}{tail}"


def _shown(path: PurePosixPath) -> str:
    return printable(path)


def discard(folder: Path) -> None:
    """Remove what was unpacked, whatever the modes of its files."""
    shutil.rmtree(folder, ignore_errors=True)
