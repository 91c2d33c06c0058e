# SPDX-License-Identifier: GPL-2.0-or-later
"""What lab.yml says of its systems: a baseline for each, and the system that a case or an exercise names itself."""

from collections.abc import Container, Mapping, Sequence

#: One case for all systems, or one for each by name.
Declared = str | dict[str, str]


def refuse_unknown_baselines(declared: Declared, systems: Sequence[str], cases: Container[str]) -> None:
    """`systems`: needs.systems. Raises ValueError naming the case or the systems."""
    if not isinstance(declared, str) and (len(systems) == 1 or declared.keys() != set(systems)):
        raise ValueError(f"baseline: name one case, or one for each of needs.systems: {', '.join(systems)}")
    for case in [declared] if isinstance(declared, str) else declared.values():
        if case not in cases:
            raise ValueError(f"baseline: unknown case {case}")


def refuse_unknown_systems(said: Mapping[str, str | None], systems: Sequence[str]) -> None:
    """`said`: by the id of a case, a sweep or an exercise, the system that it names. Raises ValueError."""
    for name, system in said.items():
        if system is not None and system not in systems:
            raise ValueError(f"{name}: system {system} is none of needs.systems: {', '.join(systems)}")
