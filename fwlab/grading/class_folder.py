# SPDX-License-Identifier: GPL-2.0-or-later
"""The students in what an instructor has of a class: a folder, or an archive, as it is or as an LMS exports it.

Moodle     a folder `NAME_NUMBER_assignsubmission_file_` per student, or files whose names begin like that
Gradescope a folder `submission_NUMBER` per submission, and submission_metadata.yml, which has the names
otherwise  a folder or an archive per student, whose name stands for the student
"""

import contextlib
import os
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from fwlab.grading.archive_members import EXPORT, STUDENT, Unreadable
from fwlab.grading.archives import discard, is_archive, stem, unpack
from fwlab.grading.gradescope import METADATA, Submitters, read_metadata
from fwlab.model.errors import BadInput
from fwlab.model.printable import printable
from fwlab.rulesets.files import LONGEST_PATH

#: A student's name in marks. It becomes part of test names and reports.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
#: Files that some version of pytest reads as its configuration, or runs.
CONFIGURATION = frozenset(
    {
        *(f"{dot}pytest.{kind}" for dot in ("", ".") for kind in ("ini", "toml")),
        *("pyproject.toml", "tox.ini", "setup.cfg", "setup.py", "conftest.py"),
    }
)
_MOODLE = re.compile(r"(?P<name>.+)_(?P<number>\d+)_assignsubmission_(?P<kind>file|onlinetext)_(?P<rest>.*)")
_WHAT_IT_IS = "give --submissions the folder that holds one folder per student"
#: The folder of a student's archive while it is unpacked.
UNPACKED = "student"
#: How deep exercises may lie in what a student hands in, and how many folders are searched for them.
_DEEPEST, _MOST_FOLDERS = 4, 2000


#: The folder in Gradescope's archive. A student's folder may hold a file of any name, so that tells nothing.
EXPORT_NAME = re.compile(r"assignment_\d+_export")


@dataclass(frozen=True)
class Student:
    """One student of a class.

    id         the name in marks, tests and reports
    paths      what was handed in: a folder, an archive, or several files that have the same owner
    name       as the export writes it
    handed_in  when, if the export says so
    """

    id: str
    paths: tuple[Path, ...] = field(repr=False)
    name: str = ""
    handed_in: datetime | None = None

    @property
    def source(self) -> str:
        """What it was handed in as, for a report."""
        return printable(" ".join(path.name for path in self.paths))


def shown(path: Path) -> str:
    """A path for a message."""
    return printable(path, LONGEST_PATH)


@contextlib.contextmanager
def class_at(path: Path, scratch: Path) -> Iterator[Path]:
    """The folder of the class; an export that is one archive is unpacked into `scratch` meanwhile. Raises BadInput."""
    if not (is_archive(path.name) and path.is_file() and not path.is_symlink()):
        yield path
        return
    inside = scratch / "export"
    try:
        unpack(path, inside, EXPORT)
        yield inside
    except Unreadable as error:
        raise BadInput(
            f"{shown(path)}: {error.message}",
            "download it again; or unpack it, remove what is refused, and name the folder",
        ) from error
    finally:
        discard(inside)


def students_in(folder: Path, named: Path) -> list[Student]:
    """Everybody who handed something in, in the order of their names. `named` is the folder's name in messages.

    Raises BadInput naming what does not belong there.
    """
    _refuse_configuration(folder, named)
    folder = _export_inside(folder)
    _refuse_configuration(folder, named)
    entries = _entries(folder, named)
    metadata = read_metadata(folder / METADATA) if (folder / METADATA).is_file() else {}
    found: dict[str, Student] = {}
    for path in entries:
        student = _student(path, metadata, named)
        if student is None:
            continue
        other = found.get(student.id)
        if other is not None and not _MOODLE.fullmatch(path.name):
            names = f"{printable(other.paths[0].name)} and {printable(path.name)}"
            raise BadInput(f"{shown(named)}: {names} are both of {student.id}", "remove one of them")
        found[student.id] = replace(other, paths=(*other.paths, path)) if other else student
    if not found:
        raise BadInput(f"{shown(named)} is empty", "put one folder per student into it")
    return [found[name] for name in sorted(found)]


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
        inside = [path for path in folder.iterdir() if not path.name.startswith((".", "__MACOSX"))]
        if len(inside) == 1 and EXPORT_NAME.fullmatch(inside[0].name) and not inside[0].is_symlink():
            return inside[0]
    return folder


def _student(path: Path, metadata: dict[str, Submitters], named: Path) -> Student | None:
    """Whose this is; None for what belongs to nobody. Raises BadInput."""
    if path.name == METADATA:
        return None
    where = shown(named / path.name)
    moodle = _MOODLE.fullmatch(path.name)
    if path.is_symlink() or not (path.is_dir() or (path.is_file() and (moodle or is_archive(path.name)))):
        raise BadInput(f"{where}: not a student's folder or archive", f"remove it from {shown(named)}")
    if moodle:
        if moodle["kind"] != "file":
            return None
        return Student(_identifier(moodle["name"], moodle["number"]), (path,), printable(moodle["name"]))
    name = path.name if path.is_dir() else stem(path.name)
    if not NAME.fullmatch(name):
        raise BadInput(f"{where}: a student's name may hold only letters, digits and . _ @ -", "rename it")
    who = metadata.get(name, Submitters())
    return Student(name, (path,), who.names, who.created_at)


def _identifier(name: str, number: str) -> str:
    """Moodle's name in letters that a test's name can have. The number keeps two students of one name apart."""
    plain = unicodedata.normalize("NFKD", name.replace("ß", "ss")).encode("ascii", "ignore").decode()
    words = re.sub("[^A-Za-z0-9]+", "-", plain).strip("-")[:40].strip("-")
    return f"{words or 'participant'}_{number[:20]}"


@contextlib.contextmanager
def exercises_of(student: Student, exercises: Sequence[str], scratch: Path) -> Iterator[Path]:
    """The folder that holds the student's folders of exercises; an archive is unpacked meanwhile.

    Raises Unreadable with the reason, which costs only this student, and NoRoom.
    """
    inside = scratch / UNPACKED
    try:
        if len(student.paths) == 1 and student.paths[0].is_dir():
            home = _home(student.paths[0], exercises)
            if home is not None:
                yield home
                return
            packed = [p for p in sorted(student.paths[0].iterdir()) if is_archive(p.name) and p.name[0] != "."]
            if not packed:
                yield student.paths[0]
                return
        else:
            packed = [path for path in student.paths if is_archive(path.name)]
        if len(packed) != 1:
            what = f"{len(packed)} archives" if packed else f"{len(student.paths)} loose files"
            raise Unreadable(f"{what}, where one archive or a folder per exercise belongs", "hand it in again")
        unpack(packed[0], inside, STUDENT)
        yield _home(inside, exercises) or inside
    except OSError as error:
        raise Unreadable(f"{error.strerror or type(error).__name__}", "hand it in again") from error
    finally:
        discard(inside)


def _home(folder: Path, exercises: Sequence[str]) -> Path | None:
    """The folder with the exercises: this one, or the only one below it that has any. Links are not followed."""
    level, seen = [folder], 0
    for _ in range(_DEEPEST + 1):
        having = [place for place in level if any((place / name).is_dir() for name in exercises)]
        if len(having) > 1:
            names = " and ".join(printable(place.relative_to(folder)) for place in having[:2])
            raise Unreadable(f"exercises in several places: {names}", "hand in one folder per exercise")
        if having:
            return having[0]
        level = [path for place in level for path in sorted(place.iterdir()) if _searched(path)]
        seen += len(level)
        if seen > _MOST_FOLDERS:
            raise Unreadable(f"more than {_MOST_FOLDERS} folders", "hand in one folder per exercise")
    return None


def _searched(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink() and not path.name.startswith((".", "__MACOSX"))
