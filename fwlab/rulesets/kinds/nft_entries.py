# SPDX-License-Identifier: GPL-2.0-or-later
"""How much of a listed nftables ruleset a packet can meet: rules, and elements of the sets and maps that they ask."""

from collections.abc import Iterable, Iterator
from typing import Any

#: Hooks of the machine's own packets. What is measured passes through the machine.
OWN_HOOKS = frozenset({"input", "output"})
#: Statements whose texts are free.
_FREE = frozenset({"log", "comment"})
#: (family, table, name); the name of a set or map begins with @.
_Key = tuple[str, str, str]


def entries(listed: Iterable[dict[str, Any]]) -> int:
    """Count the items of `nft -j list ruleset` that can be reached from a chain with a hook."""
    held: dict[_Key, list[Any]] = {}
    sets: dict[_Key, int] = {}
    todo: list[_Key] = []
    for kind, found in (pair for item in listed for pair in item.items()):
        if kind == "set":
            sets[_key(found, "@" + found["name"])] = len(found.get("elem", []))
        elif kind == "map":
            held[_key(found, "@" + found["name"])] = found.get("elem", [])
        elif kind == "rule":
            held.setdefault(_key(found, found["chain"]), []).append(found["expr"])
        elif kind == "chain" and found.get("hook") not in (None, *OWN_HOOKS):
            todo.append(_key(found, found["name"]))
    count, reached = 0, set(todo)
    while todo:
        key = todo.pop()
        inside = held.get(key, [])
        count += len(inside) + sets.get(key, 0)
        for value in _values(inside):
            if isinstance(value, list):
                count += len(value)
            elif (called := (*key[:2], value)) not in reached:
                reached.add(called)
                todo.append(called)
    return count


def _key(found: dict[str, Any], name: str) -> _Key:
    return found["family"], found["table"], name


def _values(inside: list[Any]) -> Iterator[str | list[Any]]:
    """The chains, sets and maps that rules or elements name, and the elements of sets without a name."""
    todo = list(inside)
    while todo:
        item = todo.pop()
        if isinstance(item, str) and item.startswith("@"):
            yield item
        elif isinstance(item, list):
            todo += item
        elif isinstance(item, dict):
            for word, value in item.items():
                if word in ("jump", "goto") and isinstance(value, dict) and "target" in value:
                    yield value["target"]
                elif word == "set" and isinstance(value, list):
                    yield value
                    if not isinstance(value[0], list):  # elements of a set lead nowhere, and there may be many
                        continue
                if word not in _FREE:
                    todo.append(value)
