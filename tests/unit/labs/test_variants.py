# SPDX-License-Identifier: GPL-2.0-or-later
"""Variants of an exercise are declared, present, valid and different from each other.

Whether they pass and fail as declared is measured (`--part variants`).
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from fwlab.checkout.project import Project, read_yaml
from fwlab.grading.grading_plan import plan_grading
from fwlab.grading.lab_rulesets import Made, load_variants, variant_folder
from fwlab.grading.options import GradingOptions
from fwlab.grading.works import own_work
from fwlab.measure.plan import reject_settings
from fwlab.model.errors import BadInput
from fwlab.model.lab import Exercise, Lab
from fwlab.model.variants import REFUSED
from fwlab.model.verdict import Outcome
from fwlab.rulesets.files import rendered, ruleset_file
from tests.checkout import LAB_IDS, PROJECT, TOPOLOGY, lab_named

TEMPLATE = "_template"
#: A long list takes seconds to render. A shorter one is enough here.
MAX_LENGTH = 3000


def labs() -> list[Lab]:
    template = read_yaml(PROJECT, PROJECT.labs / TEMPLATE / "lab.yml", Lab)
    template._folder = PROJECT.labs / TEMPLATE
    return [*(lab_named(name) for name in LAB_IDS), template]


EXERCISES = [
    pytest.param(lab, exercise, id=f"{lab.folder.name}:{exercise.id}") for lab in labs() for exercise in lab.exercises
]
each_exercise = pytest.mark.parametrize(("lab", "exercise"), EXERCISES)


def shortened(exercise: Exercise) -> dict:
    whole = {name: value for name, value in exercise.parameters.items() if isinstance(value, int)}
    return {**exercise.parameters, **{name: min(value, MAX_LENGTH) for name, value in whole.items()}}


def texts(lab: Lab, exercise: Exercise, folder: Path) -> list[tuple[str, str]]:
    topology = TOPOLOGY.with_dut(exercise.system or "linux")
    return sorted(rendered(folder, shortened(exercise), topology))


@each_exercise
def test_variants_are_declared_and_loadable(lab: Lab, exercise: Exercise) -> None:
    variants = load_variants(PROJECT, lab, exercise)
    for name in variants.names:
        files = texts(lab, exercise, variant_folder(lab, exercise, name))
        assert files, f"{name} is empty"
        wrong = variants.wrong.get(name)
        if wrong is None or wrong.fails != [REFUSED]:
            reject_settings(exercise, [ruleset_file(*file) for file in files])


@each_exercise
def test_an_exercise_with_variants_has_enough_of_both_kinds(lab: Lab, exercise: Exercise) -> None:
    variants = load_variants(PROJECT, lab, exercise)
    least = 2 if lab.folder.name == TEMPLATE else 4
    if variants.names:
        assert min(len(variants.right), len(variants.wrong)) >= least


@each_exercise
def test_variants_differ(lab: Lab, exercise: Exercise) -> None:
    names = load_variants(PROJECT, lab, exercise).names
    own = lab.folder / "rulesets" / exercise.id
    folders = [own / part for part in ("start", "reference", "mistake")] if names else []
    folders += [variant_folder(lab, exercise, name) for name in names]
    seen: dict[tuple, str] = {}
    for folder in folders:
        # Line endings, comments and the order of files do not make a different ruleset; the order of lines may.
        files = tuple((name, tuple(_rules_only(text))) for name, text in texts(lab, exercise, folder))
        assert files not in seen, f"{folder.name} is the same as {seen.get(files)}"
        seen[files] = folder.name


def _rules_only(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip() and not line.strip().startswith("#")]


# ---- what must not pass -----------------------------------------------------------------------------------------


def test_what_must_not_pass_is_made_from_the_lab(copied: SimpleNamespace) -> None:
    works = {work.who: work for work in own_work(copied, ["non-solutions"])}
    assert list(works) == ["nothing", "accept-all", "drop-all", "cosmetic", "case-drop", "case-rules-64"]
    assert {work.expected for work in works.values()} == {Outcome.FAIL}
    assert works["nothing"].spec(copied).files == []
    assert works["drop-all"].spec(copied).ruleset == "ex1-example/non-solutions/drop-all"
    assert "policy drop" in works["drop-all"].spec(copied).files[0].text


def test_what_is_right_all_the_same_is_named_with_its_reason(copied: SimpleNamespace) -> None:
    path = copied.folder / "variants.yml"
    path.write_text(path.read_text() + "also_right: { case-drop: It is only an example. }\n")
    works = {work.who: work.expected for work in own_work(copied, ["non-solutions"])}
    assert [who for who, expected in works.items() if expected is Outcome.PASS] == ["case-drop"]
    path.write_text(path.read_text().replace("case-drop", "case-dorp"))
    with pytest.raises(BadInput, match="also_right: there is no case-dorp; there are: nothing, "):
        own_work(copied, ["non-solutions"])


@pytest.mark.usefixtures("unplayed")
@pytest.mark.parametrize("name", LAB_IDS)
def test_nothing_that_must_fail_says_what_is_right(name: str) -> None:
    """No start and no case of the table is another exercise's answer, unless variants.yml says why it may be."""
    plan = plan_grading(PROJECT, GradingOptions(labs=[name], parts=["reference", "variants", "non-solutions"]))
    topology, found = plan.contexts[name].topology, []
    for exercise in plan.contexts[name].lab.exercises:
        works = [work for work in plan.works[name] if work.exercise is exercise]
        right = [
            Made(work.folder, exercise.parameters).says(topology)
            for work in works
            if work.made is None and work.expected is Outcome.PASS
        ]
        made = [(work, work.made.says(topology)) for work in works if work.made and work.expected is Outcome.FAIL]
        found += [work.name for work, said in made if said in right]
    assert found == []


# ---- what is said of a bad one ---------------------------------------------------------------------------------


@pytest.fixture
def copied(tmp_path: Path) -> SimpleNamespace:
    """A copy of a lab with one exercise and its variants, for tests to damage."""
    shutil.copytree(PROJECT.labs / TEMPLATE, tmp_path / "labs" / TEMPLATE)
    lab = read_yaml(PROJECT, PROJECT.labs / TEMPLATE / "lab.yml", Lab)
    lab._folder = tmp_path / "labs" / TEMPLATE
    folder = lab.folder / "rulesets" / "ex1-example"
    return SimpleNamespace(project=Project(tmp_path), topology=TOPOLOGY, lab=lab, folder=folder)


def changed(old: str, new: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        path = folder / "variants.yml"
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new))

    return change


WHERE = "labs/_template/rulesets/ex1-example/variants.yml"


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda f: (f / "variants.yml").unlink(), f"{WHERE} is missing, but variants/ exists"),
        (lambda f: shutil.rmtree(f / "variants/nft"), f"{WHERE}: nft has no folder variants/nft"),
        (lambda f: (f / "variants/more").mkdir(), f"{WHERE}: does not list variants/more"),
        (lambda f: shutil.rmtree(f / "variants"), f"{WHERE}: nft has no folder variants/nft"),
        (
            changed("[delivered-others]", "[capacity]"),
            (
                f"{WHERE}: wrong.whole-network.fails: the exercise has no check capacity; "
                "there are: delivered-attacker, delivered-others, refused"
            ),
        ),
        (
            changed("[delivered-others]", "[refused, delivered-others]"),
            f"{WHERE}: wrong.whole-network.fails: a ruleset that is refused fails every check: write [refused]",
        ),
        (changed("[delivered-others]", "[]"), f"{WHERE}: wrong.whole-network.fails: there must be at least 1"),
        (changed("    why: The flood is UDP.\n", ""), f"{WHERE}: wrong.other-protocol.why: this field is missing"),
        (changed("other-protocol:", "nft:"), f"{WHERE}: nft is listed as right and as wrong"),
        (changed("other-protocol:", "Other_Protocol:"), f"{WHERE}: wrong.Other_Protocol.[key]: Other_Protocol does "),
        (changed("right:", "rihgt:"), f"{WHERE}: rihgt: there is no such field"),
        (changed("right:", "right: ["), f"{WHERE}:"),
    ],
)
def test_bad_declaration_is_named(copied: SimpleNamespace, spoil: Callable[[Path], None], message: str) -> None:
    spoil(copied.folder)
    with pytest.raises(BadInput) as refused:
        own_work(copied, ["variants"])
    assert refused.value.message.startswith(message)
    assert refused.value.hint


def test_exercise_without_variants_has_none(copied: SimpleNamespace) -> None:
    (copied.folder / "variants.yml").unlink()
    shutil.rmtree(copied.folder / "variants")
    assert own_work(copied, ["variants"]) == []


# ---- as works to grade -----------------------------------------------------------------------------------------


def test_variants_become_works_with_their_expected_outcome(copied: SimpleNamespace) -> None:
    works = own_work(copied, ["variants"])
    assert [(work.who, work.expected, work.fails) for work in works] == [
        ("right-nft", Outcome.PASS, None),
        ("right-counted-network", Outcome.PASS, None),
        ("wrong-whole-network", Outcome.FAIL, {"delivered-others"}),
        ("wrong-other-protocol", Outcome.FAIL, {"delivered-attacker"}),
    ]
    task = works[1].spec(copied)
    assert task.ruleset == "ex1-example/variants/counted-network"
    assert [file.name for file in task.files] == ["one.ipset", "rules.iptables"]


def test_part_all_includes_the_variants_and_what_must_not_pass(copied: SimpleNamespace) -> None:
    whose = [work.who for work in own_work(copied, ["all"])]
    assert whose[:3] == ["start", "reference", "mistake"]
    assert whose[3:7] == ["right-nft", "right-counted-network", "wrong-whole-network", "wrong-other-protocol"]
    assert whose[7:] == [work.who for work in own_work(copied, ["non-solutions"])]
