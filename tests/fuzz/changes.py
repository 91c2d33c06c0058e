# SPDX-License-Identifier: GPL-2.0-or-later
"""Random changes: of a text, by lines, words and characters; of data, by values, fields and shapes."""

from __future__ import annotations

import re
from random import Random
from typing import Any

#: What numbers are replaced by: ends of their ranges, and what is hardly one.
NUMBERS = (
    *("0", "-1", "1", "255", "256", "65535", "65536", "4294967295", "4294967296", "9223372036854775808", "1e400"),
    *("0x7fffffff", "0xffffffffffffffffff", "007", "08", "1.5", ".5", "1e-400", "nan", "inf", "-0", "1_000", "1:1:1"),
    *("٣", "1" * 30, "9" * 5000),
)
#: What may stand anywhere and seldom should.
ODD = (
    *("", " ", "\t", "\n", "\r\n", "\r", "\0", "\x0b", "\x1b[31m", "\x7f", "\x85", "\u2028", "\ufeff", "\u202e", "é"),
    *("😀", '"', "'", "\\", "\\\n", "#", ";", "{", "}", "[", "]", "(", ")", ",", ":", "=", "@", "$", "*", "&", "!"),
    *("%", "|", ">", "<", "?", "-", "--", "..", "/", "../../etc/passwd", "`id`", "$(id)", "{{ 7*7 }}", "null", "true"),
    *("A" * 400, "[" * 60, "{" * 60),
)
_WORDS = re.compile(r"[\w.]+|[^\w\s]|\s+")
_NUMBER = re.compile(r"\d+")


def changed_text(chance: Random, text: str, others: list[str], words: list[str]) -> str:
    """One to four changes; `others` are valid texts of the same kind, `words` what its language knows."""
    for _ in range(chance.choice((1, 1, 1, 2, 2, 3, 4))):
        text = chance.choice(_TEXT_CHANGES)(chance, text, others, words)
    return text


def _line(chance: Random, text: str, others: list[str], _words: list[str]) -> str:
    lines = text.split("\n")
    place = chance.randrange(len(lines))
    match chance.randrange(5):
        case 0:
            del lines[place]
        case 1:
            lines.insert(place, lines[chance.randrange(len(lines))])
        case 2:
            lines[place : place + 1] = lines[place : place + 1] * chance.choice((2, 3, 30))
        case 3:
            other = chance.choice(others).split("\n")
            lines.insert(place, chance.choice(other))
        case 4:
            lines = lines[:place]
    return "\n".join(lines)


def _word(chance: Random, text: str, others: list[str], words: list[str]) -> str:
    found = _WORDS.findall(text) or [""]
    place = chance.randrange(len(found))
    match chance.randrange(6):
        case 0:
            found[place] = chance.choice(words)
        case 1:
            found.insert(place, f" {chance.choice(words)} ")
        case 2:
            found[place] = ""
        case 3:
            other = chance.randrange(len(found))
            found[place], found[other] = found[other], found[place]
        case 4:
            found[place] = found[place][: chance.randrange(len(found[place]) + 1)]
        case 5:
            found[place] = f'"{found[place]}"'
    return "".join(found)


def _number(chance: Random, text: str, _others: list[str], _words: list[str]) -> str:
    found = [*_NUMBER.finditer(text)]
    if not found:
        return text + chance.choice(NUMBERS)
    one = chance.choice(found)
    return text[: one.start()] + chance.choice(NUMBERS) + text[one.end() :]


def _character(chance: Random, text: str, _others: list[str], _words: list[str]) -> str:
    place = chance.randrange(len(text) + 1)
    kept = place + chance.choice((0, 0, 1, 1, 5))
    put = chance.choice(ODD) if chance.random() < 0.8 else chr(chance.choice((chance.randrange(128), 0x20AC, 0x10FFFF)))
    return text[:place] + put + text[kept:]


_TEXT_CHANGES = (_line, _word, _word, _number, _character)

#: Values of every shape that JSON and YAML know, and some that only Python does.
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 255, 65536, 1 << 31, 1 << 32, 1 << 53, 1 << 63, 1 << 64, 10**30, -(10**30)),
    *(0.0, 0.5, -0.5, 1e-9, 1e-300, 1e300, float("inf"), float("-inf"), float("nan")),
    *("", "x", "0", "-", "1-2", "é", "\x1b[31m", "\0", "A" * 400, "198.18.0.0/16", "::/0", "capacity", "udp"),
    *([], [[]], [None], [1, 2], ["x"], {}, {"": {}}, {"id": "x"}, {"x": 1}),
)


def changed_data(chance: Random, data: Any, values: list[Any]) -> Any:
    """One to four changes of JSON-like data, which stays as it was: what is changed is copied on the way down."""
    for _ in range(chance.choice((1, 1, 1, 2, 2, 3, 4))):
        data = _descended(chance, data, values)
    return data


def _descended(chance: Random, data: Any, values: list[Any]) -> Any:
    if isinstance(data, dict) and data and chance.random() < 0.9:
        key = chance.choice([*data])
        return {**data, key: _descended(chance, data[key], values)}
    if isinstance(data, list) and data and chance.random() < 0.9:
        place = chance.randrange(len(data))
        return [*data[:place], _descended(chance, data[place], values), *data[place + 1 :]]
    return _replaced(chance, data, values)


def _replaced(chance: Random, data: Any, values: list[Any]) -> Any:
    kind = chance.randrange(4)
    if isinstance(data, dict) and kind < 3:
        made = dict(data)
        key = chance.choice([*made, "x"])
        if kind == 0:
            made.pop(key, None)
        else:
            made[chance.choice((key, "x", "", "id", 7, key))] = chance.choice(values if kind == 1 else VALUES)
        return made
    if isinstance(data, list) and kind < 3:
        again = data[chance.randrange(len(data))] if data else chance.choice(values)
        return [*data, again if kind else chance.choice(values)] if kind < 2 else data[: len(data) // 2]
    if isinstance(data, int | float) and not isinstance(data, bool) and kind < 2:
        return chance.choice((data + 1, data - 1, -data, data * 2, data * 10**6, data / 3, 0, float(data), str(data)))
    if isinstance(data, str) and kind < 2:
        place = chance.randrange(len(data) + 1)
        return data[:place] + chance.choice(ODD + NUMBERS) + data[place + kind :]
    return chance.choice(VALUES if kind % 2 else values)


def values_in(data: Any) -> list[Any]:
    """Every value within, at every depth."""
    inner = data.values() if isinstance(data, dict) else data if isinstance(data, list) else ()
    return [*inner, *(value for one in inner for value in values_in(one))]
