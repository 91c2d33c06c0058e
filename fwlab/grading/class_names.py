# SPDX-License-Identifier: GPL-2.0-or-later
"""Whose an entry of a class's folder is, by its name: as a learning platform writes it, or as anybody names a folder.

Moodle       NAME_NUMBER_assignsubmission_file, of a folder or at the beginning of a file's name; a group may lack the
             number, and versions before 4.1 write one more `_`
Canvas       NAME_NUMBER_NUMBER_FILE, or NAME_LATE_NUMBER_NUMBER_FILE: files alone
Brightspace  NUMBER-NUMBER - NAME - DATE, a folder; or such a file, with ` - FILE` behind it
otherwise    the name of a folder or of an archive
"""

import hashlib
import os
import re
import unicodedata
from dataclasses import dataclass

from fwlab.grading.archives import is_packed, stem
from fwlab.grading.variant_files import RIGHT, WRONG
from fwlab.measure.plan import PARTS
from fwlab.model.printable import printable

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
    """The owner of an entry of this name; None for a file that stands for nobody."""
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
