# SPDX-License-Identifier: GPL-2.0-or-later
"""The students' site: every lab, no solution, and nothing for instructors."""

from pathlib import Path

from tests import ROOT
from tests.checkout import LAB_IDS, PROJECT
from tools.site.students import build_students_site, navigation_of

NAV = """\
site_name: X

nav:
  - Start: README.md
  - Course:
      - guides/before.md
      - LABS
  - Authors:
      - guides/authors.md
  - Own: guides/own.md
"""


def test_it_has_every_lab_and_no_solution(tmp_path: Path) -> None:
    build_students_site(PROJECT, tmp_path / "site")
    pages = [path.relative_to(tmp_path / "site").as_posix() for path in (tmp_path / "site").rglob("*.html")]
    assert {f"labs/{lab}/index.html" for lab in LAB_IDS} <= set(pages)
    words = ("/reference/", "/mistake/", "/variants/", "/instructor", "guides/instructor", "guides/authors", "results/")
    assert not [page for page in pages if any(word in f"/{page}" for word in words)]
    secret = (ROOT / "labs" / LAB_IDS[0] / "instructor.md").read_text().splitlines()
    heading = next(line.lstrip("# ") for line in secret if line.startswith("# "))
    assert heading not in "".join(path.read_text() for path in (tmp_path / "site").rglob("*.js*"))


def test_the_navigation_leads_to_what_is_there() -> None:
    assert navigation_of(NAV, {"README.md", "guides/before.md"}) == NAV.split("  - Authors", maxsplit=1)[0]
    assert navigation_of(NAV, {"README.md", "guides/before.md", "guides/authors.md", "guides/own.md"}) == NAV
