# SPDX-License-Identifier: GPL-2.0-or-later
"""Gradescope's metadata of an export: who handed in what, and when."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fwlab.checkout.yaml_files import yaml_in
from fwlab.grading.class_names import shown_name
from fwlab.grading.confined import returned
from fwlab.model.errors import BadInput
from fwlab.model.printable import printable

#: It lies beside the folders of an export.
METADATA = "submission_metadata.yml"
#: It has the history of every submission, so it may be much larger than a file that somebody writes.
LARGEST_METADATA = 32 << 20
#: Names of one submission that are read.
MOST_PEOPLE = 20


@dataclass(frozen=True)
class Submitters:
    """Who handed in one submission, and when."""

    names: str = ""
    created_at: datetime | None = None


def read_metadata(path: Path) -> dict[str, Submitters]:
    """By submission, who made it; nothing without the file. What an entry lacks is left out.

    It is read in a child process. Raises BadInput if the file is not YAML.
    """
    if not path.is_file():
        return {}
    size, hint = path.stat().st_size, "export the submissions again, or remove the file"
    found = returned(lambda: _people_in(path), size, printable(path.name), hint)
    return {key: Submitters(names, at and datetime.fromisoformat(at)) for key, (names, at) in found.items()}


def _people_in(path: Path) -> dict[str, tuple[str, str | None]]:
    """By submission, the names and the time, as JSON has it."""
    name = printable(path.name)
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST_METADATA + 1)
    except OSError as error:
        raise BadInput(f"{name}: {error.strerror}", "export the submissions again") from error
    if len(data) > LARGEST_METADATA:
        raise BadInput(f"{name}: more than {LARGEST_METADATA >> 20} MiB", "export the submissions again")
    read = yaml_in(data, name, "export the submissions again, or remove the file", any_tag=True)
    if not isinstance(read, Mapping):
        raise BadInput(f"{name}: not a mapping of submissions", "export the submissions again, or remove the file")
    return {str(key): _submitters(entry) for key, entry in read.items() if isinstance(entry, Mapping)}


def _submitters(entry: Mapping[Any, Any]) -> tuple[str, str | None]:
    listed = entry.get(":submitters")
    people = [person for person in listed if isinstance(person, Mapping)] if isinstance(listed, list) else []
    names = "; ".join(
        _text(person.get(":name")) or _text(person.get(":email")) or "?" for person in people[:MOST_PEOPLE]
    )
    at = _time(entry.get(":created_at"))
    return shown_name(names), None if at is None else at.isoformat()


def _text(value: object) -> str:
    """A name. Anything else is left out: by YAML's aliases a short file can hold endless data."""
    return value if isinstance(value, str) else ""


def _time(value: object) -> datetime | None:
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
