# SPDX-License-Identifier: GPL-2.0-or-later
"""Read YAML files into plain data. An error is one line that names the file and the line."""

from __future__ import annotations

import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from fwlab.model.errors import BadInput

#: Bytes. The largest lab.yml has some 30 KiB; a file beyond this limit takes the parser minutes.
MAX_FILE_BYTES = 1 << 20
#: Levels of nesting. Parsers recurse for each level and would overflow the stack.
MAX_DEPTH = 50
#: Entries that merge keys (<<) copy, all together. A mapping that merges another tenfold may itself be merged tenfold.
MAX_MERGED = 100_000
#: No count, rate or time in the project is larger, and much of Python takes no larger integer.
MAX_NUMBER = 1 << 63
_MERGE = "tag:yaml.org,2002:merge"
#: Raised by PyYAML's constructors for a value that does not match its tag, such as the date 2001-99-99.
_UNFIT = (ValueError, KeyError, IndexError, AttributeError, TypeError, OverflowError)


def read_yaml_file(path: Path, name: str, hint: str = "") -> object:
    """The data of a YAML file. Raises BadInput, which calls the file `name` and gives the line if it is known."""
    hint = hint or f"fix {name}"
    try:
        data = _read(path, name, hint)
    except OSError as error:
        raise BadInput(f"{name}: {error.strerror}", hint) from error
    return yaml_in(data, name, hint)


def yaml_in(data: bytes, name: str, hint: str, *, any_tag: bool = False) -> object:
    """The data of a YAML document in UTF-8. Raises BadInput as read_yaml_file does.

    any_tag  a tag that YAML does not define is no error: a mapping or a sequence is read without it, a word is None
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadInput(f"{name}: not text in UTF-8 (byte {error.start})", hint) from error
    try:
        return parse_yaml(text, any_tag=any_tag)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{name}:{mark.line + 1}" if mark else name
        raise BadInput(f"{place}: not YAML: {error.problem}", hint) from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise BadInput(f"{name}:{line}: a control character ({chr(error.character)!r})", hint) from error


def _read(path: Path, name: str, hint: str) -> bytes:
    if not stat.S_ISREG(path.stat().st_mode):
        raise BadInput(f"{name}: not a plain file", hint)
    with path.open("rb") as file:
        data = file.read(MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        raise BadInput(f"{name}: more than {MAX_FILE_BYTES >> 20} MiB", hint)
    return data


def parse_yaml(text: str, *, any_tag: bool = False) -> object:
    """The data of a YAML document. Raises yaml.YAMLError.

    libyaml is eight times as fast as PyYAML's own parser, but the latter explains errors better.
    """
    loaders = (_FastAnyTag, _AnyTag) if any_tag else (_FastLoader, _Loader)
    for loader in loaders:
        try:
            _check_size(text, loader)
            return yaml.load(text, Loader=loader)  # noqa: S506 - a SafeLoader
        except _TooMuch:
            raise
        except yaml.YAMLError:
            if loader is loaders[-1]:
                raise
    raise AssertionError


class _TooMuch(yaml.MarkedYAMLError):
    """Data nested deeper than MAX_DEPTH levels, or merged beyond MAX_MERGED."""


@dataclass
class _Open:
    """A collection that has not ended.

    into     the mapping that merges it, or what it lists; None for ordinary data
    nodes    keys and values so far; `merge`: the last key merges its value
    entries  of a mapping, with those that it merges
    """

    anchor: str | None
    mapping: bool
    into: _Open | None
    nodes: int = 0
    merge: bool = False
    entries: int = 0


def _check_size(text: str, loader: type[_Loader | _FastLoader]) -> None:
    """Raise _TooMuch. Parse events come one by one; building the data would recurse, and copy what is merged."""
    opened: list[_Open] = []
    entries: dict[str | None, int] = {}
    merged = 0
    for event in yaml.parse(text, Loader=loader):
        copied: tuple[_Open, int] | None = None
        if isinstance(event, yaml.CollectionEndEvent):
            ended = opened.pop()
            entries[ended.anchor] = ended.entries
            copied = (ended.into, ended.entries) if ended.mapping and ended.into else None
        elif isinstance(event, yaml.NodeEvent):
            into = _merging(opened[-1], event) if opened else None
            if isinstance(event, yaml.CollectionStartEvent):
                opened.append(_Open(event.anchor, isinstance(event, yaml.MappingStartEvent), into))
            elif isinstance(event, yaml.AliasEvent) and into:
                copied = into, entries.get(event.anchor, 0)
        if copied:
            copied[0].entries += copied[1]
            merged += copied[1]
        if len(opened) > MAX_DEPTH or merged > MAX_MERGED:
            what = f"over {MAX_MERGED} merged entries" if merged > MAX_MERGED else f"nested more than {MAX_DEPTH} deep"
            mark: Any = event.start_mark  # libyaml has a Mark of its own
            raise _TooMuch(problem=what, problem_mark=mark)


def _merging(parent: _Open, event: Any) -> _Open | None:
    """Count the node in its parent. Returns the mapping that merges it, if one does."""
    parent.nodes += 1
    if not parent.mapping:
        return parent.into
    if parent.nodes % 2 == 0:
        return parent if parent.merge else None
    parent.entries += 1
    scalar = isinstance(event, yaml.ScalarEvent)
    parent.merge = scalar and (event.tag == _MERGE or (event.value == "<<" and event.implicit[0]))
    return None


class _Checked(yaml.constructor.SafeConstructor):
    """A constructor whose errors all have a place in the file."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> object:
        try:
            made: object = super().construct_object(node, deep)
        except _UNFIT as error:
            kind = node.tag.rpartition(":")[2]
            problem = f"{str(node.value)[:40]!r} is no {kind}"
            raise yaml.constructor.ConstructorError(problem=problem, problem_mark=node.start_mark) from error
        if isinstance(made, int) and abs(made) > MAX_NUMBER:
            problem = "a number is too large"
            raise yaml.constructor.ConstructorError(problem=problem, problem_mark=node.start_mark)
        return made


class _Loader(_Checked, yaml.SafeLoader):
    pass


class _FastLoader(_Checked, getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    pass


class _AnyTag(_Loader):
    pass


class _FastAnyTag(_FastLoader):
    pass


def _without_tag(loader: Any, node: yaml.Node) -> object:
    """Plain data for a tag that YAML does not define. No object is made of it."""
    if isinstance(node, yaml.MappingNode):
        made: object = loader.construct_yaml_map(node)
        return made
    return loader.construct_yaml_seq(node) if isinstance(node, yaml.SequenceNode) else None


_AnyTag.add_constructor(None, _without_tag)
_FastAnyTag.add_constructor(None, _without_tag)
