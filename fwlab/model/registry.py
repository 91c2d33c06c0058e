# SPDX-License-Identifier: GPL-2.0-or-later
"""Registries: the kinds of a concept (ruleset kinds, metrics, links, ...) by name, complete or not there at all.

A built-in kind is a module of the concept's package that declares one object under an agreed name. A kind from
elsewhere is an entry point of the concept's group, so that adding one changes no line here.
"""

import importlib
import pkgutil
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from importlib.metadata import EntryPoints, SelectableGroups

Kind = TypeVar("Kind")


class IncompleteKind(ImportError):
    """A kind lacks something that its protocol asks for, or shares its name with another."""


class Registry(Mapping[str, Kind], Generic[Kind]):
    """Kinds by name, in the order of `position` where they declare one, else by name. Cannot be changed.

    `required` names the attributes that each kind must have; `name` is always one of them. `origins` says where each
    kind comes from: a module's name, or MODULE:OBJECT for a kind from an entry point.
    Raises IncompleteKind, which names the kind and where it comes from.
    """

    def __init__(self, concept: str, kinds: Iterable[tuple[str, Kind]], required: Iterable[str] = ()) -> None:
        self.concept = concept
        found: dict[str, tuple[str, Kind]] = {}
        for origin, kind in kinds:
            missing = [name for name in dict.fromkeys(("name", *required)) if not hasattr(kind, name)]
            if missing:
                raise IncompleteKind(f"{concept} in {origin}: {', '.join(missing)} missing")
            name = str(kind.name)  # type: ignore[attr-defined]  # checked above
            if name in found:
                raise IncompleteKind(f"{concept} {name!r} is declared twice: in {found[name][0]} and in {origin}")
            found[name] = origin, kind
        ordered = sorted(found, key=lambda name: (getattr(found[name][1], "position", 0), name))
        self._kinds = MappingProxyType({name: found[name][1] for name in ordered})
        self.origins = MappingProxyType({name: found[name][0] for name in ordered})

    def __getitem__(self, name: str) -> Kind:
        return self._kinds[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._kinds)

    def __len__(self) -> int:
        return len(self._kinds)


def required_by(protocol: type) -> list[str]:
    """The attributes and methods that a protocol, and those that it extends, ask of a kind."""
    declared = [vars(one) for one in reversed(protocol.__mro__[:-1])]
    names = [name for one in declared for name in (*one.get("__annotations__", ()), *one)]
    return [name for name in dict.fromkeys(names) if not name.startswith("_")]


def discover(
    concept: str, package: str | None, attribute: str, group: str | None, protocol: type, *, packages: bool = False
) -> Registry[Kind]:
    """All kinds of one concept.

    package    its modules are searched for `attribute`; a module without it is a helper. None: no kind is built in
    attribute  the name under which a module declares its kind; a tuple declares several
    group      the group of entry points that kinds from elsewhere are registered in; None takes the package's alone
    protocol   what each kind must have
    packages   only the packages in `package` are searched: its modules are helpers, and slow to import

    Also works where the package is inside a zip file.
    """
    found: list[tuple[str, Kind]] = []
    path = importlib.import_module(package).__path__ if package is not None else []
    for module in pkgutil.iter_modules(path, f"{package}."):
        if packages and not module.ispkg:
            continue
        declared = getattr(importlib.import_module(module.name), attribute, None)
        if declared is not None:
            found += [(module.name, kind) for kind in (declared if isinstance(declared, tuple) else (declared,))]
    if group is not None:
        found += [(entry.value, entry.load()) for entry in _entry_points().select(group=group)]
    return Registry(concept, found, required_by(protocol))


@cache
def _entry_points() -> "EntryPoints | SelectableGroups":
    """Those of all distributions. Reading them takes some milliseconds, which no concept's registry need repeat."""
    from importlib.metadata import entry_points  # a large import, which the agent on a DUT does without

    return entry_points()
