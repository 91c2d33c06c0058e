# SPDX-License-Identifier: GPL-2.0-or-later
"""`make guides`: one site out of all pages, with working links and no request to another host."""

import json
import re
import shutil
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests import ROOT
from tests.checkout import LAB_IDS, PROJECT
from tests.fakes.built_site import Html, build, pages
from tests.fakes.guide_pages import blocks, relative
from tools.pages import all_pages

PAGES = all_pages(PROJECT)
#: Guides that must be in the navigation, beside those of the course.
GUIDES = ["student", "instructor", "method", "traffic", "links", "troubleshooting", "published-ratios", "where-run"]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    to = tmp_path_factory.mktemp("site")
    done = build(ROOT, to)
    assert done.returncode == 0, done.stderr
    return to


@pytest.fixture(scope="module")
def html(site: Path) -> dict[Path, Html]:
    return pages(site)


def place(site: Path, page: Path) -> Path:
    """Where a page of the checkout lies in the site."""
    name = "index.html" if page.name == "README.md" else f"{page.stem}.html"
    return site / page.relative_to(ROOT).parent / name


class TestSite:
    @pytest.mark.parametrize("page", PAGES, ids=relative)
    def test_it_has_every_page_with_all_its_code_blocks(self, site: Path, html, page: Path) -> None:
        found = html[place(site, page)]
        assert found.blocks >= len(blocks(page))
        assert not re.search(r"```|\*\*|\]\(|^#+ |`", found.prose, re.MULTILINE), "Markdown that was not rendered"

    def test_every_lab_and_guide_is_in_the_navigation(self, site: Path, html) -> None:
        links = {(site / link).resolve() for link in html[site / "index.html"].links if not urlsplit(link).scheme}
        wanted = [ROOT / "labs" / lab / "README.md" for lab in LAB_IDS]
        wanted += [ROOT / "guides" / f"{name}.md" for name in [*GUIDES, "course-map", "before", "glossary", "authors"]]
        assert not [relative(page) for page in wanted if place(site, page) not in links]

    def test_every_link_has_its_target_and_its_anchor(self, site: Path, html) -> None:
        count = 0
        for page in html.values():
            if page.path.name == "404.html":
                continue  # its links are those of any address
            for link in page.links:
                parts = urlsplit(link)
                if parts.scheme:
                    continue
                target = (page.path.parent / unquote(parts.path)).resolve() if parts.path else page.path
                assert target.is_file(), f"{page.path}: {link}"
                if parts.fragment and target in html:
                    assert unquote(parts.fragment) in html[target].ids, f"{page.path}: {link}"
                count += 1
        assert count > 1000

    def test_it_loads_nothing_from_elsewhere(self, site: Path, html) -> None:
        loads = {page.path: page.loads for page in html.values()}
        assert [path.name for path, targets in loads.items() if not targets] == ["slides.html"] * len(LAB_IDS)
        for path, targets in loads.items():
            assert not [target for target in targets if urlsplit(target).scheme not in ("", "data")], path
            if path.name != "404.html":
                assert not [name for name in targets if not (path.parent / urlsplit(name).path).is_file()], path
        for path in site.rglob("*.css"):
            assert not re.search(r"url\(['\"]?(https?:)?//|@import", path.read_text()), path

    def test_a_labs_pictures_come_in_both_schemes(self, site: Path) -> None:
        folder = site / "labs/lab03-ipset/pictures"
        light, dark = ((folder / f"lists.{scheme}.svg").read_text() for scheme in ("light", "dark"))
        assert light != dark
        assert "prefers-color-scheme" not in light + dark
        page = (site / "labs/lab03-ipset/index.html").read_text()
        assert page.count('src="pictures/lists.light.svg"') == page.count('src="pictures/lists.dark.svg"') == 1

    def test_the_search_knows_labs_and_no_source_files(self, site: Path) -> None:
        index = json.loads((site / "search/search_index.json").read_text())
        locations = {entry["location"].partition("#")[0] for entry in index["docs"]}
        assert "labs/lab03-ipset/index.html" in locations
        assert not [location for location in locations if location.endswith(("yml.html", "j2.html", "json.html"))]
        assert (site / "search/search_index.js").is_file(), "for a site that is opened from the disk"

    @pytest.mark.thorough
    def test_it_is_the_same_every_time(self, site: Path, tmp_path: Path) -> None:
        build(ROOT, tmp_path)
        first, second = (
            {p.relative_to(at): p.read_bytes() for p in at.rglob("*") if p.is_file()} for at in (site, tmp_path)
        )
        assert first == second


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    return small_checkout(tmp_path)


def small_checkout(top: Path) -> Path:
    """The least that has a site: one page for each entry of mkdocs.yml, and one lab."""
    shutil.copy(ROOT / "mkdocs.yml", top)
    shutil.copytree(ROOT / "tools", top / "tools", ignore=shutil.ignore_patterns("__pycache__"))
    for name in re.findall(r"[\w./-]+\.md", (top / "mkdocs.yml").read_text()):
        write(top / name, "# Page\n")
    write(top / "labs/lab01-one/lab.yml", "id: lab01-one\n")
    write(top / "labs/lab01-one/README.md", "# One\n\nA lab.\n\n## Second part\n")
    return top


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small site with a new guide, and a lab's page with links to files and with a folded answer."""
    top = small_checkout(tmp_path_factory.mktemp("small"))
    answer = "Say **yes**.\n\n```dut\nsudo nft list ruleset\n```"
    folded = f"<details>\n<summary>Answer</summary>\n\n{answer}\n\n</details>\n"
    write(top / "labs/lab01-one/README.md", f"# One\n\n[file](lab.yml), [rules](a/rules.nft.j2)\n\n{folded}")
    write(top / "labs/lab01-one/a/rules.nft.j2", "```\nadd rule <script>alert(1)</script>\n")
    write(top / "guides/new.md", "# A new guide\n")
    done = build(top, top / "to")
    assert done.returncode == 0, done.stderr
    return top / "to"


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


class TestSmallSite:
    def test_linked_files_become_pages(self, built: Path) -> None:
        assert "lab01-one" in (built / "labs/lab01-one/lab.yml.html").read_text()
        rules = (built / "labs/lab01-one/a/rules.nft.j2.html").read_text()
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in rules
        assert "<script>alert" not in rules

    def test_a_new_guide_needs_no_entry(self, built: Path) -> None:
        assert "A new guide" in Html(built / "guides/new.html").prose
        assert "new.html" in Html(built / "guides/method.html").links

    def test_folded_answers_are_rendered(self, built: Path) -> None:
        page = (built / "labs/lab01-one/index.html").read_text()
        assert "<strong>yes</strong>" in page
        assert "on the DUT" in page

    def test_broken_links_and_missing_pages_fail_and_are_named(self, checkout: Path, tmp_path: Path) -> None:
        broken = {
            "[gone](lab99-gone/README.md)": "lab99-gone/README.md",
            "[part](../../guides/method.md#no-such-part)": "no-such-part",
            "[own](#nowhere)": "#nowhere",
            "![picture](pictures/none.svg)": "pictures/none.svg",
            "[rooted](/guides/method.md)": "/guides/method.md",
        }
        write(checkout / "labs/lab01-one/README.md", "# One\n\n" + "\n\n".join(broken))
        (checkout / "guides/links.md").unlink()
        write(checkout / "labs/lab02-two/lab.yml", "id: lab02-two\n")
        done = build(checkout, tmp_path / "to")
        assert done.returncode != 0
        assert "Traceback" not in done.stderr
        lines = [line for line in done.stderr.splitlines() if line.startswith("WARNING")]
        assert len(lines) == len(broken) + 2
        for named in broken.values():
            assert [line for line in lines if named in line and "labs/lab01-one/README.md" in line], named
        for missing in ("guides/links.md", "labs/lab02-two/README.md"):
            assert [line for line in lines if f"'{missing}' is included in the 'nav'" in line]
