# SPDX-License-Identifier: GPL-2.0-or-later
"""Does iptables-restore-translate change what rules do? Over this project's own rulesets, on this host's kernel.

    python -m tests.bench.translations OUT.json.gz tests|LAB...

The rulesets are those of the tests of `fwlab compare`, or of a lab: of its cases, and each exercise's start, reference,
mistake and variants; each text once, with at most MOST rules. A ruleset whose translation leaves a rule out, as a
comment, is not compared. Exit code: 0.
"""

from __future__ import annotations

import datetime
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fwlab.checkout.project import find_project
from fwlab.checkout.raw_results import write_document
from fwlab.grading.lab_rulesets import load_variants, variant_folder
from fwlab.measure.labs import load_lab
from fwlab.measure.plan import PARTS
from fwlab.measure.provenance import commit, host_facts
from fwlab.model.errors import BadInput, CannotMeasure, Refused
from fwlab.model.ruleset import RulesetFile
from fwlab.own import bench_client
from fwlab.own.bench_client import loaded, opened
from fwlab.own.comparing import compare
from fwlab.own.layout import layout_of
from fwlab.own.showing import difference_in_words
from fwlab.rulesets.files import lab_ruleset
from fwlab.rulesets.kinds.iptables import CHAINS
from tests.checkout import TOPOLOGY
from tests.unit.own.pairs import DIFFERENT, EQUAL

KINDS, MOST = ("iptables", "ip6tables"), 100
#: The part of the corpus that is no lab.
TESTS = "tests"
_RULE = re.compile(r"^(?:\[\d+:\d+\] )?-[AI] ", re.MULTILINE)
#: A rule that iptables-restore-translate leaves out.
_LOST = re.compile(r"^# (-t .*)$", re.MULTILINE)


def rulesets(part: str) -> Iterator[tuple[str, list[RulesetFile]]]:
    """Names and files: those of iptables, and the sets that they name."""
    project = find_project()
    if part != TESTS:
        lab = load_lab(project, part)
        folders = [(lab.folder / "rulesets" / case.ruleset, case.parameters) for case in lab.cases.values()]
        for exercise in lab.exercises:
            own = [lab.folder / "rulesets" / exercise.id / part for part in PARTS]
            own += [variant_folder(lab, exercise, one) for one in load_variants(project, lab, exercise).names]
            folders += [(folder, exercise.parameters) for folder in own]
        for folder, parameters in folders:
            try:
                files = lab_ruleset(folder, parameters, TOPOLOGY)
            except BadInput:
                continue  # of another system, or one that is to be refused
            if any(file.kind in KINDS for file in files):
                kept = [file for file in files if file.kind in (*KINDS, "ipset")]
                yield str(folder.relative_to(project.labs)), kept
        return
    for name, pair in {**EQUAL, **DIFFERENT}.items():
        for side, rules in zip(("old", "new"), pair[:2], strict=True):
            if rules.kind in KINDS:
                yield f"tests/unit/own: {name}, {side}", [RulesetFile("rules", rules.kind, rules.text)]


def as_saved(file: RulesetFile) -> RulesetFile:
    """With a line for each built-in chain, as iptables-save writes them: the tool makes chains from these alone."""
    if file.kind not in KINDS:
        return file

    def declared(found: re.Match[str]) -> str:
        table, rest = found["name"], found["rest"]
        missing = [name for name in CHAINS[table] if not re.search(rf"^:{name} ", rest, re.MULTILINE)]
        return "".join([f"*{table}\n", *(f":{name} ACCEPT [0:0]\n" for name in missing), rest])

    text = re.sub(r"^\*(?P<name>\w+)\n(?P<rest>.*?^COMMIT)", declared, file.text, flags=re.MULTILINE | re.DOTALL)
    return RulesetFile(file.name, file.kind, text)


def translated(files: list[RulesetFile]) -> tuple[list[RulesetFile], list[str]]:
    """The files as the tool prints them, and the rules that it leaves out. Raises Refused with its message."""
    found, lost = [], []
    with opened(bench_client.here, "translation") as bench:
        for file in files:
            text = bench.translated(file) if file.kind in KINDS else file.text
            lost += _LOST.findall(text) if file.kind in KINDS else []
            found.append(RulesetFile(file.name, "nft" if file.kind in KINDS else file.kind, text))
    return found, lost


def outcome(files: list[RulesetFile]) -> dict[str, Any]:
    """What the translation does: "not translated", "not loaded", "same" or "differs", and the details."""
    try:
        made, lost = translated(files)
    except (Refused, CannotMeasure) as error:
        return {"outcome": "not translated", "why": error.message}
    if lost:
        return {"outcome": "not translated", "why": "rules are left out", "lost": lost}
    with opened(bench_client.here, "given") as old, opened(bench_client.here, "translated") as new:
        try:
            before = loaded(old, files)
        except BadInput as error:
            return {"outcome": "not tried", "why": error.message}
        try:
            after = loaded(new, made)
        except BadInput as error:
            return {"outcome": "not loaded", "why": error.message}
        found = compare(old, new, (before, after), layout_of((before, after)), 1, lambda _: None, most=3)
    if not found.differences:
        return {"outcome": "same", "conversations": found.conversations}
    words = [difference_in_words(one, found) for one in found.differences]
    return {"outcome": "differs", "conversations": found.conversations, "differences": words}


def main() -> int:
    """Try each ruleset, and write what was found after each."""
    project, path = find_project(), Path(sys.argv[1])
    version = subprocess.run(["iptables-nft", "--version"], capture_output=True, text=True, check=True).stdout.strip()
    document: dict[str, Any] = {
        "started": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "commit": commit(project),
        "host": host_facts().model_dump(mode="json"),
        "tool": version,
        "rulesets": {},
    }
    seen: set[tuple[str, ...]] = set()
    for name, files in (one for part in sys.argv[2:] for one in rulesets(part)):
        files = [as_saved(file) for file in files]
        text = tuple(file.text for file in files)
        rules = sum(len(_RULE.findall(one)) for one in text)
        if text in seen or not 0 < rules <= MOST:
            continue
        seen.add(text)
        document["rulesets"][name] = {"rules": rules, **outcome(files)}
        print(f"{name}: {document['rulesets'][name]['outcome']}", flush=True)
        write_document(path, json.dumps(document, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
