# SPDX-License-Identifier: GPL-2.0-or-later
"""Rulesets on disk: those of a lab, whose templates are rendered, and those of students, which are read as they are."""

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from fwlab.model.errors import BadInput
from fwlab.model.printable import printable
from fwlab.model.ruleset import RulesetFile
from fwlab.model.topology import Topology
from fwlab.rulesets.registry import in_loading_order, kind_of
from fwlab.rulesets.render import TEMPLATE, render, ruleset_file, unvalidated_file
from fwlab.rulesets.validation import validate_together

#: Largest file. A list of 265 000 entries has about 8 MB.
LARGEST_FILE = 32 << 20
#: Largest sum of all files of a submission, and how many there may be: more would only fill a disk.
LARGEST_SUM = 64 << 20
MOST_FILES = 64
#: Longest path in a message. It includes the folder of the class.
LONGEST_PATH = 400
#: Notes that a student's folder may hold beside rulesets.
NOTES = {".md", ".txt"}


def lab_ruleset(folder: Path, parameters: dict[str, Any], topology: Topology) -> list[RulesetFile]:
    """A ruleset of the lab, rendered and validated, in loading order."""
    return in_loading_order([ruleset_file(*text) for text in rendered(folder, parameters, topology)])


def systems_in(folder: Path) -> set[str]:
    """The systems whose tools load the folder's files; empty if it has none that a tool loads, or is not there."""
    if not folder.is_dir():
        return set()
    kinds = [kind_of(path.name.removesuffix(TEMPLATE)) for path in folder.iterdir() if _is_ruleset(path.name)]
    return {kind.system for kind in kinds if kind is not None}


def rendered(folder: Path, parameters: dict[str, Any], topology: Topology) -> Iterator[tuple[str, str]]:
    """Names and rendered texts of a lab's ruleset, not validated."""
    for name, data in plain_files(folder):
        if not name.isprintable():  # control characters and invalid bytes would reach a terminal
            raise BadInput(f"{folder}: the name of a file is not plain text: {name!a}", "rename it")
        text = _text(folder, name, data)
        if name.endswith(TEMPLATE):
            text = render(f"{folder.name}/{name}", text, parameters, topology)
        yield name.removesuffix(TEMPLATE), text


def student_ruleset(folder: Path) -> list[RulesetFile]:
    """A student's ruleset: regular files only. Nothing is rendered or run, and no link is followed."""
    return texts_of(folder, plain_files(folder))


def texts_of(folder: Path, files: Iterable[tuple[str, bytes]], *, validated: bool = False) -> list[RulesetFile]:
    """These files as text in loading order, validated unless they were. Windows line endings become Unix ones.

    Raises BadInput if a file is not text, no tool loads it, or validation fails.
    """
    made = unvalidated_file if validated else ruleset_file
    ordered = in_loading_order([made(printable(name), _text(folder, name, data)) for name, data in files])
    if not validated:
        validate_together(ordered)
    return ordered


def _text(folder: Path, name: str, data: bytes) -> str:
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        where = printable(folder / name, LONGEST_PATH)
        raise BadInput(f"{where}: not text (byte {error.start})", "save it as UTF-8") from error


def plain_files(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Name and bytes of each file to be loaded. Raises BadInput for links and folders, and if there is too much.

    Every file is opened once, relative to the folder that was opened, and the opened file is checked. So nothing is
    followed even if somebody changes the folder meanwhile.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        handle = os.open(folder, flags | os.O_DIRECTORY)
    except PermissionError as error:
        raise BadInput(f"{printable(folder, LONGEST_PATH)}: {error.strerror}", "make it readable") from error
    except OSError as error:
        raise BadInput(f"no folder {printable(folder, LONGEST_PATH)}", "fwlab list") from error
    try:
        names = sorted(name for name in os.listdir(handle) if _is_ruleset(name))  # noqa: PTH208 - an open folder
        if len(names) > MOST_FILES:
            raise _too_much(folder, f"{len(names)} files; an exercise has at most {MOST_FILES}")
        room = LARGEST_SUM
        for name in names:
            data = _bytes_of(folder, name, handle, flags)
            room -= len(data)
            if room < 0:
                raise _too_much(folder, f"more than {LARGEST_SUM >> 20} MiB; an exercise has at most that")
            yield name, data
    finally:
        os.close(handle)


def _is_ruleset(name: str) -> bool:
    """Hidden files, an editor's backups and notes are none. `rules.nft.txt` is: its author must learn that no tool
    loads it."""
    note = Path(name).suffix in NOTES and kind_of(Path(name).stem) is None
    return not (note or name.startswith(".") or name.endswith("~"))


def _bytes_of(folder: Path, name: str, handle: int, flags: int) -> bytes:
    where = printable(folder / name, LONGEST_PATH)
    try:
        # Non-blocking: a pipe that nobody writes to would stop the grading for ever.
        opened = os.open(name, flags | os.O_NONBLOCK, dir_fd=handle)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):  # a link; a socket
            raise _no_plain_file(where, name) from error
        raise BadInput(f"{where}: {error.strerror}", "make it readable, or remove it") from error
    try:
        size = os.fstat(opened).st_size
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            raise _no_plain_file(where, name)
        with os.fdopen(opened, "rb", closefd=False) as file:
            data = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise BadInput(f"{where}: {error.strerror}", "hand it in again") from error
    finally:
        os.close(opened)
    if len(data) > LARGEST_FILE:
        most = LARGEST_FILE >> 20
        raise BadInput(f"{where}: {max(size, len(data)) >> 20} MiB; a ruleset file has at most {most}", "use a set")
    return data


def _no_plain_file(where: str, name: str) -> BadInput:
    return BadInput(f"{where}: a ruleset is plain files, no links, no folders", f"remove {printable(name)}")


def _too_much(folder: Path, what: str) -> BadInput:
    return BadInput(f"{printable(folder, LONGEST_PATH)}: {what}", "leave out what need not be loaded")
