# SPDX-License-Identifier: GPL-2.0-or-later
"""Whose an entry of a class's folder is. Names are those that learning platforms write, and odd ones of people."""

from __future__ import annotations

import os
import unicodedata

import pytest

from fwlab.grading.class_folder import NAME, identifier, owner_of

MOODLE = "assignsubmission"
#: The entry, whether it is a folder, the name in marks, and the name as it is shown.
OWNERS = [
    ("ada", True, "ada", ""),
    ("ada.zip", False, "ada", ""),
    ("ada.tar.xz", False, "ada", ""),
    ("Ada Example", True, "Ada-Example", "Ada Example"),
    ("11+12", True, "11-12", "11+12"),
    ("O'Neil", True, "O-Neil", "O'Neil"),
    ("-rf", True, "rf", "-rf"),
    ("Søren Łukasz Æsa", True, "Soren-Lukasz-AEsa", "Søren Łukasz Æsa"),
    ("reference", True, "student-reference", ""),
    ("right-hand.zip", False, "student-right-hand", ""),
    (f"Ada Example_11_{MOODLE}_file", True, "Ada-Example_11", "Ada Example"),
    (f"Ada Example_11_{MOODLE}_file_", True, "Ada-Example_11", "Ada Example"),
    (f"Ada Example_11_{MOODLE}_file_work.zip", False, "Ada-Example_11", "Ada Example"),
    (f"Default group_{MOODLE}_file", True, "Default-group", "Default group"),
    (f"李雷_104_{MOODLE}_file_a.nft", False, "participant_104", "李雷"),
    (f"start_7_{MOODLE}_file", True, "start_7", "start"),
    ("exampleada_101_9001_rules.iptables", False, "exampleada_101", "exampleada"),
    ("examplebob_LATE_102_9002_work-1.zip", False, "examplebob_102", "examplebob"),
    ("7001-1 - Ada Example - Sep 14, 2026 10:05 AM", True, "7001-1-Ada-Example", "Ada Example"),
    ("7001-1 - Ada Example - Feb 10, 2026 131 AM", True, "7001-1-Ada-Example", "Ada Example"),
    ("7001-1 - Ada - Example - 10 févr. 2026 0131", True, "7001-1-Ada-Example", "Ada - Example"),
    ("7001-1 - Ada Example - Feb 10, 2026 131 AM - work.zip", False, "7001-1-Ada-Example", "Ada Example"),
    ("submission_101", True, "submission_101", ""),
]


@pytest.mark.parametrize(("entry", "is_folder", "own", "name"), OWNERS)
def test_owner(entry: str, is_folder: bool, own: str, name: str) -> None:
    owner = owner_of(entry, is_folder=is_folder)
    assert (owner.id, owner.name, owner.text) == (own, name, False)
    assert NAME.fullmatch(owner.id)


@pytest.mark.parametrize(
    "entry", [f"Bo_1_{MOODLE}_onlinetext", f"Bo_1_{MOODLE}_onlinetext_text.html", "examplebo_12_text.html"]
)
def test_an_online_text_is_nothing_to_grade(entry: str) -> None:
    assert owner_of(entry, is_folder=entry.endswith("onlinetext")).text


@pytest.mark.parametrize("entry", ["index.html", "Thumbs.db", "rules.iptables", "notes", "a_1_b_2.txt"])
def test_a_file_of_nobody(entry: str) -> None:
    assert owner_of(entry, is_folder=False) is None


ALPHABETS = [
    *("Иван Петров", "Пётр Петров", "Иван Й", "李雷", "韩梅梅", "한글", "محمد", "مُحَمَّد", "ประยุทธ์", "Ελένη", "山田"),
    *("🙂", "__", "--", "Zoë Exämple"),
]


def test_names_in_any_alphabet_stay_apart_and_both_forms_of_one_are_one() -> None:
    found = {name: owner_of(name, is_folder=True) for name in ALPHABETS}
    assert len({owner.id for owner in found.values()}) == len(ALPHABETS)
    for name, owner in found.items():
        assert NAME.fullmatch(owner.id)
        assert owner.name == unicodedata.normalize("NFC", name)
        assert owner == owner_of(unicodedata.normalize("NFD", name), is_folder=True)


@pytest.mark.parametrize("name", ["a" * 300, "é" * 120, os.fsdecode(b"\xff\xfe"), "\x1b[31m", "\u202eada", "a\nb"])
def test_any_name_gives_one_that_tests_and_folders_can_have(name: str) -> None:
    owner = owner_of(name, is_folder=True)
    assert NAME.fullmatch(owner.id)
    assert owner.name.isprintable()
    assert identifier(name) != identifier(f"{name}ж")
