# SPDX-License-Identifier: GPL-2.0-or-later
"""Unpack a stranger's .zip or .tar.gz. Only folders and plain files are made, and only below one folder.

This runs in a child process (confined.py), whose limits bound the time and the memory that an archive's own headers
cost. Here the number of files and their sizes are bounded, by what is read and not by what the archive claims.
"""

import gzip
import hashlib
import os
import stat
import tarfile
import unicodedata
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from fwlab.grading.confined import DiskFull, disk_full
from fwlab.model.errors import BadInput
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
#: Bytes that are read at a time, and up to which no ratio is asked for: a small file of equal lines is no bomb.
CHUNK = 1 << 20
#: The folder that macOS adds to archives. It is left out, at any depth.
_MACOS = "__MACOSX"
#: Folders inside folders, and bytes of a name.
_MAX_DEPTH, _MAX_NAME = 32, 255
_DOS_FOLDER, _UTF8 = 0x10, 0x800
#: What a damaged archive makes the standard library raise.
_DAMAGED = (
    zipfile.BadZipFile, tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError, ValueError, NotImplementedError,
    IndexError, KeyError, OverflowError, RuntimeError,
)  # fmt: skip


@dataclass(frozen=True)
class Limits:
    """How much an archive may hold: files and folders, bytes unpacked, bytes of one file, and unpacked per packed."""

    members: int
    total: int
    file: int
    ratio: int = 200


#: What one student hands in, and the export of a whole class.
STUDENT = Limits(members=2000, total=512 << 20, file=64 << 20)
EXPORT = Limits(members=50_000, total=4 << 30, file=512 << 20)


class Unreadable(BadInput):
    """An archive, or something in it, cannot be unpacked. It costs only the student who handed it in."""


#: One entry of an archive: its name, and its contents; None for a folder.
Member = tuple[str, IO[bytes] | None]


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
    """Unpack into `folder`, which is made. Raises Unreadable with the reason, and DiskFull for a full disk.

    What was written before an error stays there; the caller removes the folder.
    """
    members = _of_zip if archive.name.lower().endswith(".zip") else _of_tar
    try:
        found = archive.lstat()
        if not stat.S_ISREG(found.st_mode):
            raise Unreadable("not a plain file", "hand in the archive itself")
        if found.st_size > limits.total:
            raise Unreadable(f"more than {limits.total >> 20} MiB", "hand in the rulesets alone")
        folder.mkdir(parents=True)
        _write(members(archive), folder, limits, found.st_size)
    except _DAMAGED as error:
        raise Unreadable(f"damaged archive: {printable(error) or type(error).__name__}", "hand it in again") from error
    except OSError as error:
        if disk_full(error):
            raise DiskFull.at(folder, error) from error
        raise Unreadable(f"cannot be unpacked: {error.strerror or type(error).__name__}", "hand it in again") from error


def _of_zip(archive: Path) -> Iterator[Member]:
    with zipfile.ZipFile(archive) as packed:
        for info in packed.infolist():
            name, kind = _name_in_zip(info), stat.S_IFMT(info.external_attr >> 16)
            if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise _special(name)
            is_folder = name.endswith(("/", "\\")) or info.external_attr & _DOS_FOLDER or kind == stat.S_IFDIR
            yield name, None if is_folder else packed.open(info)


def _name_in_zip(info: zipfile.ZipInfo) -> str:
    """The name as text. Without the flag for UTF-8 it is code page 437, but most programs write UTF-8 nevertheless."""
    try:
        return info.orig_filename if info.flag_bits & _UTF8 else info.orig_filename.encode("cp437").decode("utf-8")
    except UnicodeError:
        return info.orig_filename


def _of_tar(archive: Path) -> Iterator[Member]:
    with tarfile.open(archive, "r|gz") as packed:  # a stream: no header leads back
        for info in packed:
            if not (info.isdir() or (info.isreg() and not info.issparse() and info.size >= 0)):
                raise _special(info.name)
            yield info.name, packed.extractfile(info)  # None for a folder


def _special(name: str) -> Unreadable:
    return Unreadable(f"{printable(name)}: a link or a special file", "hand in plain files")


def _write(members: Iterator[Member], folder: Path, limits: Limits, packed: int) -> None:
    """Write the members, each new name once. `packed` is the size of the archive."""
    known: dict[str, tuple[PurePosixPath, bool]] = {}
    total = 0
    for number, (name, source) in enumerate(members, 1):
        if number > limits.members:
            raise Unreadable(f"more than {limits.members} files and folders", "hand in the rulesets alone")
        path = _path(name, shorten=limits is EXPORT)
        if path is None:
            continue
        # In the export of a class, one student's names are no reason to refuse the others.
        _claim(path, known, is_folder=source is None, folded=limits is not EXPORT)
        target = folder / path
        (target if source is None else target.parent).mkdir(parents=True, exist_ok=True)
        if source is not None:
            with source:
                total = _copy(source, target, printable(path), limits, total, packed)


def _copy(source: IO[bytes], target: Path, name: str, limits: Limits, total: int, packed: int) -> int:
    """Copy one file. `total` bytes were written before; returns those after it."""
    size = 0
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(target, flags, 0o600), "wb") as file:
        while chunk := source.read(CHUNK):
            size += len(chunk)
            if size > limits.file:
                raise Unreadable(f"{name}: more than {limits.file >> 20} MiB", "use a set")
            if total + size > limits.total:
                raise Unreadable(f"more than {limits.total >> 20} MiB unpacked", "hand in the rulesets alone")
            if total + size > max(CHUNK, limits.ratio * packed):
                what = f"{name}: more than {limits.ratio} times as large as packed"
                raise Unreadable(what, "hand in the folder, not packed")
            file.write(chunk)
    return total + size


def _claim(path: PurePosixPath, known: dict[str, tuple[PurePosixPath, bool]], *, is_folder: bool, folded: bool) -> None:
    """Raise Unreadable for a second file of this name, or one that is also a folder.

    folded  also for a name that some file system takes for the same: it would be graded differently there
    """
    for part in (*reversed(path.parents[:-1]), path):
        key = unicodedata.normalize("NFC", str(part)).casefold() if folded else str(part)
        now = part, is_folder or part != path
        before = known.get(key)
        if before is not None and before[0] != part:
            raise Unreadable(f"{printable(before[0])} and {printable(part)} differ only in case", "rename one of them")
        if before is not None and before[1] != now[1]:
            raise Unreadable(f"{printable(part)} is a file and a folder", "hand in one of them")
        if before is not None and not now[1]:
            raise Unreadable(f"{printable(part)} appears twice", "hand in one of them")
        known[key] = now


def _path(name: str, *, shorten: bool) -> PurePosixPath | None:
    """The relative path of a member; None for what is left out. Raises Unreadable for one that leads elsewhere.

    shorten  names that no file can have: a platform writes the student's name before that of the file
    """
    plain = name.replace("\\", "/")  # some Windows programs write them
    parts = [part for part in plain.split("/") if part not in ("", ".")]
    if plain.startswith("/") or ".." in parts or (len(plain) > 1 and plain[1] == ":" and plain[0].isalpha()):
        raise Unreadable(f"{printable(name)}: a path that leads out of the archive", "hand in the folders alone")
    if "\0" in name or len(parts) > _MAX_DEPTH:
        raise Unreadable(f"{printable(name)}: not a usable name", "rename it")
    if not parts or _MACOS in parts:
        return None
    return PurePosixPath(*map(_shortened, parts) if shorten else parts)


def _shortened(name: str) -> str:
    data = os.fsencode(name)
    if len(data) <= _MAX_NAME:
        return name
    head, tail = (part.decode(errors="ignore") for part in (data[:180], data[-40:]))
    return f"{head}{hashlib.sha256(data).hexdigest()[:8]}{tail}"
