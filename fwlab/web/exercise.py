# SPDX-License-Identifier: GPL-2.0-or-later
"""An exercise: the question, the prediction, the ruleset, the check, what came of it, hints, and why it passes."""

import os
from dataclasses import dataclass
from pathlib import Path

from nicegui import ui

from fwlab.checkout.atomic_write import write_atomically, write_errors_as
from fwlab.checkout.project import Project, display_path
from fwlab.measure.context import RunContext, run_context
from fwlab.measure.plan import base_cases, chosen_exercises
from fwlab.measure.saved_runs import latest_run, load_run
from fwlab.measure.work_folder import ensure_started, started_over
from fwlab.metrics.registry import METRICS
from fwlab.model.errors import BadInput, FwlabError
from fwlab.model.lab import Exercise
from fwlab.report.formatting import quantity, ratio
from fwlab.report.model import build_model
from fwlab.report.renderers.html import of_exercise
from fwlab.report.report_rows import Row
from fwlab.rulesets.files import is_loaded, not_loaded, plain_files, student_ruleset, texts_of, with_reasons
from fwlab.student.hints import hints_of, next_hints
from fwlab.student.measured import estimate
from fwlab.student.predictions import number_in, predict_exercise, read_predictions
from fwlab.student.progress import FILE, explain, in_order, read_progress
from fwlab.student.status import sources_of
from fwlab.web.axis import Axis, slider
from fwlab.web.jobs import Job, Jobs
from fwlab.web.texts import EXTRAS, exercise_text, picture_of
from fwlab.web.view import attempt, cancel_button, editor, progress_of, trouble, words

#: A longer file is not sent to the browser (characters). A list of 265 000 addresses has some four million.
MAX_EDITED = 200_000
#: A lab's picture of its addresses.
PLAN = "network.svg"
#: Seconds between looks at what a check does, and at what commands wrote meanwhile.
EVERY_S = 0.5


def exercise_page(project: Project, lab: str, name: str, jobs: Jobs) -> None:
    """Draw the page. Raises BadInput for an unknown exercise, and for damaged files of the student."""
    context = run_context(project, lab, "virtual")
    _Page(project, context, chosen_exercises(context.lab, name)[0], jobs).draw()


@dataclass
class _Edited:
    """A file in the editor. `text`: as it was read; `editor`: None for one that is too long."""

    text: str
    editor: ui.codemirror | None


class _Page:
    def __init__(self, project: Project, context: RunContext, exercise: Exercise, jobs: Jobs) -> None:
        self._project, self._context, self._exercise, self._jobs = project, context, exercise, jobs
        self._lab = context.lab
        self._folder = self._lab.folder / "work" / exercise.id
        self._files = dict[str, _Edited]()
        self._seen: tuple[object, ...] = ()
        self._begun = False
        self._reasoned: tuple[bool, str] = (False, "")

    def draw(self) -> None:
        words("p", self._exercise.shown_title, "lead")
        if picture_of(self._project, self._lab.id, PLAN) is not None:
            ui.image(f"/pictures/{self._lab.id}/{PLAN}").props(
                'alt="Addresses, from the generator to the sink"'
            ).classes("plan")
        for title, part in (
            ("1. Predict", self.prediction),
            ("2. Write the ruleset", self.ruleset),
            ("3. Check", self.check),
            ("Result", self.result),
            ("Hints", self.hints),
            ("4. Explain", self.reason),
            ("Next", self.after),
        ):
            with ui.element("section"):
                words("h2", title)
                part()
        self._seen = self._state()
        ui.timer(EVERY_S, self._look)

    def _look(self) -> None:
        """Draw again what has changed: by a check, by a command in a terminal, or in another tab."""
        seen, self._seen = self._seen, self._state()
        if seen[:-1] != self._seen[:-1]:
            self.check.refresh()
        if self._begun != self._folder.is_dir():
            self.ruleset.refresh()
        if (seen[-1], seen[0]) != (self._seen[-1], self._seen[0]):
            for part in (self.prediction, self.result, self.hints, self.after):
                part.refresh()
            if self._reasoned != self._reasons():  # else what is being written there would be lost
                self.reason.refresh()

    def _state(self) -> tuple[object, ...]:
        """Whether a command runs, which, what it has told, its seconds; and when the progress was last written."""
        job, path = self._jobs.latest, self._lab.folder / "work" / FILE
        when = path.stat().st_mtime_ns if path.exists() else 0
        if job is None:
            return False, when
        return job.running, id(job), job.changes, int(job.seconds), when

    @ui.refreshable_method
    def prediction(self) -> None:
        exercise, done = self._exercise, read_progress(self._lab).of(self._exercise.id)
        metric, first = METRICS[exercise.predict.metric], done.first_measured
        if asked := exercise_text(self._project, self._lab, exercise.id):
            ui.markdown(asked, extras=EXTRAS)
        else:
            words("p", exercise.predict.question.strip())
        if first is not None:
            said = (
                "You predicted nothing"
                if done.predicted is None
                else f"You predicted {quantity(done.predicted, metric)}"
            )
            if first.measured is not None:
                said += f"; the first measurement gave {quantity(first.measured, metric)}"
                said += f" (×{ratio(first.measured / done.predicted)})" if done.predicted else ""
            words("p", f"{said}.")
            return
        made = read_predictions(self._lab).get(exercise.id)
        if made is not None:
            words("p", f"You predict {quantity(made, metric)}. It can be changed until the exercise is first measured.")
        with ui.element("div").classes("row"):
            unit = "a share, such as 19%" if metric.unit == "ratio" else f"{metric.unit}, such as 250k"
            number = ui.input(f"Your number ({unit})").mark("prediction")
            ui.button("Predict", on_click=lambda: self._predict(number.value)).props("no-caps")
            number.on("keydown.enter", lambda: self._predict(number.value))
        slider(Axis(metric), made, lambda value: number.set_value(f"{value:g}"))

    def _predict(self, text: str) -> None:
        with attempt():
            try:
                value = number_in(text or "")
            except ValueError as error:
                raise BadInput(str(error)) from error
            if doubts := predict_exercise(self._lab, self._exercise, value)[1:]:  # the first line is on the page
                ui.notify("\n".join(doubts), multi_line=True)
            self.prediction.refresh()
            self.after.refresh()

    @ui.refreshable_method
    def ruleset(self) -> None:
        self._files = {}
        self._begun = self._folder.is_dir()
        if not self._begun:
            words("p", "The exercise begins with a ruleset that is not the answer.")
            ui.button("Begin", on_click=self._begin).props("no-caps")
            return
        words("p", f"The files are in {display_path(self._project, self._folder)}; use any editor you like.", "soft")
        try:
            for file in texts_of(plain_files(self._folder, self._exercise.id), validated=True):
                self._edit(file.name, file.text)
        except BadInput as error:
            trouble(error)
        if names := not_loaded(self._folder):
            words("p", f"Not loaded: {with_reasons(names)}", "soft")
        with ui.element("div").classes("row"):
            name = ui.input("Another file, such as rules.nft").mark("new file")
            ui.button("Add", on_click=lambda: self._add(name.value), color=None).props("outline no-caps")
            ui.button("Save", on_click=self._save_and_say, color=None).props("outline no-caps")
            ui.button("Back to the start", on_click=self._start_over, color=None).props("outline no-caps")

    def _edit(self, name: str, text: str) -> None:
        with ui.element("div").classes("row"):
            words("h3", name)
            ui.button("Remove", on_click=lambda: self._remove(name), color=None).props(
                'flat no-caps aria-label="Remove a file"'
            )
        if len(text) > MAX_EDITED:
            words("p", f"{len(text):,} characters: too long to edit here".replace(",", " "), "soft")
            self._files[name] = _Edited(text, None)
            return
        self._files[name] = _Edited(text, editor(text, f"Ruleset {name}", name))

    def _begin(self) -> None:
        with attempt():
            ensure_started(self._context, self._exercise)
            self.ruleset.refresh()
            self.after.refresh()

    def _start_over(self) -> None:
        with attempt():
            kept = started_over(self._context, self._exercise)
            if kept is not None:
                ui.notify(f"What was there is kept in {display_path(self._project, kept)}")
            self.ruleset.refresh()

    def _add(self, name: str) -> None:
        with attempt():
            name = (name or "").strip()
            if Path(name).name != name or not name.isprintable() or not is_loaded(name):
                raise BadInput(
                    f"no tool loads a file of this name: {name}", "see `Write a ruleset` in the student's guide"
                )
            if os.path.lexists(self._folder / name):
                raise BadInput(f"{name} is there already", "choose another name")
            self._save()
            write_atomically(self._folder / name, "")
            self.ruleset.refresh()

    def _remove(self, name: str) -> None:
        with attempt():
            self._save()
            with write_errors_as(self._folder / name):
                (self._folder / name).unlink(missing_ok=True)
            self.ruleset.refresh()

    def _save(self) -> None:
        """Write what was changed here. Raises BadInput where somebody else has changed the same file meanwhile."""
        there = {
            file.name: file.text for file in texts_of(plain_files(self._folder, self._exercise.id), validated=True)
        }
        for name, file in self._files.items():
            if file.editor is None or file.editor.value == file.text:
                continue
            if there.get(name) != file.text:
                raise BadInput(
                    f"{name} was changed elsewhere, too", "copy what you wrote here, then load the page again"
                )
            write_atomically(self._folder / name, file.editor.value)
            file.text = file.editor.value

    def _save_and_say(self) -> None:
        with attempt():
            self._save()
            student_ruleset(self._folder)  # says what is not allowed, by file and line
            ui.notify("Saved")

    @ui.refreshable_method
    def check(self) -> None:
        job = self._jobs.latest
        mine = job is not None and (job.lab, job.about) == (self._lab.id, self._exercise.id)
        if job is not None and job.running:
            if not mine:
                words("p", f"{job.line} is running.")
            cancel_button(self._jobs)
        else:
            ui.button("Check", on_click=self._check).props("no-caps")
        if job is not None and (mine or job.running):
            predicted = read_predictions(self._lab).get(self._exercise.id)
            progress_of(
                job, {} if predicted is None else {(self._exercise.id, self._exercise.predict.metric): predicted}
            )

    async def _check(self) -> None:
        with attempt():
            if self._files:
                self._save()
            bases = [case.id for case in base_cases(self._lab, [self._exercise])]
            expected = estimate(self._project, self._lab, [*bases, self._exercise.id]).seconds
            command = ("check", self._lab.id, self._exercise.id)
            await self._jobs.start(Job(command, self._lab.id, self._exercise.id, expected))

    @ui.refreshable_method
    def result(self) -> None:
        path = latest_run(self._project, self._lab, "check")
        last = read_progress(self._lab).of(self._exercise.id).last
        if last is None:
            words("p", "Nothing was checked yet.", "soft")
            return
        words("p", f"Last check: {last.outcome.value}, {last.at[:16].replace('T', ' ')} UTC.")
        if not path.is_file():
            return
        try:
            model = build_model(self._lab, load_run(path, self._lab.id))
        except FwlabError as error:
            trouble(error)
            return
        for row in model.exercises:
            if row.id == self._exercise.id:
                ui.html(of_exercise(row, model)).classes("report").props('tabindex=0 role=group aria-label="Result"')
                self._arrived(row)

    def _arrived(self, row: Row) -> None:
        """Per traffic class, what reached the sink, whether a check is about it or not."""
        offered = dict[str, int]()
        arrived = dict[str, int]()
        for play in row.measured.deliveries:
            for name, count in play.offered.items():
                offered[name] = offered.get(name, 0) + count
                arrived[name] = arrived.get(name, 0) + play.arrived.get(name, 0)
        if not offered:
            return
        with ui.element("table"), ui.element("tbody"):
            with ui.element("tr"):
                for title in ("traffic class", "offered", "arrived"):
                    words("th", title)
            for name, count in offered.items():
                with ui.element("tr"):
                    words("td", name)
                    words("td", str(count), "number")
                    words("td", str(arrived[name]), "number")

    @ui.refreshable_method
    def hints(self) -> None:
        there = hints_of(self._project, self._lab).get(self._exercise.id, [])
        seen = min(read_progress(self._lab).of(self._exercise.id).hints, len(there))
        with ui.element("ol"):
            for hint in there[:seen]:
                words("li", hint)
        if seen < len(there):
            ui.button(f"Show hint {seen + 1} of {len(there)}", on_click=self._hint, color=None).props("outline no-caps")
        elif not there:
            words("p", "This exercise has no hints.", "soft")

    def _hint(self) -> None:
        with attempt():
            next_hints(self._project, self._lab, self._exercise.id)
            self.hints.refresh()

    @ui.refreshable_method
    def reason(self) -> None:
        passed, why = self._reasoned = self._reasons()
        if not passed:
            words("p", "Once your ruleset passes, say here why, in two sentences.", "soft")
            return
        text = ui.textarea("Why does it pass? Two sentences; your instructor reads them.", value=why)
        text.classes("wide").mark("why")
        ui.button("Keep", on_click=lambda: self._explain(text.value), color=None).props("outline no-caps")

    def _reasons(self) -> tuple[bool, str]:
        done = read_progress(self._lab).of(self._exercise.id)
        return done.passed, done.why

    def _explain(self, text: str) -> None:
        with attempt():
            explain(self._lab, self._exercise.id, text or "")
            ui.notify("Kept")
            self.after.refresh()

    @ui.refreshable_method
    def after(self) -> None:
        progress = read_progress(self._lab)
        words("p", str(sources_of(self._project, self._lab).next_step(self._lab, progress)))
        names = [exercise.id for exercise in in_order(self._lab)]
        at = names.index(self._exercise.id) + 1
        if progress.of(self._exercise.id).passed and at < len(names):
            ui.link(f"Go on with {names[at]}", f"/lab/{self._lab.id}/exercise/{names[at]}").classes("action")
