# SPDX-License-Identifier: GPL-2.0-or-later
"""MkDocs hooks that make the site out of the pages of the checkout (mkdocs.yml).

A page has the same place in the site as in the checkout, so its relative links hold in both. Whatever a page links is
part of the site: further pages, pictures, and other files, such as a lab.yml or a ruleset, each on a page that shows
its text. A drawing becomes two, for the light and the dark scheme. MkDocs then checks every link and anchor.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

from fwlab.checkout.project import Project, lab_ids
from fwlab.checkout.raw_results import read_document
from tools.pages import all_pages
from tools.pictures import in_one_scheme

ROOT = Path(__file__).resolve().parents[2]
#: In `nav` of mkdocs.yml, the place of the labs.
LABS = "LABS"
_CODE = re.compile(r"^(`{3,}|~{3,}).*?^\1`*$|(`+)(?!`).+?(?<!`)\2(?!`)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(\s*([^)\s#]+)")
_DETAILS = re.compile(r"^<details>$", re.MULTILINE)
_DRAWING = re.compile(r'<img alt="(?P<alt>[^"]*)" src="(?P<path>[^":]+)\.svg" />')
_ELSEWHERE = re.compile(r"[a-z]+:")
_PICTURES = (".svg", ".png", ".jpg")
#: Languages of the files that pages link, by the suffix of the name without .j2 or .gz; all others are plain text.
_LANGUAGES = {".py": "python", ".yml": "yaml", ".json": "json", ".c": "c", ".h": "c", ".sh": "bash", ".toml": "toml"}
#: A longer file is cut on its page, to keep the site and its search index small.
MAX_CHARACTERS = 40_000


class SourceFile(File):
    """A file of the checkout that is no page, as a page that shows its text: lab.yml becomes lab.yml.html."""

    def is_documentation_page(self) -> bool:
        """MkDocs renders it like Markdown."""
        return True


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the labs, and guides that are not named, into the navigation."""
    if config.nav is None:
        raise PluginError("mkdocs.yml: nav is missing")
    project = Project(ROOT)
    labs = [{lab: f"labs/{lab}/README.md"} for lab in lab_ids(project)]
    nav: list[Any] = _with_labs(config.nav, labs)
    named = set(_named(nav))
    guides = [_name(page) for page in all_pages(project) if page.parent.name == "guides"]
    [last] = nav[-1].values()
    last += [name for name in guides if name not in named]
    config.nav = nav
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add every page, and whatever they link."""
    waiting, known = all_pages(Project(ROOT)), set[Path]()
    while waiting:
        path = waiting.pop()
        if path in known:
            continue
        known.add(path)
        files.append(_file(path, config))
        if path.suffix == ".svg":
            for dark in (False, True):
                files.append(_one_scheme(path, dark, config))
        if path.suffix == ".md":
            waiting += _linked(path)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let Markdown be rendered inside folded answers, as GitHub does, and say where a block is typed."""
    del config, files
    if page.file.src_uri == "README.md":
        page.meta["hide"] = ["navigation"]  # the tabs lead on from there
    markdown = _DETAILS.sub('<details markdown="1">', markdown)
    return re.sub(r"^```dut$", '```dut title="on the DUT"', markdown, flags=re.MULTILINE)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Show each drawing in the colours of the scheme that the reader chose; alone and in full behind a link."""
    del page, config, files
    one = r'<a class="only-{0}" href="\g<path>.{0}.svg"><img alt="\g<alt>" src="\g<path>.{0}.svg"></a>'
    return _DRAWING.sub(one.format("light") + one.format("dark"), html)


def on_post_build(config: MkDocsConfig) -> None:
    """Leave out the map for search engines: a site without an address has an empty one, with the time in it."""
    for path in Path(config.site_dir).glob("sitemap.xml*"):
        path.unlink()


def _with_labs(items: list[Any], labs: list[dict[str, str]]) -> list[Any]:
    found: list[Any] = []
    for item in items:
        if item == LABS:
            found += labs
        elif isinstance(item, dict):
            found.append({key: _with_labs(of, labs) if isinstance(of, list) else of for key, of in item.items()})
        else:
            found.append(item)
    return found


def _named(items: list[Any]) -> Iterator[str]:
    for item in items:
        if isinstance(item, str):
            yield item
        else:
            for of in item.values():
                yield from _named(of if isinstance(of, list) else [of])


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def _linked(page: Path) -> list[Path]:
    """The files of the checkout that a page links. Links that lead nowhere are left for MkDocs to report."""
    text = _CODE.sub("", page.read_text(encoding="utf-8"))
    targets = [target for target in _LINK.findall(text) if not _ELSEWHERE.match(target)]
    paths = [(page.parent / target).resolve() for target in targets]
    return [path for path in paths if path.is_file() and path.is_relative_to(ROOT)]


def _file(path: Path, config: MkDocsConfig) -> File:
    name = _name(path)
    if path.suffix == ".md" or path.suffix in _PICTURES:
        return File.generated(config, name, abs_src_path=str(path))
    shown = SourceFile(
        name,
        src_dir=None,
        dest_dir=config.site_dir,
        use_directory_urls=config.use_directory_urls,
        dest_uri=f"{name}.html",
        inclusion=InclusionLevel.NOT_IN_NAV,
    )
    shown.generated_by = "gather"
    shown._content = _source_page(path)
    return shown


def _source_page(path: Path) -> str:
    """Markdown that shows a file. It stays out of the search, which would find words of code in place of a guide."""
    text = read_document(path).decode("utf-8")
    language = _LANGUAGES.get(Path(path.name.removesuffix(".j2").removesuffix(".gz")).suffix, "text")
    cut = f"\n\nThe file goes on; it has {len(text):,} characters.\n" if len(text) > MAX_CHARACTERS else ""
    fence = "`" * max(3, 1 + max(map(len, re.findall(r"^`+", text, re.MULTILINE)), default=0))
    head = (
        f"---\ntitle: {path.name}\nsearch: {{exclude: true}}\nhide: [toc]\n---\n\n# {path.name}\n\n`{_name(path)}`\n\n"
    )
    return f"{head}{fence}{language}\n{text[:MAX_CHARACTERS].rstrip()}\n{fence}{cut}\n"


def _one_scheme(path: Path, dark: bool, config: MkDocsConfig) -> File:
    name = f"{_name(path).removesuffix('.svg')}.{'dark' if dark else 'light'}.svg"
    return File.generated(config, name, content=in_one_scheme(path.read_text(encoding="utf-8"), dark=dark))
