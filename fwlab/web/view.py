# SPDX-License-Identifier: GPL-2.0-or-later
"""What all pages have in common: the frame, texts, and how an error is shown."""

import contextlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from nicegui import ui
from nicegui.elements.mixins.text_element import TextElement

from fwlab.metrics.registry import METRICS
from fwlab.model.errors import FwlabError
from fwlab.student.measured import rounded
from fwlab.web.axis import Axis, trials_svg
from fwlab.web.jobs import Job, Jobs

#: White text on it can be read.
PRIMARY = "#0b63a5"
STYLE = Path(__file__).with_name("style.css")


def words(tag: str, text: str, classes: str = "") -> TextElement:
    """A text that is no markup, whatever is in it."""
    return TextElement(tag=tag, text=text).classes(classes)


@contextlib.contextmanager
def frame(title: str, *trail: tuple[str, str]) -> Iterator[None]:
    """A page with its heading; `trail`: names and addresses of the pages above it."""
    ui.page_title(f"{title} · Firewall Performance Lab")
    ui.add_css(STYLE)
    ui.colors(primary=PRIMARY)
    with ui.element("nav").props('aria-label="Other pages"'):
        for name, address in (("Labs", "/"), *trail):
            ui.link(name, address)
        for name, address in (("Your own firewall", "/own"), ("Machines", "/machines")):
            ui.link(name, address).classes("other")
    with ui.element("div").classes("page"):
        words("h1", title)
        try:
            yield
        except FwlabError as error:
            trouble(error)


def trouble(error: FwlabError) -> None:
    """Show an error in the page, as a command prints it."""
    with ui.element("div").classes("trouble").props("role=alert"):
        words("p", error.message, "lines")
        if error.hint:
            words("p", f"next: {error.hint}", "lines")


def editor(text: str, label: str, name: str) -> ui.codemirror:
    """An editor with a label for those who do not see it. Escape, then Tab, leaves it. `name` marks it in tests."""
    # CodeMirror has no mode for rulesets. The shell's has what they share: comments, strings, options and numbers.
    made = ui.codemirror(text, language="Shell", theme="vscodeLight").mark(name)
    attributes = json.dumps({"aria-label": label, "tabIndex": "0"})
    dark = f"if (matchMedia('(prefers-color-scheme: dark)').matches) getElement({made.id}).setTheme('vscodeDark')"
    there = f"{dark}; for (const one of Object.entries({attributes})) editor.contentDOM.setAttribute(...one)"
    ui.run_javascript(f"getElement({made.id}).editorPromise.then(editor => {{ {there} }})")
    return made


@contextlib.contextmanager
def attempt() -> Iterator[None]:
    """An action of the user's: an error is shown for a while, and nothing else happens."""
    try:
        yield
    except FwlabError as error:
        ui.notify(str(error), type="negative", multi_line=True, timeout=10_000, close_button="OK")


def progress_of(job: Job, predicted: Mapping[tuple[str, str], float] = MappingProxyType({})) -> None:
    """What a command has been doing, and how long it will take; `predicted`: by item and metric."""
    with ui.element("div").classes("job").props("role=status"):
        if job.running:
            left = job.estimate_s - job.seconds
            time = f"; about {rounded(left)} left" if left > 0 else "; longer than expected" if job.estimate_s else ""
            words("p", f"{job.step} ({job.seconds:.0f} s{time})")
            share = min(0.98, job.seconds / job.estimate_s) if job.estimate_s else 0.0
            bar = ui.linear_progress(share, show_value=False).props('aria-label="time that has passed"')
            bar.props("" if job.estimate_s else "indeterminate")
        elif job.cancelled:
            words("p", "Cancelled. Everything that it started has been stopped.")
        for (item, metric), values in job.trials.items():
            if item == job.item and metric in METRICS:
                ui.html(trials_svg(Axis(METRICS[metric]), values, predicted.get((item, metric)))).classes("report")
        for one in job.done:
            words("p", f"{one.item}: {one.summary}", "" if one.ok else "doubt")
        if job.lines:
            with ui.element("details").props("open" if not job.running and job.code not in (0, 1) else ""):
                words("summary", "what the command said")
                words("pre", "\n".join(job.lines))


def cancel_button(jobs: Jobs) -> None:
    """Ends what runs."""
    ui.button("Cancel", on_click=jobs.cancel, color=None).props("outline no-caps")
