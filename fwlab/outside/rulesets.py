# SPDX-License-Identifier: GPL-2.0-or-later
"""Rulesets on disk: a lab's own (templates are rendered) and a student's (read as they are)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fwlab.logic.grammar import refuse_together
from fwlab.logic.render import TEMPLATE, render, ruleset_file
from fwlab.words.errors import BadInput
from fwlab.words.ruleset import RulesetFile, in_loading_order
from fwlab.words.topology import Topology

#: A list of 265 000 entries has about 8 MB; beyond this it is no ruleset.
LARGEST_FILE = 32 << 20
#: Beside rulesets a student's folder may hold notes.
NOTES = {".md", ".txt"}


def lab_ruleset(folder: Path, parameters: dict[str, Any], topology: Topology) -> list[RulesetFile]:
    """A ruleset that the lab brings, rendered, in loading order."""
    files = []
    for path in _files(folder):
        text = _read(path)
        name = path.name
        if name.endswith(TEMPLATE):
            name = name.removesuffix(TEMPLATE)
            text = render(f"{folder.name}/{path.name}", text, parameters, topology)
        files.append(ruleset_file(name, text))
    return in_loading_order(files)


def student_ruleset(folder: Path) -> list[RulesetFile]:
    """What a student wrote: plain files only, nothing rendered, nothing run, no link followed."""
    files = in_loading_order([ruleset_file(path.name, _read(path)) for path in _files(folder)])
    refuse_together(files)
    return files


def _files(folder: Path) -> Iterator[Path]:
    if not folder.is_dir() or folder.is_symlink():
        raise BadInput(f"no folder {folder}", "fwlab list")
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or path.suffix in NOTES:
            continue
        if path.is_symlink() or not path.is_file():
            raise BadInput(f"{path}: a ruleset is plain files, no links, no folders", f"remove {path.name}")
        yield path


def _read(path: Path) -> str:
    size = path.stat().st_size
    if size > LARGEST_FILE:
        raise BadInput(f"{path}: {size >> 20} MiB; a ruleset file has at most {LARGEST_FILE >> 20}", "use a set")
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise BadInput(f"{path}: not text (byte {error.start})", "save it as UTF-8") from error
