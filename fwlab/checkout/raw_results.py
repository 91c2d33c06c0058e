# SPDX-License-Identifier: GPL-2.0-or-later
"""Raw results: JSON documents, plain in reports/, compressed under results/, where all of them are kept for good."""

import errno
import gzip
import zlib
from pathlib import Path

from fwlab.checkout.atomic_write import write_atomically
from fwlab.checkout.project import Project

#: How the names of documents under results/ end. `zcat` shows one.
SUFFIX = ".json.gz"
#: A complete run takes about 2 MiB.
MAX_FILE = 64 << 20


def raw_result(project: Project, name: str) -> Path:
    """Where the document of this name is kept, such as LAB/published."""
    return project.root / "results" / f"{name}{SUFFIX}"


def raw_results(project: Project, form: str) -> list[Path]:
    """The documents whose names have this form, such as LAB/*, sorted."""
    return sorted((project.root / "results").glob(f"{form}{SUFFIX}"))


def name_of(path: Path) -> str:
    """The document's name: that of its file without .json or .json.gz."""
    return path.name.removesuffix(".gz").removesuffix(".json")


def read_document(path: Path) -> bytes:
    """The text of a document, which is compressed if the file's name says so. Raises OSError; also beyond MAX_FILE."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            text = file.read(MAX_FILE + 1)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise OSError(errno.EBADMSG, "not a complete gzip file") from error
    if len(text) > MAX_FILE:
        raise OSError(errno.EFBIG, f"more than {MAX_FILE >> 20} MiB")
    return text


def write_document(path: Path, text: str) -> Path:
    """Write a document, compressed if the name says so. The same text makes the same file: it has no time in it."""
    data = text.encode()
    return write_atomically(path, gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
