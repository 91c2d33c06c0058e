# SPDX-License-Identifier: GPL-2.0-or-later
"""MkDocs hook: slides of each lab, made from the parts of its page.

They are what a lecturer shows before, between and after the measurements.

One HTML page without a script or another file: each slide fills the window, a printer puts each on a separate page.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape
from pathlib import Path

from markdown import Markdown
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from fwlab.checkout.project import Project, lab_ids

ROOT = Path(__file__).resolve().parents[2]
#: In the folder of each lab's page.
FILE = "slides.html"

_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->\n?", re.DOTALL)
_HEADING = re.compile(r"^(#{1,3}) (.+)$", re.MULTILINE)
_DETAILS = re.compile(r"^<details>$.*?^</details>$", re.MULTILINE | re.DOTALL)
_PICTURE = re.compile(r"!\[(?P<words>[^\]]*)\]\((?P<path>[^)\s]+\.svg)\)")
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\([^)\s]+\)")
#: "**A set.** It hashes the address. …": the words in bold, and the sentence after them.
_POINT = re.compile(r"^(?:- )?\*\*(?P<head>[^*]+)\*\*,?\s*(?P<first>.+?[.?!])(?=\s|$)", re.DOTALL)
#: The parts of an exercise that are shown: not how it is measured, and not its explanation.
SHOWN = ("Question", "Predict")
#: The parts of a lab that are shown by their points, if the page is cut into parts ("## Part 1: …").
AFTERWARDS = ("Explain", "When it does not hold")
STYLE = Path(__file__).with_name("slides.css")


@dataclass(frozen=True)
class Slide:
    """A heading, Markdown below it, and a picture's file with its words."""

    title: str
    text: str = ""
    picture: Path | None = None
    words: str = ""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the slides of every lab that has a page. MkDocs reports a lab without one."""
    for lab in lab_ids(Project(ROOT)):
        page = ROOT / "labs" / lab / "README.md"
        if page.is_file():
            files.append(File.generated(config, f"labs/{lab}/{FILE}", content=slides_page(page, lab)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead from a lab's page to its slides."""
    del config
    if page.file.src_uri.endswith("/README.md") and files.get_file_from_path(
        page.file.src_uri.replace("README.md", FILE)
    ):
        return f"{markdown}\n\n---\n\nFor a lecture: [slides of this lab]({FILE}), made from this page.\n"
    return markdown


def slides_of(page: Path) -> list[Slide]:
    """The slides of a lab's page, in the order of the page."""
    text = _COMMENT.sub("", page.read_text(encoding="utf-8"))
    found: list[Slide] = []
    for level, title, body in _sections(text):
        plain = _LINK.sub(r"\1", _DETAILS.sub("", body)).strip()
        pictures = _pictures(page, title, body)
        if level == 1:
            found.append(Slide(title, plain.split("\n\n")[0]))
        elif title in SHOWN:
            found += [Slide(title, _PICTURE.sub("", plain)), *pictures]
        elif level == 3 and re.match(r"ex\d", title):
            found.append(Slide(title, _parts(plain)))
        elif level == 2 and re.match(r"Part \d", title):
            found.append(Slide(title, plain))
        else:
            points = _points(plain) if level == 2 or title in AFTERWARDS else ""
            found += [*pictures, *([Slide(title, points)] if points else [])]
    return found


def slides_page(page: Path, lab_id: str) -> str:
    """The slides as one HTML document."""
    shown, style = slides_of(page), STYLE.read_text(encoding="utf-8")
    markdown = Markdown(extensions=["tables", "pymdownx.superfences"])
    parts = []
    for number, slide in enumerate(shown, 1):
        head = "h1" if number == 1 else "h2"
        body = markdown.reset().convert(slide.text)
        figure = (
            f"<figure>{_inline(slide.picture)}<figcaption>{escape(slide.words)}</figcaption></figure>"
            if slide.picture
            else ""
        )
        foot = f'<p class="soft">{lab_id} · {number} of {len(shown)}</p>'
        title = markdown.reset().convert(slide.title).removeprefix("<p>").removesuffix("</p>")
        parts.append(
            f'<section id="s{number}">\n<{head}>{title}</{head}>\n<div>{body}</div>\n{figure}\n{foot}\n</section>'
        )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(lab_id)}: slides</title>\n<style>{style}</style>\n</head>\n<body>\n"
        + "\n".join(parts)
        + "\n</body>\n</html>\n"
    )


def _sections(text: str) -> list[tuple[int, str, str]]:
    """Level, title and text of each heading outside of code."""
    covered = _FENCE.sub(lambda found: " " * len(found[0]), text)
    heads = list(_HEADING.finditer(covered))
    ends = [head.start() for head in heads[1:]] + [len(text)]
    return [(len(h[1]), h[2].strip(), text[h.end() : end]) for h, end in zip(heads, ends, strict=True)]


def _points(text: str) -> str:
    """What is bold at the beginning of a paragraph or an item, each with its first sentence."""
    blocks = re.split(r"\n\n|\n(?=- )", text)
    found = [match for block in blocks if (match := _POINT.match(block.strip()))]
    return "\n".join(f"- **{match['head']}** {' '.join(match['first'].split())}" for match in found)


def _parts(text: str) -> str:
    """The parts of an exercise that are shown."""
    blocks = text.split("\n\n")
    return "\n\n".join(block for block in blocks if block.startswith(tuple(f"**{part}." for part in SHOWN)))


def _pictures(page: Path, title: str, text: str) -> list[Slide]:
    """A slide for each picture that is there. MkDocs reports the others."""
    found = [(page.parent / match["path"], match["words"]) for match in _PICTURE.finditer(text)]
    return [Slide(title, picture=path, words=" ".join(words.split())) for path, words in found if path.is_file()]


def _inline(picture: Path) -> str:
    return re.sub(r'\sxmlns(:\w+)?="[^"]*"', "", picture.read_text(encoding="utf-8"))
