# SPDX-License-Identifier: GPL-2.0-or-later
"""YAML that somebody wrote, read without surprise: whatever is wrong with it becomes a BadInput that names the file."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import yaml

from fwlab.words.errors import BadInput

#: No file of a lab nests deeper than this by far; libyaml itself falls down a stack at some hundred thousand levels.
DEEPEST = 50


def parse_yaml(text: str, name: str) -> object:
    """The text as lists, dicts and scalars. Raises BadInput with the line, where it is known."""
    hint = f"mend {name}"
    try:
        _refuse_deep(text, name)
        return _load(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{name}:{mark.line + 1}" if mark else name
        raise BadInput(f"{where}: not YAML: {error.problem}", hint) from error
    except (yaml.YAMLError, UnicodeError) as error:
        raise BadInput(f"{name}: not YAML: {error}", hint) from error
    except RecursionError as error:
        raise BadInput(f"{name}: nested more than {DEEPEST} levels deep", hint) from error
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError) as error:
        # A scalar of a known form that has no value: 2026-13-45, a number of 5000 digits, !!bool x
        raise BadInput(f"{name}: not YAML: a value cannot be read: {error}", hint) from error


def _refuse_deep(text: str, name: str) -> None:
    depth = 0
    for event in _events(text):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > DEEPEST:
            line = event.start_mark.line + 1
            raise BadInput(f"{name}:{line}: nested more than {DEEPEST} levels deep", f"mend {name}")


def _events(text: str) -> Iterator[yaml.Event]:
    with contextlib.suppress(yaml.YAMLError, UnicodeError):  # whoever reads the text meets it again
        yield from yaml.parse(text, Loader=_LOADER)


def _load(text: str) -> object:
    """libyaml is eight times as fast as PyYAML's own parser, whose words for a fault are the clearer ones."""
    try:
        return yaml.load(text, Loader=_LOADER)
    except yaml.YAMLError:
        return yaml.safe_load(text)


_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
