# SPDX-License-Identifier: GPL-2.0-or-later
"""Every lab is complete: what its lab.yml names exists, its templates render, its guide's links have targets.

Labs are found, not listed, and the template for authors is one of them.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from fwlab.checkout.project import read_yaml
from fwlab.generator.traffic_store import TrafficStore
from fwlab.grading.record import lab_files
from fwlab.metrics.state_table import MAX_LOST
from fwlab.model.case import Case
from fwlab.model.check import Check
from fwlab.model.errors import BadInput
from fwlab.model.lab import Exercise, Lab
from fwlab.model.ruleset import RulesetFile
from fwlab.rulesets.files import lab_ruleset, systems_in
from fwlab.student.workbook import predictions_of
from fwlab.traffic.frames import Frames
from fwlab.traffic.headers import ipv4_numbers, read_headers
from tests.checkout import LAB_IDS, PROJECT, TOPOLOGY, lab_named, tables
from tools.pages import all_pages

TEMPLATE = "_template"
#: Packets of a traffic that is played, or that cases must know.
SOME = 20_000
STATES = ("start", "reference", "mistake")
SECTIONS = ("Question", "Predict", "Measure", "Explain", "When it does not hold")
#: How an IPv4 address of the traffic begins. Filler rules that must not match use others.
LAB_ADDRESS = ("198.18.", "198.19.")


def labs() -> dict[str, Lab]:
    found = {name: lab_named(name) for name in LAB_IDS}
    template = read_yaml(PROJECT, PROJECT.labs / TEMPLATE / "lab.yml", Lab)
    template._folder = PROJECT.labs / TEMPLATE
    return {**found, TEMPLATE: template}


LABS = labs()
LAB03 = LABS["lab03-ipset"]
CASES = [pytest.param(lab, case, id=f"{name}:{case.id}") for name, lab in LABS.items() for case in lab.cases.values()]
SWEEPS = [[c.id for c in lab.cases.values() if c.sweep == sweep.id] for lab in LABS.values() for sweep in lab.sweeps]
INNER = {step for steps in SWEEPS for step in steps[1:-1]}
EXERCISES = [
    pytest.param(lab, exercise, state, id=f"{name}:{exercise.id}:{state}")
    for name, lab in LABS.items()
    for exercise in lab.exercises
    for state in STATES
]
#: Pages that the site (test_site.py) has only where another page links them, without students' in work/<exercise>/.
NOTES = sorted(
    {page for page in PROJECT.labs.rglob("*.md") if page.parent.parent.name != "work"} - {*all_pages(PROJECT)}
)
each_lab = pytest.mark.parametrize("name", LABS)


def rendered(lab: Lab, ruleset: str, parameters: dict) -> list[RulesetFile]:
    return _rendered(lab.folder / "rulesets" / ruleset, tuple(parameters.items()))


@cache
def _rendered(folder: Path, parameters: tuple) -> list[RulesetFile]:
    """Cached, because a list of 265 000 entries takes long."""
    (system,) = systems_in(folder) or {"linux"}
    return lab_ruleset(folder, dict(parameters), TOPOLOGY.with_dut(system))


@cache
def listed(ruleset: str, **parameters: object) -> list[str]:
    """Single addresses in the rules and sets of a ruleset of lab03, without comments."""
    texts = (re.sub("^#.*", "", file.text, flags=re.MULTILINE) for file in rendered(LAB03, ruleset, parameters))
    return [found for text in texts for found in re.findall(r"(?<![\d./])\d+\.\d+\.\d+\.\d+(?![\d./])", text)]


@each_lab
def test_folder_is_complete(name: str) -> None:
    lab = LABS[name]
    missing = [file for file in ("README.md", "work/README.md", "work/.gitignore") if not (lab.folder / file).is_file()]
    assert not missing
    deciding = {PROJECT.root / file for file in lab_files(PROJECT, lab)}
    assert {lab.profile(traffic) for traffic in lab.traffic} - {None} <= deciding  # TCP connections have no profile


@each_lab
def test_every_ruleset_is_used(name: str) -> None:
    """A folder that no case or exercise names would never be loaded or tested."""
    lab = LABS[name]
    named = {case.ruleset for case in lab.cases.values()} | {exercise.id for exercise in lab.exercises}
    assert {path.name for path in (lab.folder / "rulesets").iterdir()} == named


@pytest.mark.parametrize(
    ("lab", "case"),
    [pytest.param(*p.values, id=p.id, marks=[pytest.mark.thorough] * (p.values[1].id in INNER)) for p in CASES],
)
def test_case_renders(lab: Lab, case: Case) -> None:
    """A folder with only a note is a ruleset that loads nothing."""
    note = lab.folder / "rulesets" / case.ruleset / "README.md"
    assert rendered(lab, case.ruleset, case.parameters) or note.is_file()


@pytest.mark.parametrize("case", LAB03.cases.values(), ids=lambda case: case.id)
def test_lab03_rulesets_have_the_declared_size(case: Case) -> None:
    """The declared number of rules that do not match, or of entries including the flood's sources."""
    addresses = listed(case.ruleset, **case.parameters)
    assert len(addresses) == len(set(addresses)), "an address is loaded twice"
    outside = sum(not address.startswith(LAB_ADDRESS) for address in addresses)
    assert len(addresses) == case.parameters.get("entries", case.parameters.get("rules", 0))
    assert len(addresses) - outside == case.parameters.get("sources", 0)


@pytest.mark.parametrize(("lab", "case"), [p for p in CASES if p.values[1].load == "each"])
def test_loading_one_by_one_splits_by_lines(lab: Lab, case: Case) -> None:
    """Each line of an nft file must be a complete command."""
    for file in rendered(lab, case.ruleset, case.parameters):
        if file.kind == "nft":
            verbs = {line.split()[0] for line in file.text.splitlines() if line and not line.startswith("#")}
            assert verbs == {"add"}


@pytest.mark.parametrize(("lab", "exercise", "state"), EXERCISES)
def test_exercise_renders(lab: Lab, exercise: Exercise, state: str) -> None:
    assert rendered(lab, f"{exercise.id}/{state}", exercise.parameters)


def test_lab03_references_hold_the_whole_blacklist() -> None:
    for exercise in LAB03.exercises[1:]:
        wanted = exercise.parameters.get("entries", exercise.parameters["attackers"])
        assert len(set(listed(f"{exercise.id}/reference", **exercise.parameters))) == wanted, exercise.id


@pytest.mark.parametrize("lab", LABS.values(), ids=LABS)
def test_start_reference_and_mistake_differ(lab: Lab) -> None:
    for exercise in lab.exercises:
        # Only loaded files count, not notes.
        rules = [
            [(f.name, _rules_only(f)) for f in rendered(lab, f"{exercise.id}/{state}", exercise.parameters)]
            for state in STATES
        ]
        assert rules[0] != rules[1] != rules[2] != rules[0], exercise.id


def _rules_only(file: RulesetFile) -> list[str]:
    return [line for line in file.text.splitlines() if line and not line.startswith("#")]


@each_lab
def test_templates_repeat_no_device_or_address_of_the_topology(name: str) -> None:
    """topology.yml is their only place, so that a change there needs no change in a lab."""
    topologies = [TOPOLOGY.with_dut(system) for system in TOPOLOGY.nodes["dut"].systems]
    ends = [end for topology in topologies for link in topology.links.values() for end in link.ends.values()]
    words = {w for end in ends for w in (end.dev, end.mac, end.ipv4.split("/")[0], end.ipv6.split("/")[0])}
    pattern = re.compile(r"(?<![\w.:])(" + "|".join(map(re.escape, sorted(words))) + r")(?![\w.:])")
    found = [
        f"{path.relative_to(PROJECT.root)}: {hit[0]}"
        for path in (LABS[name].folder / "rulesets").rglob("*")
        if path.is_file()
        for hit in pattern.finditer(path.read_text())
    ]
    assert not found


@each_lab
def test_profiles_play(name: str) -> None:
    """With the tunables of lab.yml. A table of other addresses than those of test traffic is refused."""
    lab, some = LABS[name], TrafficStore(PROJECT, TOPOLOGY, LABS[name], first=SOME)
    shared = {exercise.traffic for exercise in lab.exercises} if name != TEMPLATE else ()
    for traffic, declared in lab.traffic.items():
        if declared.profile is not None:
            (tables(name) if traffic in shared else some).table(traffic)


def test_the_time_of_day_is_in_no_frame_of_lab02() -> None:
    """scapy puts the time at which it was imported into ICMP's timestamp messages, so no two runs would be alike."""
    frames = tables("lab02-conntrack").table("talk").frames.matrix(54)
    timestamps = frames[(frames[:, 23] == socket.IPPROTO_ICMP) & np.isin(frames[:, 34], (13, 14))]
    assert len(timestamps)
    assert not timestamps[:, 42:].any()


FILLED = [
    pytest.param(lab, exercise, check, id=f"{name}:{exercise.id}")
    for name, lab in LABS.items()
    for exercise in lab.exercises
    for check in exercise.checks
    if check.metric == "states" and check.between[0] > 1
]


@pytest.mark.parametrize(("lab", "exercise", "check"), FILLED)
def test_limits_on_states_allow_for_lost_packets(lab: Lab, exercise: Exercise, check: Check) -> None:
    """Packets that a busy host loses must not fail a correct solution."""
    frames = TrafficStore(PROJECT, TOPOLOGY, lab).table(exercise.traffic).frames
    played = frames.matrix(38)[: exercise.state_packets, 26:]
    flows = len(np.unique(played, axis=0))
    assert check.between[0] <= flows * (1 - MAX_LOST)


def test_lab03_flood_sources_are_in_the_sets() -> None:
    """Packets of a missing source would pass and cost more."""
    floods = ("flood", "flood-one-source", "flood-random")
    store = TrafficStore(PROJECT, TOPOLOGY, LAB03, first=SOME)
    played = {name: sources_of(store.table(name).frames) for name in floods}
    assert len(played["flood-random"]) > 10_000, "an entry is seldom hit twice"
    sets = [case for case in LAB03.cases.values() if case.traffic and "entries" in case.parameters]
    assert len(sets) == 12
    for case in sets:
        hit = {address for address in listed(case.ruleset, **case.parameters) if address.startswith(LAB_ADDRESS)}
        # At random some entries are not hit.
        assert hit >= played[case.traffic] if case.traffic == "flood-random" else hit == played[case.traffic], case.id


def sources_of(frames: Frames) -> set[str]:
    numbers = np.unique(ipv4_numbers(read_headers(frames).src))
    return {str(ipaddress.IPv4Address(int(number))) for number in numbers}


def addresses_of(name: str) -> set[str]:
    return {str(ipaddress.IPv4Address(number)) for number in LAB03.classes[name].sources.numbers()}


def test_lab03_blacklists_have_all_attackers_and_no_other_source() -> None:
    attackers, others = addresses_of("blacklisted"), addresses_of("listed")
    assert (len(attackers), len(others)) == (1000, 4000)
    ex4 = LAB03.exercises[3]
    longest = set(listed(f"{ex4.id}/reference", **ex4.parameters))
    for exercise in LAB03.exercises[1:]:
        told = tables(LAB03.id).flows(exercise.traffic)
        sources = {name: {str(flow[0]) for flow in told.get(name, [])} for name in LAB03.classes}
        held = set(listed(f"{exercise.id}/reference", **exercise.parameters))
        assert attackers <= held, exercise.id
        assert not (sources["bystanders"] | sources["unlisted"]) & held, exercise.id
        longer = exercise.traffic != "attack"
        assert len(sources["bystanders"] & longest) == (0 if longer else 10), exercise.id
        assert len(sources["bystanders"]) == (200 if longer else 220), exercise.id
        assert (others <= held) == longer, exercise.id
        assert sources["elsewhere"] <= held, exercise.id
        assert (len(sources["elsewhere"]) > 900) == longer, exercise.id
        assert (len(sources["unlisted"]) > 350) == longer, exercise.id


@each_lab
def test_guide_has_the_five_sections_and_each_exercise(name: str) -> None:
    lab = LABS[name]
    headings = re.findall(r"^(#{2,3}) (.+)$", (lab.folder / "README.md").read_text(), re.MULTILINE)
    # In a lab that is cut into parts, each part has the five.
    level, times = ("###", len(lab.parts)) if lab.parts else ("##", 1)
    assert [title for found, title in headings if found == level and title in SECTIONS] == list(SECTIONS) * times
    exercises = [title.split(":")[0] for found, title in headings if found == "###" and title.startswith("ex")]
    assert exercises == [exercise.id for exercise in lab.exercises]


@each_lab
def test_guide_commands_name_existing_items(name: str) -> None:
    """The guide's commands name this lab and its cases, sweeps and exercises."""
    lab = LABS[name]
    text = (lab.folder / "README.md").read_text()
    for verb, rest in re.findall(r"fwlab (run|check|predict|report) ([^\n`|]*)", text):
        words = [word for word in re.sub(r"--model \S+", "", rest).split() if not word.startswith("-")]
        assert words[:1] == [lab.id], rest
        cases = {*lab.cases, *(sweep.id for sweep in lab.sweeps), *(part.id for part in lab.parts)}
        known = {"run": cases, "check": {e.id for e in lab.exercises}}
        known["predict"] = known["check"] | {one.id for one in predictions_of(PROJECT, lab)}
        for word in words[1:]:
            if re.fullmatch(r"[A-Z]+|\d+", word):
                continue
            assert word in known.get(verb, set()), f"fwlab {verb} {rest}"


def test_links_of_notes_have_a_target() -> None:
    targets = [(page, link) for page in NOTES for link in re.findall(r"\]\((?![a-z]+:)([^)#\s]+)", page.read_text())]
    assert targets
    assert not [f"{page}: {link}" for page, link in targets if not (page.parent / link).exists()]


def test_a_missing_template_parameter_is_named() -> None:
    folder = PROJECT.labs / "lab03-ipset" / "rulesets" / "iptables-rules"
    with pytest.raises(BadInput, match=r"iptables-rules/rules\.iptables\.j2: 'rules' is undefined"):
        lab_ruleset(folder, {}, TOPOLOGY)
