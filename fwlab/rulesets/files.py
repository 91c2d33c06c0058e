# SPDX-License-Identifier: GPL-2.0-or-later
"""Rulesets on disk: those of a lab, whose templates are rendered, and those of students, which are read as they are.

A submission is never rendered. All files are validated before they are loaded.
"""

import codecs
import errno
import ipaddress
import os
import random
import re
import socket
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import jinja2
import jinja2.meta

from fwlab.model.errors import BadInput
from fwlab.model.printable import printable
from fwlab.model.ruleset import RulesetFile
from fwlab.model.topology import Topology
from fwlab.rulesets.kind import Faults
from fwlab.rulesets.registry import KINDS, files_of, in_loading_order, kind_of, meant, suffixes

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
    return BadInput(f"{where}: {what}", "remove what need not be loaded")


#: Some programs take these for line ends and others do not. No ruleset needs them.
CONTROL = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")

#: A line that only a shell could run. In a file of nft, words such as `tc` may begin a line.
SHELL = re.compile(r"^[ \t]*(sudo|ip6?tables(-\w+)*+|ipset|nft|tc|ethtool|sysctl|xdp-filter|pfctl)[ \t]", re.MULTILINE)
SHELL_IN_NFT = re.compile(r"^[ \t]*(sudo|nft)[ \t]", re.MULTILINE)


def validate(file: RulesetFile, check: Callable[[list[str]], Faults] | None = None) -> None:
    """Raises BadInput with the file's name and line for the first thing that its kind does not allow.

    check  what is asked in place of the kind
    """
    control = CONTROL.search(file.text)
    if control:
        number = file.text.count("\n", 0, control.start()) + 1
        raise BadInput(f"{file.name}:{number}: a control character ({control[0]!r})", "save it with Unix line ends")
    command = (SHELL_IN_NFT if file.kind == "nft" else SHELL).search(file.text)
    if command:
        number = file.text.count("\n", 0, command.start(1)) + 1
        message = f"{file.name}:{number}: `{command[1]}` is a command, and no shell reads this file"
        raise BadInput(
            message, "remove it; guides/student.md says which tool reads a file, and the start shows the syntax"
        )
    for number, fault, hint in (check or KINDS[file.kind].validate)(file.text.split("\n")):
        raise BadInput(f"{file.name}:{number}: {fault}", hint)


def validate_together(files: Sequence[RulesetFile]) -> None:
    """Raises BadInput if files that are allowed one by one are too much for the DUT together."""
    for kind in KINDS.values():
        several = [file for file in files if file.kind == kind.name] if kind.cumulative else []
        text = "\n".join(file.text for file in several)
        for _, fault, hint in kind.validate(text.split("\n")) if len(several) > 1 else ():
            names = ", ".join(file.name for file in several)
            raise BadInput(f"{names} together: {fault}", hint)


def remarks(files: Sequence[RulesetFile]) -> Iterator[str]:
    """What is worth saying of files that are allowed, such as that they add up."""
    for kind in KINDS.values():
        yield from kind.remarks({file.name: file.text for file in files if file.kind == kind.name})


TEMPLATE = ".j2"
ENVIRONMENT: Final = jinja2.Environment(
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
    autoescape=False,  # noqa: S701 - rulesets, not HTML
)


def addresses(count: int, first: str = "10.0.0.1", step: int = 2) -> list[str]:
    """`count` IPv4 addresses from `first` on, every `step`-th.

    With a step of 2 no two of them form a prefix, so no tool can merge them.
    """
    start = int(ipaddress.IPv4Address(first))
    numbers = [start + step * index for index in range(count)]
    if numbers:
        ipaddress.IPv4Address(numbers[-1])  # raises ValueError if the addresses run out
    return [socket.inet_ntoa(number.to_bytes(4, "big")) for number in numbers]  # ten times as fast as ipaddress


def scattered(count: int) -> list[str]:
    """`count` IPv4 addresses: of each two neighbours from 10.64.0.0 on, the one that a fixed seed draws.

    So no range, mask or remainder has the same. labs/common/mix.py sends from some of them.
    """
    chance, start = random.Random(2), int(ipaddress.IPv4Address("10.64.0.0"))
    return [
        socket.inet_ntoa((start + 2 * place + (chance.random() < 0.5)).to_bytes(4, "big")) for place in range(count)
    ]


def render(name: str, text: str, parameters: dict[str, Any], topology: Topology) -> str:
    """Render one template. Raises BadInput with the name of the file and of the undefined variable, or the error."""
    given = {"addresses": addresses, "scattered": scattered, "links": topology.links, **parameters}
    try:
        return _compiled(text).render(given)
    except (TypeError, ValueError, ArithmeticError) as error:
        # Raised by a call inside the template, for example with an undefined count. Python does not name the variable.
        used = jinja2.meta.find_undeclared_variables(ENVIRONMENT.parse(text))
        unknown = sorted(used - {*given, *ENVIRONMENT.globals})
        words = [f"'{word}' is undefined" for word in unknown] or [str(error)]
        raise BadInput(f"{name}: {', '.join(words)}", "give the parameter in lab.yml or fix the template") from error
    except jinja2.TemplateError as error:
        raise BadInput(f"{name}: {error}", "give the parameter in lab.yml or fix the template") from error


@lru_cache(maxsize=256)  # more than any lab has: grading renders each of them several times
def _compiled(text: str) -> jinja2.Template:
    return ENVIRONMENT.from_string(text)


def unvalidated_file(name: str, text: str) -> RulesetFile:
    """A file; its name says of which kind. Raises BadInput if no tool loads it."""
    kind = kind_of(name)
    if kind is None:
        raise BadInput(f"{name}: no tool loads such a file", f"use one of: {suffixes()}")
    return RulesetFile(name, kind.name, text)


@lru_cache(maxsize=8)  # a lab's ruleset is asked for several times, and a list of 265 000 addresses takes a while
def ruleset_file(name: str, text: str) -> RulesetFile:
    """A validated file. Raises BadInput if no tool loads it, or validation fails."""
    file = unvalidated_file(name, text)
    validate(file)
    return file
