# SPDX-License-Identifier: GPL-2.0-or-later
"""The lab's own rulesets that test its exercises: variants, and what must not pass.

variants.yml lists those that an author wrote; non-solutions are made from the lab's folder: nothing, accept all, drop
all, the start with a cosmetic change, every other exercise's start and reference, and a case of each ruleset of the
lab's table.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from fwlab.checkout.project import Project, display_path, read_yaml
from fwlab.measure.context import RunContext
from fwlab.measure.plan import PARTS, reject_settings
from fwlab.model.errors import BadInput
from fwlab.model.lab import Exercise, Lab
from fwlab.model.ruleset import RulesetFile
from fwlab.model.topology import Topology
from fwlab.model.variants import Variants
from fwlab.rulesets.files import lab_ruleset, rendered
from fwlab.rulesets.registry import KINDS

DECLARED = "variants.yml"
FOLDERS = "variants"
#: What the names of variants begin with in marks.
RIGHT, WRONG = "right-", "wrong-"


def variant_folder(lab: Lab, exercise: Exercise, name: str) -> Path:
    """The folder that holds a variant's files."""
    return lab.folder / "rulesets" / exercise.id / FOLDERS / name


def load_variants(project: Project, lab: Lab, exercise: Exercise) -> Variants:
    """The exercise's variants; none if it has neither the file nor the folder.

    Raises BadInput, naming the file, if the two do not match.
    """
    path = lab.folder / "rulesets" / exercise.id / DECLARED
    folders = path.parent / FOLDERS
    where = display_path(project, path)
    if not path.exists():
        if folders.exists():
            raise BadInput(f"{where} is missing, but {FOLDERS}/ exists", f"list the folders of {FOLDERS}/ in {where}")
        return Variants()
    variants = read_yaml(project, path, Variants)
    try:
        variants.reject_unknown({check.id for check in exercise.checks})
    except ValueError as error:
        raise BadInput(f"{where}: {error}", f"correct {where}") from error
    there = {item.name for item in folders.iterdir()} if folders.is_dir() else set()
    for name in variants.names:
        if not (folders / name).is_dir():
            raise BadInput(f"{where}: {name} has no folder {FOLDERS}/{name}", "add the folder or remove the entry")
    for name in sorted(there - set(variants.names)):
        raise BadInput(f"{where}: does not list {FOLDERS}/{name}", "add an entry to right or wrong")
    return variants


NOTHING, COSMETIC = "nothing", "cosmetic"
#: Maximum length of a list when rulesets are compared: the longest take seconds to render.
MAX_COMPARED = 3000


def said(texts: Iterable[str]) -> list[list[str]]:
    """What the files say: the lines of each without comments and blanks, whatever the names of the files."""
    files = ([" ".join(line.partition("#")[0].split()) for line in text.splitlines()] for text in texts)
    return sorted(lines for file in files if (lines := [line for line in file if line]))


#: The lines of each file, and the lengths of lists that were cut.
Said = tuple[list[list[str]], list[tuple[str, int]]]


@dataclass(frozen=True)
class Made:
    """How a ruleset is made: from a folder of the lab with these parameters, each file with `more` behind it, or of
    one file.
    """

    folder: Path | None = None
    parameters: dict[str, Any] = field(default_factory=dict)
    more: str = ""
    file: RulesetFile | None = None

    def files(self, topology: Topology) -> list[RulesetFile]:
        """The ruleset. Raises BadInput for a folder that is none."""
        if self.folder is None:
            return [] if self.file is None else [self.file]
        ruleset = lab_ruleset(self.folder, self.parameters, topology)
        return [RulesetFile(file.name, file.kind, file.text + self.more) for file in ruleset]

    def says(self, topology: Topology) -> Said:
        """What tells rulesets apart: the lines without comments, and the lengths of lists that were cut."""
        if self.folder is None:
            return said([] if self.file is None else [self.file.text]), []
        cut = {
            name: value for name, value in self.parameters.items() if isinstance(value, int) and value > MAX_COMPARED
        }
        short = self.parameters | dict.fromkeys(cut, MAX_COMPARED)
        return said(text for _, text in rendered(self.folder, short, topology)), sorted(cut.items())


def non_solutions(context: RunContext) -> dict[str, dict[str, Made]]:
    """By exercise and name, rulesets that must fail, but for those that variants.yml names under `also_right`.

    One that says the same as a wrong ruleset of the exercise is left out, since that is graded already. So is another
    exercise's reference that says the same as a right one; but no start and no case of the table may be right.
    Raises BadInput for an unknown name in variants.yml.
    """
    lab, topology = context.lab, context.topology

    def read(rulesets: Iterable[tuple[str, Made]]) -> dict[str, tuple[Made, Said]]:
        return {name: (made, made.says(topology)) for name, made in rulesets}

    own = {exercise.id: read(_own_rulesets(context, exercise)) for exercise in lab.exercises}
    cases = read(_cases(context))
    found: dict[str, dict[str, Made]] = {}
    for exercise in lab.exercises:
        mine, variants = own[exercise.id], load_variants(context.project, lab, exercise)
        right = [mine[name][1] for name in ("reference", *variants.right)]
        seen = [says for _, says in mine.values() if says not in right]
        every = read(_universal(exercise, mine["start"][0]).items())
        for part in ("start", "reference"):
            every |= {f"{part}-{other}": own[other][part] for other in own if other != exercise.id}
        found[exercise.id] = {}
        for name, (made, same) in (every | cases).items():
            if name != COSMETIC and (same in seen or (same in right and name.startswith("reference-"))):
                continue
            seen.append(same)
            found[exercise.id][name] = made
        _reject_unknown(variants, exercise, found[exercise.id])
    return found


def _own_rulesets(context: RunContext, exercise: Exercise) -> Iterator[tuple[str, Made]]:
    """The exercise's own rulesets, by folder."""
    home = context.lab.folder / "rulesets" / exercise.id
    variants = load_variants(context.project, context.lab, exercise).names
    folders = ((name, variant_folder(context.lab, exercise, name)) for name in variants)
    for name, folder in chain(((part, home / part) for part in PARTS), folders):
        yield name, Made(folder, exercise.parameters)


def _cases(context: RunContext) -> Iterator[tuple[str, Made]]:
    """Of each ruleset that cases have, the last case's: of a sweep the longest list."""
    last = {case.ruleset: case for case in context.lab.cases.values()}
    for case in last.values():
        yield f"case-{case.id}", Made(context.lab.folder / "rulesets" / case.ruleset, case.parameters)


def _universal(exercise: Exercise, start: Made) -> dict[str, Made]:
    """What needs no knowledge of the exercise."""
    of_system = [kind for kind in KINDS.values() if kind.extremes and kind.system == (exercise.system or "linux")]
    admitted = [kind for kind in of_system if _admits(exercise, kind.name)]
    admitted.sort(key=lambda kind: kind.machine_setting)  # rules, unless the exercise is about settings alone
    found = {NOTHING: Made()}
    for name, text in admitted[0].extremes.items() if admitted else ():
        file = f"all{admitted[0].suffix}" if admitted[0].suffix.startswith(".") else admitted[0].suffix
        found[name] = Made(file=RulesetFile(file, admitted[0].name, text))
    found[COSMETIC] = Made(start.folder, start.parameters, more="\n# Looked at, and found right.\n")
    return found


def _admits(exercise: Exercise, kind: str) -> bool:
    """Whether an exercise accepts files of this kind."""
    try:
        reject_settings(exercise, [RulesetFile("file", kind, "")])
    except BadInput:
        return False
    return True


def _reject_unknown(variants: Variants, exercise: Exercise, found: dict[str, Made]) -> None:
    for name in variants.also_right:
        if name not in found:
            known = ", ".join(found)
            raise BadInput(
                f"{exercise.id}/variants.yml: also_right: there is no {name}; there are: {known}",
                f"correct {exercise.id}/variants.yml",
            )
