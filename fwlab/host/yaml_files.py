# SPDX-License-Identifier: GPL-2.0-or-later
"""A YAML file read into plain data; whatever is wrong with it is one line with the file and the line."""

from __future__ import annotations

import stat
from pathlib import Path

import yaml

from fwlab.model.errors import BadInput

#: The longest lab.yml has some 30 KiB. Beyond this a file is no declaration, and takes a parser minutes.
LARGEST_FILE = 1 << 20
#: Levels that data may be nested. Parsers call themselves for each, and end in a stack overflow.
DEEPEST = 50
#: What YAML's numbers become must fit here: no count, rate or time of ours is beyond, and much of Python takes no more.
LARGEST_NUMBER = 1 << 63
#: What PyYAML's constructors raise for a value that does not fit its tag, such as the date 2001-99-99.
_UNFIT = (ValueError, KeyError, IndexError, AttributeError, TypeError, OverflowError)


def read_yaml_file(path: Path, name: str, hint: str = "") -> object:
    """What the file says. Raises BadInput, which calls the file `name` and says the line where there is one."""
    hint = hint or f"mend {name}"
    try:
        data = _read(path, name, hint)
    except OSError as error:
        raise BadInput(f"{name}: {error.strerror}", hint) from error
    return yaml_in(data, name, hint)


def yaml_in(data: bytes, name: str, hint: str) -> object:
    """What these bytes say. Raises BadInput."""
    try:
        text = data.decode("utf-8")
        return parse_yaml(text)
    except UnicodeDecodeError as error:
        raise BadInput(f"{name}: not text in UTF-8 (byte {error.start})", hint) from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f":{mark.line + 1}" if mark else ""
        raise BadInput(f"{name}{line}: not YAML: {error.problem}", hint) from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise BadInput(f"{name}:{line}: a control character ({chr(error.character)!r})", hint) from error


def _read(path: Path, name: str, hint: str) -> bytes:
    if not stat.S_ISREG(path.stat().st_mode):
        raise BadInput(f"{name}: not a plain file", hint)
    with path.open("rb") as file:
        data = file.read(LARGEST_FILE + 1)
    if len(data) > LARGEST_FILE:
        raise BadInput(f"{name}: more than {LARGEST_FILE >> 20} MiB", hint)
    return data


def parse_yaml(text: str) -> object:
    """Plain data. Raises yaml.YAMLError.

    libyaml is eight times as fast as PyYAML's own parser, whose words for a fault are the clearer ones.
    """
    for loader in (_FastLoader, _Loader):
        try:
            _refuse_deep(text, loader)
            return yaml.load(text, Loader=loader)  # noqa: S506 - a safe one
        except _TooDeep:
            raise
        except yaml.YAMLError:
            if loader is _Loader:
                raise
    raise AssertionError


class _TooDeep(yaml.MarkedYAMLError):
    """Data nested deeper than any declaration of ours."""


def _refuse_deep(text: str, loader: type) -> None:
    """Before anything is built: events come one by one, while what they make is built level within level."""
    depth = 0
    for event in yaml.parse(text, Loader=loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > DEEPEST:
                raise _TooDeep(problem=f"nested more than {DEEPEST} deep", problem_mark=event.start_mark)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


class _Careful:
    """A loader whose faults all have a place in the file."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> object:
        try:
            made = super().construct_object(node, deep)
        except _UNFIT as error:
            kind = node.tag.rpartition(":")[2]
            problem = f"{str(node.value)[:40]!r} is no {kind}"
            raise yaml.constructor.ConstructorError(problem=problem, problem_mark=node.start_mark) from error
        if isinstance(made, int) and abs(made) > LARGEST_NUMBER:
            problem = "a number is too large"
            raise yaml.constructor.ConstructorError(problem=problem, problem_mark=node.start_mark)
        return made


class _Loader(_Careful, yaml.SafeLoader):
    pass


class _FastLoader(_Careful, getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
    pass
