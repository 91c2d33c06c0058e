# SPDX-License-Identifier: GPL-2.0-or-later
"""The students in what an instructor has of a class: a folder, or an archive, as it is or as an LMS exports it.

Each entry is somebody's by its name (class_names.py). One that is odd costs its own student at most, and is told.
Gradescope's submission_metadata.yml gives the names of its folders.
"""

import contextlib
import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from fwlab.grading.archive_members import EXPORT, STUDENT, Unreadable
from fwlab.grading.archives import UNPACKED, discard, is_archive, is_packed, unpack
from fwlab.grading.class_names import Owner, owner_of
from fwlab.grading.confined import returned
from fwlab.grading.gradescope import METADATA, Submitters, read_metadata
from fwlab.model.errors import BadInput
from fwlab.model.printable import printable
from fwlab.rulesets.files import LONGEST_PATH
from fwlab.rulesets.registry import kind_of, meant

#: Files that some version of pytest reads as its configuration, or runs.
CONFIGURATION = frozenset(
    {
        *(f"{dot}pytest.{kind}" for dot in ("", ".") for kind in ("ini", "toml")),
        *("pyproject.toml", "tox.ini", "setup.cfg", "setup.py", "conftest.py"),
    }
)
_WHAT_IT_IS = "give --submissions the folder that holds one folder per student"
#: The folder of a student's archive while it is unpacked.
INSIDE = "student"
#: How deep exercises may lie in what a student hands in, and how many folders are searched for them.
_DEEPEST, _MOST_FOLDERS = 4, 2000
#: A part of the name of an exercise, or of a folder.
_PART = re.compile(r"[^\W_]+")
#: Odd entries that are told one by one.
_MOST_TOLD = 40


#: The folder in Gradescope's archive. A student's folder may hold a file of any name, so that tells nothing.
EXPORT_NAME = re.compile(r"assignment_\d+_export")


@dataclass(frozen=True)
class Student:
    """One student of a class.

    id         the name in marks, tests and reports
    paths      what was handed in: a folder, an archive, or several files that have the same owner
    name       as the export writes it
    handed_in  when, if the export says so
    refused    why none of it can be read
    """

    id: str
    paths: tuple[Path, ...] = field(repr=False)
    name: str = ""
    handed_in: datetime | None = None
    refused: str | None = None

    @property
    def source(self) -> str:
        """What it was handed in as, for a report."""
        return printable(" ".join(path.name for path in self.paths))


def shown(path: Path) -> str:
    """A path for a message."""
    return printable(path, LONGEST_PATH)


@contextlib.contextmanager
def class_at(path: Path, scratch: Path) -> Iterator[Path]:
    """The folder of the class; an export that is one archive is unpacked into `scratch` meanwhile, by a child process.

    Raises BadInput naming the archive, NoRoom, and CannotMeasure for an error of ours.
    """
    if not (is_archive(path.name) and path.is_file() and not path.is_symlink()):
        yield path
        return
    inside = scratch / "export"
    hint = "download it again; or unpack it, remove what is refused, and name the folder"

    def unpacked() -> None:
        try:
            unpack(path, inside, EXPORT)
        except Unreadable as error:
            raise BadInput(f"{shown(path)}: {error.message}", hint) from error

    try:
        returned(unpacked, path.stat().st_size, shown(path), hint)
        yield inside
    finally:
        discard(inside)


def students_in(folder: Path, named: Path, tell: Callable[[str], object] = lambda _: None) -> list[Student]:
    """Everybody who handed something in, in the order of their names. `named` is the folder's name in messages.

    tell  is given one message with everything that is odd
    Raises BadInput if there is nobody, and for a file that pytest could run.
    """
    _refuse_configuration(folder, named)
    folder = _export_inside(folder)
    _refuse_configuration(folder, named)
    entries = _entries(folder, named)
    metadata = read_metadata(folder / METADATA)
    owned: dict[str, list[tuple[Owner, Path]]] = {}
    texts: dict[str, str] = {}
    odd: list[str] = []
    for path in entries:
        owner = owner_of(path.name, is_folder=path.is_dir())
        if owner is None and path.name != METADATA:
            odd.append(f"{printable(path.name)}: not read: neither a student's folder nor an archive")
        elif owner is not None and owner.text:
            texts[owner.id] = f"{printable(path.name)}: not read: an online text, and nothing else is of {owner.id}"
        elif owner is not None:
            owned.setdefault(owner.id, []).append((owner, path))
    students = [_student(owned[own], metadata) for own in sorted(owned)]
    odd += [text for own, text in texts.items() if own not in owned]
    odd += [f"{student.id}: submission cannot be read: {student.refused}" for student in students if student.refused]
    for own, having in owned.items():
        if any(owner.late for owner, _ in having):
            odd.append(f"{own}: handed in late, and the export does not say when; handed_in in course.yml can")
    if odd:
        more = [f"and {len(odd) - _MOST_TOLD} more"] if len(odd) > _MOST_TOLD else []
        told = "\n  ".join([f"{shown(named)}: odd, and nobody else is affected:", *odd[:_MOST_TOLD], *more])
        tell(f"{told}\n  next: rename, unpack or remove these, and grade again with --resume")
    if not students:
        what = f"has no student's folder or archive; there is: {odd[0]}" if odd else "is empty"
        raise BadInput(f"{shown(named)} {what}", "put one folder per student into it")
    return students


def _student(having: list[tuple[Owner, Path]], metadata: dict[str, Submitters]) -> Student:
    """One student, of whom are all these entries."""
    owners, paths = [owner for owner, _ in having], tuple(path for _, path in having)
    who = metadata.get(paths[0].name, Submitters())
    refused = _why_not_read(paths)
    if len(having) > 1 and not (all(owner.of_several for owner in owners) and len({o.name for o in owners}) == 1):
        refused = f"{' and '.join(printable(path.name) for path in paths[:3])} are both of {owners[0].id}"
    return Student(owners[0].id, paths, who.names or owners[0].name, who.created_at, refused)


def _why_not_read(paths: Sequence[Path]) -> str | None:
    """Why what a student handed in is not opened; None for a folder, or if one of the files is an archive."""
    for path in paths:
        mode = path.lstat().st_mode
        if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
            return f"{printable(path.name)}: {'a link' if stat.S_ISLNK(mode) else 'no plain file'}, which is not read"
    if paths[0].is_dir() or len([path for path in paths if is_archive(path.name)]) == 1:
        return None
    return _not_one([path for path in paths if is_archive(path.name)], paths)


def _not_one(packed: Sequence[Path], paths: Sequence[Path]) -> str:
    """What was handed in in place of one archive."""
    names = ", ".join(printable(path.name) for path in (packed or paths)[:5])
    if not packed and (unread := [path for path in paths if is_packed(path.name)]):
        return f"{printable(unread[0].name)}: {UNPACKED}"
    what = f"{len(packed)} archives" if packed else f"{len(paths)} loose files"
    return f"{what}, where one archive or a folder per exercise belongs: {names}"


def _entries(folder: Path, named: Path) -> list[Path]:
    try:
        entries = sorted(folder.iterdir())
    except NotADirectoryError as error:
        raise BadInput(f"{shown(named)}: not a folder", _WHAT_IT_IS) from error
    except FileNotFoundError as error:
        raise BadInput(f"no folder {shown(named)}", _WHAT_IT_IS) from error
    except OSError as error:
        raise BadInput(f"{shown(named)}: {error.strerror}", _WHAT_IT_IS) from error
    return [path for path in entries if not path.name.startswith((".", "__MACOSX"))]


def _refuse_configuration(folder: Path, named: Path) -> None:
    for name in sorted(CONFIGURATION):
        if os.path.lexists(folder / name) and not (folder / name).is_dir():
            raise BadInput(
                f"{shown(named / name)}: pytest could take this file for its configuration and run code from it",
                f"remove it from {shown(named)}: only students' folders belong there",
            )


def _export_inside(folder: Path) -> Path:
    """The one folder of an unpacked export that holds the submissions, if there is one."""
    with contextlib.suppress(OSError):
        inside = _folders_in(folder)
        if len(inside) == 1 and EXPORT_NAME.fullmatch(inside[0].name):
            return inside[0]
    return folder


@contextlib.contextmanager
def exercises_of(student: Student, exercises: Sequence[str], scratch: Path) -> Iterator[Path]:
    """The folder that holds the student's folders of exercises; an archive is unpacked meanwhile.

    Raises Unreadable with the reason, which costs only this student, and NoRoom.
    """
    inside = scratch / INSIDE
    if student.refused is not None:
        raise Unreadable(student.refused, "hand it in again")
    try:
        packed = [path for path in student.paths if path.is_file() and is_archive(path.name)]
        if not packed:
            own = student.paths[0]
            home = _home(own, exercises)
            packed = [] if home else [p for p in sorted(own.iterdir()) if is_archive(p.name) and p.name[0] != "."]
            if not packed:
                yield home or _home_nearly(own, exercises)
                return
            if len(packed) > 1:
                raise Unreadable(_not_one(packed, packed), "hand it in again")
        unpack(packed[0], inside, STUDENT)
        yield _home(inside, exercises) or _home_nearly(inside, exercises)
    except OSError as error:
        raise Unreadable(f"{error.strerror or type(error).__name__}", "hand it in again") from error
    finally:
        discard(inside)


def _home(folder: Path, exercises: Sequence[str]) -> Path | None:
    """The folder with the exercises: this one, or the only one below it that has any. Links are not followed."""
    return _having(folder, lambda place: any((place / name).is_dir() for name in exercises))


def _home_nearly(folder: Path, exercises: Sequence[str]) -> Path:
    """The folder with what may be meant for exercises, so that the message can name it; else the whole."""
    near = _having(folder, lambda place: any(nearly(p.name, name) for p in _folders_in(place) for name in exercises))
    return near or folder


def _having(folder: Path, has: Callable[[Path], bool]) -> Path | None:
    level, seen = [folder], 0
    for _ in range(_DEEPEST + 1):
        having = [place for place in level if has(place)]
        if len(having) > 1:
            names = " and ".join(printable(place.relative_to(folder)) for place in having[:2])
            raise Unreadable(f"exercises in several places: {names}", "hand in one folder per exercise")
        if having:
            return having[0]
        level = [path for place in level for path in _folders_in(place)]
        seen += len(level)
        if seen > _MOST_FOLDERS:
            raise Unreadable(f"more than {_MOST_FOLDERS} folders", "hand in one folder per exercise")
    return None


def _folders_in(place: Path) -> list[Path]:
    return [
        path
        for path in sorted(place.iterdir())
        if path.is_dir() and not path.is_symlink() and not path.name.startswith((".", "__MACOSX"))
    ]


def nearly(name: str, exercise: str) -> bool:
    """Whether a folder of this name may be meant for the exercise: EX1_one_host, or ex1, for ex1-one-host."""
    first, wanted = (_PART.findall(text.casefold())[:1] for text in (name, exercise))
    return name != exercise and first == wanted


def instead_of(missing: Path) -> str:
    """What there is where a student's folder of an exercise should be, in words; nothing if it does not help."""
    place = missing.parent
    with contextlib.suppress(OSError):
        for _ in range(_DEEPEST):
            folders, visible = _folders_in(place), [path for path in place.iterdir() if path.name[0] != "."]
            if [*folders] != visible or len(folders) != 1 or nearly(folders[0].name, missing.name):
                break
            place = folders[0]
        said = [
            f"there is {printable(p.name)}: did you mean {missing.name}?"
            for p in folders
            if nearly(p.name, missing.name)
        ]
        names = sorted(path.name for path in visible if path not in folders)
        said += [f"{printable(name)}: {UNPACKED}" for name in names if is_packed(name) and not is_archive(name)]
        if loose := [name for name in names if kind_of(name) or meant(name)]:
            said.append(f"{', '.join(map(printable, loose[:5]))}: outside the folder of an exercise, so not loaded")
        return "".join(f"; {words}" for words in said)
    return ""
