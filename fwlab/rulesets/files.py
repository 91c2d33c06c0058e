# SPDX-License-Identifier: GPL-2.0-or-later
"""Rulesets on disk: those of a lab, whose templates are rendered, and those of students, which are read as they are."""

import codecs
import errno
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from fwlab.model.errors import BadInput
from fwlab.model.printable import printable
from fwlab.model.ruleset import RulesetFile
from fwlab.model.topology import Topology
from fwlab.rulesets.registry import files_of, in_loading_order, kind_of, meant
from fwlab.rulesets.render import TEMPLATE, render, ruleset_file, unvalidated_file
from fwlab.rulesets.validation import validate_together

#: Largest file. A list of 265 000 entries has about 8 MB.
MAX_FILE_BYTES = 32 << 20
#: Largest sum of all files of a submission, and how many there may be: more would only fill a disk.
MAX_SUM_BYTES = 64 << 20
MAX_FILES = 64
#: Longest path in a message. It includes the folder of the class.
MAX_PATH = 400
#: Suffixes of notes in the folder of a lab's ruleset; they are not loaded.
NOTES = {".md", ".txt"}
#: Backups that editors make of a file.
_BACKUP = re.compile(r"#.*#|.*(~|\.(bak|old|orig|save|swp|tmp))", re.IGNORECASE | re.DOTALL)
#: Files that are not loaded and are named in one message.
MAX_NAMED = 8


def lab_ruleset(folder: Path, parameters: dict[str, Any], topology: Topology) -> list[RulesetFile]:
    """A ruleset of the lab, rendered and validated, in loading order."""
    return in_loading_order([ruleset_file(*text) for text in rendered(folder, parameters, topology)])


def systems_in(folder: Path) -> set[str]:
    """The systems whose tools load the folder's files; empty if it has none that a tool loads, or is not there."""
    if not folder.is_dir():
        return set()
    kinds = [kind_of(path.name.removesuffix(TEMPLATE)) for path in folder.iterdir() if _of_lab(path.name)]
    return {kind.system for kind in kinds if kind is not None}


def rendered(folder: Path, parameters: dict[str, Any], topology: Topology) -> Iterator[tuple[str, str]]:
    """Names and rendered texts of a lab's ruleset, not validated."""
    for name, data in plain_files(folder, str(folder), _of_lab):
        if not name.isprintable():  # control characters and invalid bytes would reach a terminal
            raise BadInput(f"{folder}: the name of a file is not plain text: {name!a}", "rename it")
        text = _text(f"{folder.name}/{name}", data)
        if name.endswith(TEMPLATE):
            text = render(f"{folder.name}/{name}", text, parameters, topology)
        yield name.removesuffix(TEMPLATE), text


def _of_lab(name: str) -> bool:
    """Whether a file in a lab's folder is to be loaded. One that no tool loads is an error there."""
    return Path(name).suffix not in NOTES and not name.startswith(".") and not name.endswith("~")


def student_ruleset(folder: Path) -> list[RulesetFile]:
    """A student's ruleset: regular files only. Nothing is rendered or run, and no link is followed."""
    return texts_of(plain_files(folder, folder.name))


def texts_of(files: Iterable[tuple[str, bytes]], *, validated: bool = False) -> list[RulesetFile]:
    """These files as text in loading order, validated unless they were. Windows line endings become Unix ones.

    Raises BadInput if a file is not text, no tool loads it, or validation fails.
    """
    made = unvalidated_file if validated else ruleset_file
    ordered = in_loading_order([made(printable(name), _text(printable(name), data)) for name, data in files])
    if not validated:
        validate_together(ordered)
    return ordered


def _text(name: str, data: bytes) -> str:
    if data[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) or b"\0" in data[:2]:
        raise _no_text(name, 0, " (it seems to be UTF-16)")
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise _no_text(name, error.start) from error


def _no_text(name: str, place: int, seems: str = "") -> BadInput:
    return BadInput(f"{name}: not text (byte {place}): save it as UTF-8{seems}", "save it as UTF-8")


def is_loaded(name: str) -> bool:
    """Whether a tool loads a student's file of this name."""
    return kind_of(name) is not None and not name.startswith(".")


def not_loaded(folder: Path) -> list[str]:
    """The names of what is in a student's folder and is not loaded; none if the folder cannot be read.

    That of a folder ends in a slash.
    """
    try:
        with os.scandir(folder) as found:
            return sorted(
                f"{one.name}/" if one.is_dir(follow_symlinks=False) else one.name
                for one in found
                if not is_loaded(one.name)
            )
    except OSError:
        return []


def with_reasons(names: Sequence[str]) -> str:
    """The names of files that no tool loads, each with the reason."""
    more = [f"and {len(names) - MAX_NAMED} more"] if len(names) > MAX_NAMED else []
    return ", ".join([*(f"{printable(name)} ({_why(name)})" for name in names[:MAX_NAMED]), *more])


def _why(name: str) -> str:
    if name.startswith("."):
        return "hidden: it begins with a dot"
    if name.endswith("/"):
        return "a folder"
    if _BACKUP.fullmatch(name):
        return "a backup"
    ending, kind = Path(name).suffix, meant(name)
    why = f"no tool loads *{printable(ending)}" if ending else "no tool loads a file without a suffix"
    if kind is None:
        return why
    tool = kind.loader.tool[0] if kind.loader is not None and kind.loader.tool else kind.name
    return f"{why}; {tool} loads {files_of(kind)}"


def plain_files(folder: Path, where: str, wanted: Callable[[str], bool] = is_loaded) -> Iterator[tuple[str, bytes]]:
    """Name and bytes of each file of a wanted name. Raises BadInput for links and folders, and if there is too much.

    `where` is the folder's name in messages. Every file is opened once, relative to the folder that was opened, and the
    opened file is checked. So nothing is followed even if somebody changes the folder meanwhile.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
    where = printable(where, MAX_PATH)
    try:
        handle = os.open(folder, flags | os.O_DIRECTORY)
    except PermissionError as error:
        raise BadInput(f"{where}: {error.strerror}", "make it readable") from error
    except OSError as error:
        raise BadInput(f"no folder {where}", "fwlab list") from error
    try:
        names = sorted(name for name in os.listdir(handle) if wanted(name))  # noqa: PTH208 - an open folder
        if len(names) > MAX_FILES:
            raise _too_much(where, f"{len(names)} files; an exercise has at most {MAX_FILES}")
        room = MAX_SUM_BYTES
        for name in names:
            data = _bytes_of(name, handle, flags)
            room -= len(data)
            if room < 0:
                raise _too_much(where, f"more than {MAX_SUM_BYTES >> 20} MiB; an exercise has at most that")
            yield name, data
    finally:
        os.close(handle)


def _bytes_of(name: str, handle: int, flags: int) -> bytes:
    shown = printable(name)
    try:
        # Non-blocking: a pipe without a writer would block the grading forever.
        opened = os.open(name, flags | os.O_NONBLOCK, dir_fd=handle)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):  # a link; a socket
            raise _no_plain_file(shown) from error
        raise BadInput(f"{shown}: {error.strerror}", "make it readable, or remove it") from error
    try:
        size = os.fstat(opened).st_size
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            raise _no_plain_file(shown)
        with os.fdopen(opened, "rb", closefd=False) as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise BadInput(f"{shown}: {error.strerror}", "hand it in again") from error
    finally:
        os.close(opened)
    if len(data) > MAX_FILE_BYTES:
        most = MAX_FILE_BYTES >> 20
        raise BadInput(f"{shown}: {max(size, len(data)) >> 20} MiB; a ruleset file has at most {most}", "use a set")
    return data


def _no_plain_file(name: str) -> BadInput:
    return BadInput(f"{name}: a ruleset is plain files, no links, no folders", f"remove {name}")


def _too_much(where: str, what: str) -> BadInput:
    return BadInput(f"{where}: {what}", "leave out what need not be loaded")
