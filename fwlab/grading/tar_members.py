# SPDX-License-Identifier: GPL-2.0-or-later
"""The members of a .tar.gz."""

import gzip
import re
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO

from fwlab.grading.archive_members import CHUNK, SMALL, Limits, Member, Unreadable
from fwlab.model.printable import printable

#: Bytes of a long name or of other attributes, which tarfile reads into memory.
_LONGEST_HEADER = 1 << 16
#: Digits in a row among attributes. Before Python 3.11.10, tarfile's time grows with their square (CVE-2024-6232).
_MOST_DIGITS = 32


class TarMembers(AbstractContextManager["Iterator[Member]"]):
    """The members of a .tar.gz. The stream is expanded to a file first, so that no header can claim more than that."""

    def __init__(self, archive: Path, limits: Limits) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed in __exit__
        try:
            _expand(archive, self._file, limits)
            self._tar = tarfile.open(fileobj=self._file, mode="r:", tarinfo=_Header)  # noqa: SIM115 - see __exit__
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Iterator[Member]:
        return map(self._member, self._tar)

    def __exit__(self, *_: object) -> None:
        self._tar.close()
        self._file.close()

    def _member(self, info: tarfile.TarInfo) -> Member:
        if info.isdir():
            return Member(info.name, None)
        if not info.isreg() or info.issparse() or info.size < 0:
            kind = "a link" if info.islnk() or info.issym() else "a device" if info.isdev() else "not a plain file"
            raise Unreadable(f"{printable(info.name)}: {kind}", "hand in plain files")
        return Member(info.name, lambda: _opened(self._tar, info))


class _Header(tarfile.TarInfo):
    """A header of limited length, and not of a file with holes: their list may be as long as the archive."""

    def _proc_pax(self, tar: tarfile.TarFile) -> tarfile.TarInfo:
        self._refuse_long()
        file: IO[bytes] = tar.fileobj  # type: ignore[assignment]  # it is open
        place = file.tell()
        _refuse_odd_records(file.read(self.size))
        file.seek(place)
        made: tarfile.TarInfo = super()._proc_pax(tar)  # type: ignore[misc]  # not in the type stubs
        return made

    def _proc_gnulong(self, tar: tarfile.TarFile) -> tarfile.TarInfo:
        self._refuse_long()
        made: tarfile.TarInfo = super()._proc_gnulong(tar)  # type: ignore[misc]
        return made

    def _no_holes(self, *_: object) -> tarfile.TarInfo:
        raise tarfile.HeaderError("a sparse file")

    _proc_sparse = _proc_gnusparse_00 = _proc_gnusparse_01 = _proc_gnusparse_10 = _no_holes

    def _refuse_long(self) -> None:
        if not 0 <= self.size <= _LONGEST_HEADER:
            raise tarfile.HeaderError(f"a header of {self.size} bytes")


def _refuse_odd_records(data: bytes) -> None:
    """Attributes are records, `LENGTH KEY=VALUE` and a line end each. tarfile searches others again and again."""
    if max(map(len, re.findall(rb"\d+", data)), default=0) > _MOST_DIGITS:
        raise tarfile.HeaderError(f"a header with a number of more than {_MOST_DIGITS} digits")
    place = 0
    while place < len(data):
        length, blank, _ = data[place : place + _MOST_DIGITS].partition(b" ")
        record = data[place : place + int(length)] if blank and length.isdigit() else b""
        if b"=" not in record or not record.endswith(b"\n") or len(record) != int(length):
            raise tarfile.HeaderError("a header that is no list of attributes")
        place += len(record)


def _opened(tar: tarfile.TarFile, info: tarfile.TarInfo) -> IO[bytes]:
    file = tar.extractfile(info)
    if file is None:
        raise Unreadable(f"{printable(info.name)}: not a plain file", "hand in plain files")
    return file


def _expand(archive: Path, to: IO[bytes], limits: Limits) -> None:
    """The tar behind the gzip, with as much room for headers as its members may need."""
    most = limits.total + limits.members * 4096
    with gzip.open(archive) as packed:
        while chunk := packed.read(CHUNK):
            to.write(chunk)
            size = to.tell()
            if size > most:
                raise Unreadable(f"more than {limits.total >> 20} MiB unpacked", "hand in the rulesets alone")
            if size > 16 * SMALL and size > limits.ratio * max(archive.stat().st_size, 1):
                raise Unreadable(f"more than {limits.ratio} times as large as packed", "hand in the folder, not packed")
    to.seek(0)
