# SPDX-License-Identifier: GPL-2.0-or-later
"""Random mutations: of text by line, word and character; of data by value, field and structure."""

from __future__ import annotations

import re
from random import Random
from typing import Any

#: Replacements for numbers: limits of their ranges, and unusual notations.
NUMBERS = (
    *("0", "-1", "1", "255", "256", "65535", "65536", "4294967295", "4294967296", "9223372036854775808", "1e400"),
    *("0x7fffffff", "0xffffffffffffffffff", "007", "08", "1.5", ".5", "1e-400", "nan", "inf", "-0", "1_000", "1:1:1"),
    *("٣", "1" * 30, "9" * 5000),
)
#: Text that is likely to break a parser.
ODD = (
    *("", " ", "\t", "\n", "\r\n", "\r", "\0", "\x0b", "\x1b[31m", "\x7f", "\x85", "\u2028", "\ufeff", "\u202e", "é"),
    *("😀", '"', "'", "\\", "\\\n", "#", ";", "{", "}", "[", "]", "(", ")", ",", ":", "=", "@", "$", "*", "&", "!"),
    *("%", "|", ">", "<", "?", "-", "--", "..", "/", "../../etc/passwd", "`id`", "$(id)", "{{ 7*7 }}", "null", "true"),
    *("A" * 400, "[" * 60, "{" * 60),
)
_WORDS = re.compile(r"[\w.]+|[^\w\s]|\s+")
_NUMBER = re.compile(r"\d+")


def changed_text(rng: Random, text: str, others: list[str], words: list[str]) -> str:
    """Apply one to four changes. `others` are valid texts of the same kind, `words` its keywords."""
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 4))):
        text = rng.choice(_TEXT_CHANGES)(rng, text, others, words)
    return text


def _line(rng: Random, text: str, others: list[str], _words: list[str]) -> str:
    lines = text.split("\n")
    place = rng.randrange(len(lines))
    match rng.randrange(5):
        case 0:
            del lines[place]
        case 1:
            lines.insert(place, lines[rng.randrange(len(lines))])
        case 2:
            lines[place : place + 1] = lines[place : place + 1] * rng.choice((2, 3, 30))
        case 3:
            other = rng.choice(others).split("\n")
            lines.insert(place, rng.choice(other))
        case 4:
            lines = lines[:place]
    return "\n".join(lines)


def _word(rng: Random, text: str, others: list[str], words: list[str]) -> str:
    found = _WORDS.findall(text) or [""]
    place = rng.randrange(len(found))
    match rng.randrange(6):
        case 0:
            found[place] = rng.choice(words)
        case 1:
            found.insert(place, f" {rng.choice(words)} ")
        case 2:
            found[place] = ""
        case 3:
            other = rng.randrange(len(found))
            found[place], found[other] = found[other], found[place]
        case 4:
            found[place] = found[place][: rng.randrange(len(found[place]) + 1)]
        case 5:
            found[place] = f'"{found[place]}"'
    return "".join(found)


def _number(rng: Random, text: str, _others: list[str], _words: list[str]) -> str:
    found = [*_NUMBER.finditer(text)]
    if not found:
        return text + rng.choice(NUMBERS)
    one = rng.choice(found)
    return text[: one.start()] + rng.choice(NUMBERS) + text[one.end() :]


def _character(rng: Random, text: str, _others: list[str], _words: list[str]) -> str:
    place = rng.randrange(len(text) + 1)
    kept = place + rng.choice((0, 0, 1, 1, 5))
    put = rng.choice(ODD) if rng.random() < 0.8 else chr(rng.choice((rng.randrange(128), 0x20AC, 0x10FFFF)))
    return text[:place] + put + text[kept:]


_TEXT_CHANGES = (_line, _word, _word, _number, _character)

#: Values of every type in JSON and YAML, and some that only Python has.
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 255, 65536, 1 << 31, 1 << 32, 1 << 53, 1 << 63, 1 << 64, 10**30, -(10**30)),
    *(0.0, 0.5, -0.5, 1e-9, 1e-300, 1e300, float("inf"), float("-inf"), float("nan")),
    *("", "x", "0", "-", "1-2", "é", "\x1b[31m", "\0", "A" * 400, "198.18.0.0/16", "::/0", "capacity", "udp"),
    *([], [[]], [None], [1, 2], ["x"], {}, {"": {}}, {"id": "x"}, {"x": 1}),
)


def changed_data(rng: Random, data: Any, values: list[Any]) -> Any:
    """A copy of JSON-like data with one to four changes."""
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 4))):
        data = _descended(rng, data, values)
    return data


def _descended(rng: Random, data: Any, values: list[Any]) -> Any:
    if isinstance(data, dict) and data and rng.random() < 0.9:
        key = rng.choice([*data])
        return {**data, key: _descended(rng, data[key], values)}
    if isinstance(data, list) and data and rng.random() < 0.9:
        place = rng.randrange(len(data))
        return [*data[:place], _descended(rng, data[place], values), *data[place + 1 :]]
    return _replaced(rng, data, values)


def _replaced(rng: Random, data: Any, values: list[Any]) -> Any:
    kind = rng.randrange(4)
    if isinstance(data, dict) and kind < 3:
        made = dict(data)
        key = rng.choice([*made, "x"])
        if kind == 0:
            made.pop(key, None)
        else:
            made[rng.choice((key, "x", "", "id", 7, key))] = rng.choice(values if kind == 1 else VALUES)
        return made
    if isinstance(data, list) and kind < 3:
        again = data[rng.randrange(len(data))] if data else rng.choice(values)
        return [*data, again if kind else rng.choice(values)] if kind < 2 else data[: len(data) // 2]
    if isinstance(data, int | float) and not isinstance(data, bool) and kind < 2:
        return rng.choice((data + 1, data - 1, -data, data * 2, data * 10**6, data / 3, 0, float(data), str(data)))
    if isinstance(data, str) and kind < 2:
        place = rng.randrange(len(data) + 1)
        return data[:place] + rng.choice(ODD + NUMBERS) + data[place + kind :]
    return rng.choice(VALUES if kind % 2 else values)


def values_in(data: Any) -> list[Any]:
    """All values in `data`, at every depth."""
    inner = data.values() if isinstance(data, dict) else data if isinstance(data, list) else ()
    return [*inner, *(value for one in inner for value in values_in(one))]
