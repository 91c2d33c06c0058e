# SPDX-License-Identifier: GPL-2.0-or-later
"""The members of a .zip."""

import stat
import zipfile
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from fwlab.grading.archive_members import CHUNK, Limits, Member, Unreadable
from fwlab.model.printable import printable

#: Methods of compression; others would need memory that the archive chooses.
_METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
_ENCRYPTED, _UTF8 = 0x1, 0x800
_DOS_FOLDER = 0x10
#: How an entry in the directory of a zip begins.
_DIRECTORY = b"PK\x01\x02"


class ZipMembers(AbstractContextManager["Iterator[Member]"]):
    """The members, while the archive is open."""

    def __init__(self, archive: Path, limits: Limits) -> None:
        _refuse_long_directory(archive, limits)
        self._zip = zipfile.ZipFile(archive)

    def __enter__(self) -> Iterator[Member]:
        return map(self._member, self._zip.infolist())

    def __exit__(self, *_: object) -> None:
        self._zip.close()

    def _member(self, info: zipfile.ZipInfo) -> Member:
        name = _zip_name(info)
        kind = stat.S_IFMT(info.external_attr >> 16)
        if info.flag_bits & _ENCRYPTED:
            raise Unreadable(f"{printable(name)} is encrypted", "hand it in without a password")
        if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
            raise Unreadable(f"{printable(name)}: {_KINDS.get(kind, 'not a plain file')}", "hand in plain files")
        if name.endswith(("/", "\\")) or info.external_attr & _DOS_FOLDER or kind == stat.S_IFDIR:
            return Member(name, None)
        if info.compress_type not in _METHODS:
            raise Unreadable(f"{printable(name)}: an unusual compression", "pack it as an ordinary .zip")
        return Member(name, lambda: self._zip.open(info), info.compress_size)


def _refuse_long_directory(archive: Path, limits: Limits) -> None:
    """zipfile reads the whole directory before it names one member. An archive in the archive has some of its own."""
    found, rest = 0, b""
    with archive.open("rb") as file:
        while chunk := file.read(CHUNK):
            found += (rest + chunk).count(_DIRECTORY)
            rest = chunk[1 - len(_DIRECTORY) :]
    if found > 4 * limits.members:
        raise Unreadable(f"more than {limits.members} files and folders", "hand in the rulesets alone")


_KINDS = {stat.S_IFLNK: "a link", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device", stat.S_IFIFO: "a pipe",
          stat.S_IFSOCK: "a socket"}  # fmt: skip


def _zip_name(info: zipfile.ZipInfo) -> str:
    """The name as text. Without the flag for UTF-8 it is code page 437, but most programs write UTF-8 nevertheless."""
    if info.flag_bits & _UTF8:
        return info.orig_filename
    try:
        return info.orig_filename.encode("cp437").decode("utf-8")
    except UnicodeError:
        return info.orig_filename
