# SPDX-License-Identifier: GPL-2.0-or-later
"""Slides of a lab, made from its page."""

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests import ROOT
from tests.checkout import LAB_IDS, lab_named

LABS = LAB_IDS


def loaded() -> ModuleType:
    """The hook, loaded as MkDocs does: from its file."""
    spec = importlib.util.spec_from_file_location("guides_slides", ROOT / "tools/site/slides.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


SLIDES = loaded()
PAGE = """# Why?

The first paragraph.

The second one is not shown.

## Predict

1. A [number](x.md)?

## Measure

| a | table |
|---|---|

```sh
# not a heading
```

## Explain

![Two lines](pictures/a.svg)
<!-- drawn: curves() -->

**A list.** It is
walked through. And more.

Not shown.

## Exercises

### ex1-a: do it

**Question.** Which rule?

**Measure.** Not shown.

**Explain.** Not shown either.
"""


@pytest.fixture
def page(tmp_path: Path) -> Path:
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures/a.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg"><path id="p"/></svg>')
    path = tmp_path / "README.md"
    path.write_text(PAGE)
    return path


def test_slides_follow_the_page(page: Path) -> None:
    found = [(slide.title, slide.text) for slide in SLIDES.slides_of(page)]
    assert found == [
        ("Why?", "The first paragraph."),
        ("Predict", "1. A number?"),
        ("Explain", ""),
        ("Explain", "- **A list.** It is walked through."),
        ("ex1-a: do it", "**Question.** Which rule?"),
    ]


def test_a_part_begins_with_its_title_and_ends_with_its_points(page: Path) -> None:
    page.write_text(
        "# Why?\n\n## Part 1: Who?\n\n### Question\n\nA?\n\n### Explain\n\n**You.** Nobody else. And more.\n"
    )
    found = [(slide.title, slide.text) for slide in SLIDES.slides_of(page)]
    assert found[1:] == [("Part 1: Who?", ""), ("Question", "A?"), ("Explain", "- **You.** Nobody else.")]


def test_the_document_needs_no_other_file_and_escapes_words(page: Path) -> None:
    page.write_text(PAGE.replace("Two lines", "a <b> line"))
    text = SLIDES.slides_page(page, "lab01-a")
    assert text.count("<section ") == 5
    assert '<path id="p"/>' in text
    assert "a &lt;b&gt; line" in text
    assert not re.search(r"https?://|<script|<link|\bsrc=|href=|@import", text)


@pytest.mark.parametrize("lab_id", LABS)
def test_every_lab_has_slides_for_its_predictions_and_exercises(lab_id: str) -> None:
    found = SLIDES.slides_of(ROOT / "labs" / lab_id / "README.md")
    titles = [slide.title for slide in found]
    assert titles[0].endswith("?")
    assert {"Question", "Predict"} <= set(titles)
    for exercise in lab_named(lab_id).whole.exercises:
        [slide] = [one for one in found if one.title.startswith(f"{exercise.id}:")]
        assert slide.text.startswith("**Question.**")
    text = SLIDES.slides_page(ROOT / "labs" / lab_id / "README.md", lab_id)
    ids = re.findall(r'\sid="([^"]+)"', text)
    assert len(ids) == len(set(ids))
