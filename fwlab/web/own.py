# SPDX-License-Identifier: GPL-2.0-or-later
"""Somebody's own firewall: `fwlab price` says what it costs, `fwlab compare` whether another ruleset does the same."""

from pathlib import Path

from nicegui import ui

from fwlab.checkout.atomic_write import write_atomically
from fwlab.checkout.project import Project, display_path
from fwlab.model.errors import BadInput
from fwlab.web.jobs import Job, Jobs
from fwlab.web.view import attempt, cancel_button, editor, progress_of, words

EVERY_S = 0.5
#: What jobs of this page are about.
PRICE, COMPARE = "price", "compare"
#: The two rulesets, by the names of their files.
RULES, OTHERS = "my.rules", "new.rules"


def _folder(project: Project) -> Path:
    return project.root / "reports" / "own"


def prices_path(project: Project) -> Path:
    """The page that `fwlab price` writes."""
    return _folder(project) / "prices.html"


def own_page(project: Project, jobs: Jobs) -> None:
    """Draw the page."""
    _Page(project, jobs).draw()


class _Page:
    def __init__(self, project: Project, jobs: Jobs) -> None:
        self._project, self._jobs = project, jobs
        self._folder = _folder(project)
        self._editors = dict[str, ui.codemirror]()
        self._seen: tuple[object, ...] = ()
        self._shown: Job | None = None

    def draw(self) -> None:
        words(
            "p",
            "What does each of your rules cost, and does another ruleset do the same? Paste what iptables-save, "
            "ip6tables-save, nft list ruleset or ipset save prints, or drop its file on the editor. Nothing leaves "
            "this host.",
            "lead",
        )
        with ui.element("div").classes("pair"):
            self._ruleset(RULES, "Your rules")
            self._ruleset(OTHERS, "Rules to compare them with")
        with ui.element("div").classes("row"):
            self._forms = ui.checkbox("price the same rules as other tools load them").mark("forms")
            self._changes = ui.checkbox("try changes that may help").mark("changes")
            self._here = ui.checkbox("compare on this host's kernel, without machines and prices").mark("here")
        words("p", f"The files are in {display_path(self._project, self._folder)}.", "soft")
        self.running()
        self.found()
        ui.timer(EVERY_S, self._look)

    def _ruleset(self, name: str, title: str) -> None:
        path = self._folder / name
        with ui.element("section"):
            words("h2", title)
            text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
            self._editors[name] = editor(text, title, name)

    def _look(self) -> None:
        job = self._jobs.latest
        seen, self._seen = self._seen, self._jobs.state()
        if seen != self._seen:
            self.running.refresh()
            if job is not None and not job.running and self._shown is not job:
                self.found.refresh()

    @ui.refreshable_method
    def running(self) -> None:
        job = self._jobs.latest
        with ui.element("div").classes("row"):
            if job is not None and job.running:
                words("p", job.line)
                cancel_button(self._jobs)
            else:
                ui.button("Price", on_click=self._price).props("no-caps")
                ui.button("Compare", on_click=self._compare, color=None).props("outline no-caps")
        if job is not None and (job.running or job.about in (PRICE, COMPARE)):
            progress_of(job)

    @ui.refreshable_method
    def found(self) -> None:
        job = self._shown = self._jobs.latest
        if job is None or job.running or not job.result:
            return
        if job.about == PRICE and prices_path(self._project).is_file():
            frame = ui.element("iframe").classes("found").props('title="What these rules cost"')
            frame.props["sandbox"] = ""
            frame.props["src"] = f"/own/prices?{prices_path(self._project).stat().st_mtime_ns}"
        words("pre", job.result, "found").props("tabindex=0")

    async def _price(self) -> None:
        with attempt():
            options = [f"--{name}" for name, box in (("forms", self._forms), ("changes", self._changes)) if box.value]
            rules = self._saved(RULES)
            await self._start(PRICE, rules, *options, "--html", str(prices_path(self._project)))

    async def _compare(self) -> None:
        with attempt():
            await self._start(COMPARE, self._saved(RULES), self._saved(OTHERS), *["--here"] * self._here.value)

    def _saved(self, name: str) -> str:
        """The file, with what is in its editor. Raises BadInput for an empty one."""
        text = self._editors[name].value
        if not text.strip():
            raise BadInput(f"{name} is empty", "paste a ruleset, or drop its file")
        self._folder.mkdir(parents=True, exist_ok=True)
        write_atomically(self._folder / name, text if text.endswith("\n") else f"{text}\n")
        return str(self._folder / name)

    async def _start(self, about: str, *given: str) -> None:
        await self._jobs.start(Job((about, *given), "", about))
