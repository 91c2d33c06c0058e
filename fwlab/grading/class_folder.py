# SPDX-License-Identifier: GPL-2.0-or-later
"""The students in what an instructor has of a class: a folder, or an archive, as it is or as an LMS exports it.

Each entry is somebody's by its name. An odd one affects its own student at most, and is reported.

Moodle       NAME_NUMBER_assignsubmission_file, of a folder or at the beginning of a file's name; a group may lack the
             number, and versions before 4.1 write one more `_`
Canvas       NAME_NUMBER_NUMBER_FILE, or NAME_LATE_NUMBER_NUMBER_FILE: files alone
Brightspace  NUMBER-NUMBER - NAME - DATE, a folder; or such a file, with ` - FILE` behind it
Gradescope   submission_metadata.yml has the names of its folders, and when they were handed in
clones       a folder with .git, as `git clone` and `gh classroom clone student-repos` name it; of it, work/ is read
otherwise    the name of a folder or of an archive
"""

import contextlib
import hashlib
import os
import re
import shutil
import stat
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fwlab.checkout.yaml_files import yaml_in
from fwlab.grading.archives import EXPORT, STUDENT, UNPACKED, Unreadable, is_archive, is_packed, stem, unpack
from fwlab.grading.confined import confined_result
from fwlab.grading.lab_rulesets import RIGHT, WRONG
from fwlab.measure.plan import PARTS
from fwlab.model.errors import BadInput
from fwlab.model.printable import printable
from fwlab.rulesets.files import MAX_PATH
from fwlab.rulesets.registry import kind_of, meant

#: A student's name in marks. It becomes part of test names and reports.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_MOODLE = re.compile(r"(?P<name>.+?)(_(?P<number>\d+))?_assign(?P<kind>(submission|feedback)_[a-z]+)(_.*)?", re.DOTALL)
_CANVAS = re.compile(r"(?P<name>[^_]+)(?P<late>_LATE)?_(?P<number>\d+)_(\d+_.+|(?P<text>(text|link)\.html))", re.DOTALL)
_BRIGHTSPACE = re.compile(r"(?P<number>\d+-\d+) - (?P<name>.+?) - ((?! - ).)*\b\d{4}\b((?! - ).)*( - .+)?", re.DOTALL)
#: Rulesets of the lab have these names in marks.
_RESERVED = re.compile("|".join([*PARTS, f"{RIGHT}.*", f"{WRONG}.*"]))
#: What Unicode calls a Latin letter, such as `LATIN SMALL LETTER O WITH STROKE`.
_LATIN = re.compile(r"LATIN (?P<size>SMALL|CAPITAL) (LETTER|LIGATURE) (?P<plain>[A-Z]{1,2})( WITH .*)?")
#: Characters of a name, of a number and of a hash in a student's name in marks.
_WORDS, _NUMBER, _HASH = 40, 20, 6


@dataclass(frozen=True)
class Owner:
    """Whose an entry is.

    id    the name in marks
    name  as it is written, where that differs
    of_several  the platform writes each file by itself, so the same owner may have others
    late  the platform says that it came late
    text  an online text, which is no ruleset
    """

    id: str
    name: str = ""
    of_several: bool = False
    late: bool = False
    text: bool = False


def owner_of(entry: str, *, is_folder: bool) -> Owner | None:
    """The owner of an entry of this name; None for a file that is no submission."""
    if found := _MOODLE.fullmatch(entry):
        name, text = found["name"], found["kind"] != "submission_file"
        return Owner(_free(_numbered(name, found["number"])), shown_name(name), not is_folder, text=text)
    if found := _BRIGHTSPACE.fullmatch(entry):
        own = f"{found['number'][:_NUMBER]}-{_words(found['name'])[0] or 'participant'}"
        return Owner(own, shown_name(found["name"]), not is_folder)
    if not is_folder and (found := _CANVAS.fullmatch(entry)):
        own, name = _numbered(found["name"], found["number"]), shown_name(found["name"])
        return Owner(own, name, of_several=True, late=bool(found["late"]), text=bool(found["text"]))
    if not is_folder and not is_packed(entry):
        return None
    name = entry if is_folder else stem(entry)
    return Owner(_free(name)) if NAME.fullmatch(name) else Owner(_free(identifier(name)), shown_name(name))


def shown_name(name: str) -> str:
    """A person's name for pages and lists. macOS writes letters and accents apart, and no list of names does."""
    return printable(unicodedata.normalize("NFC", name))


def identifier(name: str) -> str:
    """A name in letters that a test's name can have. A hash tells names apart that cannot be written with them."""
    words, whole = _words(name)
    if words and whole:
        return words
    said = unicodedata.normalize("NFC", name)
    return f"{words or 'participant'}-{hashlib.sha256(os.fsencode(said)).hexdigest()[:_HASH]}"


def _numbered(name: str, number: str | None) -> str:
    """With the number that keeps two students of one name apart, if there is one."""
    return f"{_words(name)[0] or 'participant'}_{number[:_NUMBER]}" if number else identifier(name)


def _words(name: str) -> tuple[str, bool]:
    """The name in plain letters, and whether it is all there."""
    plain, whole = "", True
    for character in unicodedata.normalize("NFKD", name.replace("ß", "ss")):
        latin = _LATIN.fullmatch(unicodedata.name(character, ""))
        if latin and not character.isascii():
            plain += latin["plain"] if latin["size"] == "CAPITAL" else latin["plain"].lower()
        elif character.isascii():
            plain += character
        elif character.isalnum() or "\udc80" <= character <= "\udcff":
            whole = False
    words = re.sub("[^A-Za-z0-9]+", "-", plain).strip("-")
    return words[:_WORDS].strip("-"), whole and len(words) <= _WORDS


def _free(own: str) -> str:
    """No name of the lab's own rulesets: with it the mark would be ambiguous."""
    return f"student-{own}" if _RESERVED.fullmatch(own) else own


#: Gradescope puts it next to the folders of an export.
METADATA = "submission_metadata.yml"
#: It has the history of every submission, so it may be much larger than a file that somebody writes.
MAX_METADATA = 32 << 20
#: Names of one submission that are read.
MAX_PEOPLE = 20


#: Who handed in one submission, and when in ISO 8601, if that is known.
Submitters = tuple[str, str | None]


def read_metadata(path: Path) -> dict[str, Submitters]:
    """By submission, who made it; nothing without the file. What an entry lacks is left out.

    It is read in a child process. Raises BadInput if the file is not YAML.
    """
    if not path.is_file():
        return {}
    size, hint = path.stat().st_size, "export the submissions again, or remove the file"
    found = confined_result(lambda: _people_in(path), size, printable(path.name), hint)
    return {submission: (names, at) for submission, (names, at) in found.items()}


def _people_in(path: Path) -> dict[str, Submitters]:
    name, hint = printable(path.name), "export the submissions again, or remove the file"
    try:
        with path.open("rb") as file:
            data = file.read(MAX_METADATA + 1)
    except OSError as error:
        raise BadInput(f"{name}: {error.strerror}", "export the submissions again") from error
    if len(data) > MAX_METADATA:
        raise BadInput(f"{name}: more than {MAX_METADATA >> 20} MiB", "export the submissions again")
    read = yaml_in(data, name, hint, any_tag=True)
    if not isinstance(read, Mapping):
        raise BadInput(f"{name}: not a mapping of submissions", hint)
    return {str(key): _submitters(entry) for key, entry in read.items() if isinstance(entry, Mapping)}


def _submitters(entry: Mapping[Any, Any]) -> Submitters:
    listed = entry.get(":submitters")
    people = [person for person in listed if isinstance(person, Mapping)] if isinstance(listed, list) else []
    names = "; ".join(
        _name_in(person.get(":name")) or _name_in(person.get(":email")) or "?" for person in people[:MAX_PEOPLE]
    )
    at = _time_in(entry.get(":created_at"))
    return shown_name(names), None if at is None else at.isoformat()


def _name_in(value: object) -> str:
    """A name. Anything else is left out: by YAML's aliases a short file can hold endless data."""
    return value if isinstance(value, str) else ""


def _time_in(value: object) -> datetime | None:
    if isinstance(value, Mapping):  # Ruby's time with a zone
        value = value.get("utc")
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return None
    if not isinstance(value, datetime):
        return None
    return value if value.tzinfo is not None else value.replace(tzinfo=UTC)


#: Files that some version of pytest reads as its configuration, or runs.
CONFIGURATION = (
    *(".pytest.ini", ".pytest.toml", "conftest.py", "pyproject.toml", "pytest.ini", "pytest.toml"),
    *("setup.cfg", "setup.py", "tox.ini"),
)
_WHAT_IT_IS = "give --submissions the folder that holds one folder per student"
#: The folder of a student's archive while it is unpacked.
INSIDE = "student"
#: How deep exercises may lie in what a student hands in, and how many folders are searched for them.
_MAX_DEPTH, _MAX_FOLDERS = 4, 2000
#: A part of the name of an exercise, or of a folder.
_PART = re.compile(r"[^\W_]+")
#: A folder that is an exercise, and no wrapping around all of them.
_AN_EXERCISE = re.compile(r"ex\d+", re.IGNORECASE)
#: Maximum number of odd entries that are listed.
_MAX_NAMED = 40


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


def display_path(path: Path) -> str:
    """A path for a message."""
    return printable(path, MAX_PATH)


@contextlib.contextmanager
def class_at(path: Path, scratch: Path) -> Iterator[Path]:
    """The folder of the class; an export that is one archive is unpacked into `scratch` meanwhile, by a child process.

    Raises BadInput naming the archive, DiskFull, and CannotMeasure for an error of ours.
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
            raise BadInput(f"{display_path(path)}: {error.message}", hint) from error

    try:
        confined_result(unpacked, path.stat().st_size, display_path(path), hint)
        yield inside
    finally:
        shutil.rmtree(inside, ignore_errors=True)


def students_in(folder: Path, named: Path, notify: Callable[[str], object] = lambda _: None) -> list[Student]:
    """Everybody who handed something in, in the order of their names. `named` is the folder's name in messages.

    notify  is given one message with everything that is odd
    Raises BadInput for a class without students, and for a file that pytest could run.
    """
    _reject_configuration(folder, named)
    folder = _export_inside(folder)
    _reject_configuration(folder, named)
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
        more = [f"and {len(odd) - _MAX_NAMED} more"] if len(odd) > _MAX_NAMED else []
        message = "\n  ".join(
            [f"{display_path(named)}: ignored, without effect on other students:", *odd[:_MAX_NAMED], *more]
        )
        notify(f"{message}\n  next: rename, unpack or remove these, and grade again with --resume")
    if not students:
        what = f"has no student's folder or archive; there is: {odd[0]}" if odd else "is empty"
        raise BadInput(f"{display_path(named)} {what}", "put one folder per student into it")
    return students


def _student(having: list[tuple[Owner, Path]], metadata: dict[str, Submitters]) -> Student:
    """One student, to whom all these entries belong."""
    owners, paths = [owner for owner, _ in having], tuple(path for _, path in having)
    names, at = metadata.get(paths[0].name, ("", None))
    refused = _why_not_read(paths)
    if len(having) > 1 and not (all(owner.of_several for owner in owners) and len({o.name for o in owners}) == 1):
        refused = f"{' and '.join(printable(path.name) for path in paths[:3])} are both of {owners[0].id}"
    handed_in = datetime.fromisoformat(at) if at else None
    return Student(owners[0].id, paths, names or owners[0].name, handed_in, refused)


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
        raise BadInput(f"{display_path(named)}: not a folder", _WHAT_IT_IS) from error
    except FileNotFoundError as error:
        raise BadInput(f"no folder {display_path(named)}", _WHAT_IT_IS) from error
    except OSError as error:
        raise BadInput(f"{display_path(named)}: {error.strerror}", _WHAT_IT_IS) from error
    return [path for path in entries if not path.name.startswith((".", "__MACOSX"))]


def _reject_configuration(folder: Path, named: Path) -> None:
    for name in CONFIGURATION:
        if os.path.lexists(folder / name) and not (folder / name).is_dir():
            raise BadInput(
                f"{display_path(named / name)}: pytest could take this file for its configuration and run code from it",
                f"remove it from {display_path(named)}: only students' folders belong there",
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

    Raises Unreadable with the reason, which costs only this student, and DiskFull.
    """
    inside = scratch / INSIDE
    if student.refused is not None:
        raise Unreadable(student.refused, "hand it in again")
    try:
        packed = [path for path in student.paths if path.is_file() and is_archive(path.name)]
        if not packed:
            own = _work_of(student.paths[0])
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
        shutil.rmtree(inside, ignore_errors=True)


def _work_of(folder: Path) -> Path:
    """Of a clone of a student's repository (student_repository.py) its work/; else the folder. `git` is not run."""
    work = folder / "work"
    return work if (folder / ".git").exists() and work.is_dir() and not work.is_symlink() else folder


def _home(folder: Path, exercises: Sequence[str]) -> Path | None:
    """The folder with the exercises: this one, or the only one below it that has any. Links are not followed."""
    return _having(folder, lambda place: any((place / name).is_dir() for name in exercises))


def _home_nearly(folder: Path, exercises: Sequence[str]) -> Path:
    """The folder with what may be meant for exercises, so that the message can name it; else the whole."""
    near = _having(folder, lambda place: any(nearly(p.name, name) for p in _folders_in(place) for name in exercises))
    return near or folder


def _having(folder: Path, has: Callable[[Path], bool]) -> Path | None:
    level, seen = [folder], 0
    for _ in range(_MAX_DEPTH + 1):
        having = [place for place in level if has(place)]
        if len(having) > 1:
            names = " and ".join(printable(place.relative_to(folder)) for place in having[:2])
            raise Unreadable(f"exercises in several places: {names}", "hand in one folder per exercise")
        if having:
            return having[0]
        level = [path for place in level for path in _folders_in(place)]
        seen += len(level)
        if seen > _MAX_FOLDERS:
            raise Unreadable(f"more than {_MAX_FOLDERS} folders", "hand in one folder per exercise")
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
        for _ in range(_MAX_DEPTH):  # into the folders that an archive wraps around all exercises
            folders, visible = _folders_in(place), [path for path in place.iterdir() if path.name[0] != "."]
            if (
                [*folders] != visible
                or len(folders) != 1
                or nearly(name := folders[0].name, missing.name)
                or _AN_EXERCISE.match(name)
            ):
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
