# SPDX-License-Identifier: GPL-2.0-or-later
"""How alike submissions are."""

from __future__ import annotations

from fwlab.grading.class_files import similarity_csv
from fwlab.grading.similarity import MAX_PAIRS, MAX_STATEMENTS, Pair, similar, statements

START = "*raw\nCOMMIT\n"


def pairs(**texts: str) -> list[Pair]:
    said = {who: statements([text]) - statements([START]) for who, text in texts.items()}
    return similar("ex1", said, texts)


def test_layout_comments_and_data_do_not_count() -> None:
    assert statements(["*raw\n  -A  PREROUTING -j DROP # mine\n\n:X - [0:0]\nCOMMIT\n"]) == {
        "*raw",
        "-A PREROUTING -j DROP",
        ":X -",
        "COMMIT",
    }
    assert statements(["table ip x { set s { elements = { 10.0.0.1, 10.0.0.2/31,\n10.0.0.3 } } }"]) == {
        "table ip x { set s { elements = { ADDRESS",
    }
    assert statements(["add blacklist 10.0.0.1\nadd blacklist 10.0.0.2\n"]) == {"add blacklist ADDRESS"}


def test_what_everybody_writes_is_no_hint() -> None:
    rule = "*raw\n-A PREROUTING -s 198.18.20.66 -j DROP\nCOMMIT\n"
    assert pairs(ann=rule, bob=rule, cid=rule) == []
    assert pairs(ann=START, bob=START) == []


def test_what_only_two_have_is_one() -> None:
    rule = "*raw\n-A PREROUTING -s 198.18.20.66 -j DROP\nCOMMIT\n"
    odd = rule.replace("COMMIT", "-N tmp-2\n-A tmp-2 -j RETURN\nCOMMIT")
    found = pairs(ann=rule, bob=odd, cid=rule, dan=odd.replace("\n", "\n# mine\n"), eve=rule)
    assert [(pair.one, pair.other, pair.shared, pair.rare, pair.identical) for pair in found] == [
        ("bob", "dan", 3, 2, False)
    ]
    assert found[0].alike == 1
    (same,) = pairs(ann=odd, bob=odd, cid=rule)
    assert same.identical


def test_half_of_it() -> None:
    (found,) = pairs(ann="a b\nc d\n", bob="a b\ne f\n")
    assert found.shared == found.rare == 1
    assert 0 < found.alike < 0.5


def test_limits() -> None:
    """A class that copies everything from each other, and a list of a hundred thousand rules."""
    many = {f"s{number:03}": f"rule {number // 2}\nx\n" for number in range(2 * MAX_PAIRS + 40)}
    assert len(pairs(**many)) == MAX_PAIRS
    assert len(statements(["\n".join(f"rule {number}" for number in range(100_000))])) <= MAX_STATEMENTS + 1
    for text in ("", "\0\n", "{}{}{}", ";;;,,,", "#" * 100_000, "a" * 100_000):
        assert len(pairs(ann=text, bob=text)) <= 1


def test_the_table() -> None:
    pair = Pair(exercise="ex1", one="ann", other="bob", shared=3, rare=2, alike=0.512, identical=True)
    assert similarity_csv([pair]) == "exercise,student,other,shared,rare,alike,identical\nex1,ann,bob,3,2,0.51,yes\n"
