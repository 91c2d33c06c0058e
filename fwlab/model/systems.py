# SPDX-License-Identifier: GPL-2.0-or-later
"""A lab for several systems: which of them measures a case or an exercise, and what is left of the lab on one of them.

A DUT runs one system at a time. A run measures the cases and exercises of that system; a report shows the runs of all
systems side by side.
"""

from collections.abc import Callable, Iterable

from fwlab.model.case import Case, Sweep
from fwlab.model.lab import Lab, Needs


def several(lab: Lab) -> bool:
    """Whether the lab's cases need more than one system."""
    return len(lab.whole.needs.systems) > 1


def with_systems(lab: Lab, of_ruleset: Callable[[str], set[str]]) -> Lab:
    """The lab with the system of each case and exercise filled in; the same lab if it has one system.

    of_ruleset  the systems whose tools load a folder below rulesets/; none for one without files
    Raises ValueError naming the item whose system is unknown, or is not the one that it says.
    """
    if not several(lab):
        return lab

    def settled(what: str, ruleset: str, said: str | None) -> dict[str, str]:
        found = of_ruleset(ruleset)
        choice = " or ".join(f"`system: {system}`" for system in lab.needs.systems)
        if not found and said is None:
            raise ValueError(f"{what}: rulesets/{ruleset} has no file that tells the system; write {choice}")
        if len(found) > 1:
            raise ValueError(
                f"{what}: rulesets/{ruleset} has files for {' and '.join(sorted(found))}; keep one system's"
            )
        for system in found:
            if said not in (None, system):
                raise ValueError(f"{what}: system is {said}, but rulesets/{ruleset} has files for {system}")
            if system not in lab.needs.systems:
                raise ValueError(f"{what}: rulesets/{ruleset} needs {system}, which needs.systems does not name")
        return {"system": said or next(iter(found))}

    def case(item: Case | Sweep, kind: str) -> dict[str, str]:
        return settled(f"{kind} {item.id}", item.ruleset, item.system)

    found = _replaced(
        lab,
        single_cases=[item.model_copy(update=case(item, "case")) for item in lab.single_cases],
        sweeps=[item.model_copy(update=case(item, "sweep")) for item in lab.sweeps],
        exercises=[
            item.model_copy(update=settled(f"exercise {item.id}", f"{item.id}/start", item.system))
            for item in lab.exercises
        ],
    )
    _reject_mixed(found)
    return found


def on_system(lab: Lab, system: str) -> Lab:
    """What a DUT with this system measures of the lab: its cases and exercises, with its baseline.

    A lab for one system, or for others than this one, is returned as it is.
    """
    whole = lab.whole
    if not several(whole) or system not in whole.needs.systems:
        return lab
    cases = {name for name, case in whole.cases.items() if case.system == system}
    sweeps = [item for item in whole.sweeps if item.system == system]
    named = cases | {item.id for item in sweeps}
    exercises = [item for item in whole.exercises if item.system == system]
    baseline = whole.declared_baseline
    part = _replaced(
        whole,
        needs=whole.needs if system == Needs().systems[0] else Needs(systems=whole.needs.systems),
        declared_baseline=baseline if isinstance(baseline, str) else baseline[system],
        single_cases=[item for item in whole.single_cases if item.system == system],
        sweeps=sweeps,
        exercises=exercises,
        parts=[item.only(named, {exercise.id for exercise in exercises}) for item in whole.parts],
        crossovers=[item for item in whole.crossovers if {item.slower, item.faster} <= named],
        declared_expectations=[item for item in whole.declared_expectations if set(item.cases) <= named],
    )
    part._whole = whole
    return part


def _replaced(lab: Lab, **fields: object) -> Lab:
    """A copy with other fields, and without what was computed from them."""
    copied = lab.model_copy(update=fields)
    for computed in ("cases", "traffic"):
        copied.__dict__.pop(computed, None)
    return copied


def _reject_mixed(lab: Lab) -> None:
    """A ratio is between two cases of one session, so of one system. Raises ValueError."""
    system = {name: case.system for name, case in lab.cases.items()}
    if isinstance(lab.declared_baseline, str):
        raise ValueError(f"baseline: name one case for each of needs.systems: {', '.join(lab.needs.systems)}")
    for wanted, case in lab.declared_baseline.items():
        if system[case] != wanted:
            raise ValueError(f"baseline: {case} is measured on {system[case]}, not on {wanted}")

    def refuse(what: str, cases: Iterable[str]) -> None:
        found = list(dict.fromkeys(system[case] for case in cases))
        if len(found) > 1:
            raise ValueError(f"{what}: its cases are measured on {' and '.join(map(str, found))}, never side by side")

    for expectation in lab.declared_expectations:
        names = [*expectation.cases, *([expectation.ratio_to] if expectation.ratio_to else [])]
        refuse(f"expectation {expectation.id}", lab.cases_named(names))
    for exercise in lab.exercises:
        for check in exercise.checks:
            for case in check.cases:
                if system[case] != exercise.system:
                    where = f"exercise {exercise.id}, check {check.id}"
                    raise ValueError(f"{where}: {case} is measured on {system[case]}, not on {exercise.system}")
