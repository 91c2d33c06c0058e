# SPDX-License-Identifier: GPL-2.0-or-later
"""Cases and sweeps of a lab: which to measure, and their figures as they come in."""

from typing import Any

from nicegui import ui

from fwlab.checkout.project import Project
from fwlab.measure.plan import chosen_cases
from fwlab.metrics.registry import METRICS
from fwlab.model.case import Case
from fwlab.model.errors import BadInput
from fwlab.model.lab import Lab
from fwlab.model.metric import Metric
from fwlab.report.formatting import number
from fwlab.student.measured import estimate
from fwlab.web.jobs import Job, Jobs
from fwlab.web.view import attempt, cancel_button, progress_of, words

EVERY_S = 0.5


def measure_page(project: Project, lab: Lab, jobs: Jobs) -> None:
    """Draw the page."""
    _Page(project, lab, jobs).draw()


class _Page:
    def __init__(self, project: Project, lab: Lab, jobs: Jobs) -> None:
        self._project, self._lab, self._jobs = project, lab, jobs
        self._chosen = dict[str, ui.checkbox]()
        self._seen: tuple[object, ...] = ()

    def draw(self) -> None:
        self.running()
        self.figures()
        with ui.element("fieldset"):
            words("legend", "Which cases?")
            sweeps = {sweep.id: sweep.title for sweep in self._lab.sweeps}
            single = {case.id: case.title for case in self._lab.cases.values() if case.sweep is None}
            for name, title in {**single, **sweeps}.items():
                what = "a sweep: " if name in sweeps else ""
                self._chosen[name] = ui.checkbox(f"{name} ({what}{title})").mark(name)
        self._seen = self._jobs.state()
        ui.timer(EVERY_S, self._look)

    def _look(self) -> None:
        """Draw again what has changed."""
        seen, self._seen = self._seen, self._jobs.state()
        if seen != self._seen:
            self.running.refresh()
        if seen[:2] != self._seen[:2]:
            self.figures.refresh()

    @ui.refreshable_method
    def running(self) -> None:
        job = self._jobs.latest
        if job is not None and job.running:
            words("p", job.line)
            cancel_button(self._jobs)
        else:
            ui.button("Measure", on_click=self._measure).props("no-caps")
        if job is not None and (job.running or (job.lab, job.about) == (self._lab.id, "")):
            progress_of(job)

    async def _measure(self) -> None:
        with attempt():
            names = [name for name, box in self._chosen.items() if box.value]
            if not names:
                raise BadInput("choose the cases to measure")
            cases = [case.id for case in chosen_cases(self._lab, names)]
            expected = estimate(self._project, self._lab, cases).seconds
            await self._jobs.start(Job(("run", self._lab.id, *names), self._lab.id, "", expected))

    @ui.refreshable_method
    def figures(self) -> None:
        job = self._jobs.latest
        if job is None or (job.lab, job.about) != (self._lab.id, ""):
            return
        found = list[tuple[Case, float]]()
        for one in job.done:
            case = self._lab.cases.get(one.item)
            if case is not None and case.metric in one.figures:
                found.append((case, one.figures[case.metric]))
        for name in dict.fromkeys(case.metric for case, _ in found):
            own = [(case, value) for case, value in found if case.metric == name]
            label = METRICS[name].display.label
            ui.echart(chart(self._lab, METRICS[name], own), renderer="svg").props(f'role=img aria-label="{label}"')


def chart(lab: Lab, metric: Metric, found: list[tuple[Case, float]]) -> dict[str, Any]:
    """The options of ECharts: curves over the parameter if all cases are of sweeps, else a bar for each case."""
    parameters = {sweep.id: sweep.parameter for sweep in lab.sweeps}
    lines = dict[str, list[tuple[float, float]]]()
    for case, value in found:
        x = case.parameters.get(parameters.get(case.sweep or "", ""))
        if case.sweep is not None and isinstance(x, int | float) and x > 0:
            lines.setdefault(case.sweep, []).append((float(x), _shown(value, metric)))
    unit = metric.display.unit or metric.display.label
    look: dict[str, Any] = {
        "backgroundColor": "transparent",
        "animation": False,
        "tooltip": {"trigger": "item"},
        "aria": {"enabled": True},
        "grid": {"containLabel": True, "left": 8, "right": 24, "top": 40, "bottom": 32},
    }
    if sum(map(len, lines.values())) == len(found):
        names = " or ".join(dict.fromkeys(parameters[name] for name in lines))
        return look | {
            "legend": {"data": list(lines)},
            "xAxis": {"type": "log", "name": names, "nameLocation": "middle", "nameGap": 24},
            "yAxis": {"type": "value", "name": unit, "min": 0},
            "series": [{"type": "line", "name": name, "data": sorted(points)} for name, points in lines.items()],
        }
    return look | {
        "xAxis": {"type": "value", "name": unit, "min": 0, "nameLocation": "middle", "nameGap": 24},
        "yAxis": {"type": "category", "inverse": True, "data": [case.id for case, _ in found]},
        "series": [{"type": "bar", "data": [_shown(value, metric) for _, value in found]}],
    }


def _shown(value: float, metric: Metric) -> float:
    return float(number(value, metric))
