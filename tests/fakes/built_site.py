# SPDX-License-Identifier: GPL-2.0-or-later
"""The guides as one site, built for tests, and its pages as links, anchors and texts."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

#: Attributes whose target the browser loads by itself.
LOADED = {("script", "src"), ("img", "src"), ("iframe", "src"), ("source", "src"), ("video", "src"), ("object", "data")}


def build(root: Path, to: Path) -> subprocess.CompletedProcess[str]:
    """Build the site of a checkout, as `make guides` does."""
    command = [sys.executable, "-m", "mkdocs", "build", "--site-dir", str(to)]
    env = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(command, cwd=root, env=env, text=True, capture_output=True)


@dataclass
class Html(HTMLParser):
    """What the tests look at in one page.

    links   targets of its links, without those that the theme's search and scripts make
    loads   what a browser fetches to show it
    prose   its text in the article, without code
    blocks  the number of code blocks
    """

    path: Path
    ids: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)
    prose: str = ""
    blocks: int = 0

    def __post_init__(self) -> None:
        super().__init__()
        self.inside: list[str] = []
        self.feed(self.path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        if "id" in values:
            self.ids.append(values["id"])
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if tag == "link" and values.get("rel") not in ("next", "prev"):
            self.loads.append(values["href"])
        self.loads += [values[name] for kind, name in LOADED if kind == tag and name in values]
        if tag in ("article", "code", "pre", "script", "style"):
            self.inside.append(tag)
        self.blocks += tag == "pre" and "article" in self.inside

    def handle_endtag(self, tag: str) -> None:
        if self.inside and self.inside[-1] == tag:
            self.inside.pop()

    def handle_data(self, data: str) -> None:
        if self.inside == ["article"]:
            self.prose += data


def pages(site: Path) -> dict[Path, Html]:
    """Every page of a built site."""
    return {path: Html(path) for path in sorted(site.rglob("*.html"))}
