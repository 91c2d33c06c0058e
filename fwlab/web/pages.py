# SPDX-License-Identifier: GPL-2.0-or-later
"""The pages of the course: the map of the labs, a lab, a guide. Each shows what is on the disk when it is opened."""

import re

from fastapi import Response
from nicegui import app, run, ui

from fwlab.checkout.project import Project, lab_ids, lab_named
from fwlab.measure.labs import load_lab
from fwlab.model.errors import BadInput
from fwlab.model.lab import Lab
from fwlab.report.formatting import check_words
from fwlab.student.progress import Progress, in_order, read_progress
from fwlab.student.status import Sources, sources_of
from fwlab.web.exercise import exercise_page
from fwlab.web.instructor import EXPORTS, Classroom, class_overview
from fwlab.web.instructor import POLICY as CLASS_POLICY
from fwlab.web.jobs import Jobs
from fwlab.web.look import look_page, shell_page
from fwlab.web.machines import machines_page
from fwlab.web.measuring import measure_page
from fwlab.web.own import own_page, prices_path
from fwlab.web.terminals import Terminals
from fwlab.web.texts import EXTRAS, PICTURES, picture_of, shown
from fwlab.web.view import frame, trouble, words

#: How long a page may take on a host that is busy measuring (s).
PATIENCE_S = 60.0
#: A drawing is an image and nothing else, also if it is opened by itself.
PICTURE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
#: A page of prices is shown within another, and runs nothing.
PRICES_POLICY = f"{PICTURE_POLICY}; frame-ancestors 'self'"


def add_pages(
    project: Project, jobs: Jobs, terminals: Terminals | None = None, classroom: Classroom | None = None
) -> "Labs":
    """Make the pages known to NiceGUI's app, also those with a shell and of a class. Returns what reads the labs."""
    labs = Labs(project)

    @ui.page("/", response_timeout=PATIENCE_S)
    async def course() -> None:
        with frame("Labs"):
            if classroom is not None:
                ui.link(f"The class in {classroom.folder}", "/class").classes("action")
            _search(project, await run.io_bound(labs.all) or [])

    @ui.page("/lab/{name}", response_timeout=PATIENCE_S)
    def lab(name: str) -> None:
        with frame(name):
            _lab(project, load_lab(project, lab_named(project, name)), look=terminals is not None)

    @ui.page("/lab/{name}/measure", response_timeout=PATIENCE_S)
    def measure(name: str) -> None:
        with frame("Measure", (name, f"/lab/{name}")):
            measure_page(project, load_lab(project, lab_named(project, name)), jobs)

    @ui.page("/lab/{name}/exercise/{exercise}", response_timeout=PATIENCE_S)
    def one_exercise(name: str, exercise: str) -> None:
        with frame(exercise, (name, f"/lab/{name}")):
            exercise_page(project, lab_named(project, name), exercise, jobs)

    @ui.page("/machines", response_timeout=PATIENCE_S)
    def machines() -> None:
        with frame("Machines"):
            machines_page(project, jobs)
            if terminals is not None:
                ui.link("A shell on this host", "/shell").classes("action")

    if classroom is not None:
        _add_class(classroom)
    if terminals is not None:
        _add_shells(project, terminals)

    _add_own(project, jobs)

    @ui.page("/guide/{name}")
    def guide(name: str) -> None:
        with frame("Guide"):
            path = project.root / "guides" / f"{name}.md"
            if not re.fullmatch(r"[\w-]+", name) or not path.is_file():
                raise BadInput(f"there is no guide {name}", "go back to the labs")
            ui.markdown(shown(project, path), extras=EXTRAS)

    @app.get("/pictures/{name}/{picture}")
    def drawing(name: str, picture: str) -> Response:
        path = picture_of(project, name, picture)
        if path is None:
            return Response(status_code=404)
        headers = {"content-security-policy": PICTURE_POLICY}
        return Response(path.read_bytes(), media_type=PICTURES[path.suffix], headers=headers)

    return labs


def _add_own(project: Project, jobs: Jobs) -> None:
    @ui.page("/own", response_timeout=PATIENCE_S)
    def own() -> None:
        with frame("Your own firewall"):
            own_page(project, jobs)

    @app.get("/own/prices")
    def prices() -> Response:
        path = prices_path(project)
        if not path.is_file():
            return Response(status_code=404)
        return Response(path.read_bytes(), media_type="text/html", headers={"content-security-policy": PRICES_POLICY})


def _add_class(classroom: Classroom) -> None:
    headers = {"content-security-policy": CLASS_POLICY}

    @ui.page("/class", response_timeout=PATIENCE_S)
    def one_class() -> None:
        with frame("Class"):
            class_overview(classroom)

    @app.get("/class/overview")
    def overview() -> Response:
        try:
            return Response(classroom.overview(), media_type="text/html", headers=headers)
        except BadInput as error:
            return Response(str(error), status_code=404, media_type="text/plain", headers=headers)

    @app.get("/class/students/{student}/index.html")
    def of_student(student: str) -> Response:
        found = classroom.of_student(student)
        return Response(found or "", status_code=200 if found else 404, media_type="text/html", headers=headers)

    @app.get("/class/{name}")
    def export(name: str) -> Response:
        path = classroom.export(name)
        if path is None:
            return Response(status_code=404)
        return Response(path.read_bytes(), media_type=EXPORTS[name], headers=headers)


def _add_shells(project: Project, terminals: Terminals) -> None:
    @ui.page("/lab/{name}/look", response_timeout=PATIENCE_S)
    def look(name: str) -> None:
        with frame("Look", (name, f"/lab/{name}")):
            look_page(project, load_lab(project, lab_named(project, name)), terminals)

    @ui.page("/shell")
    def shell() -> None:
        with frame("Shell", ("Machines", "/machines")):
            shell_page(terminals)


class Labs:
    """The labs, each read again once its file has changed: to read them all takes seconds."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._read = dict[str, tuple[int, Lab | BadInput]]()

    def all(self) -> list[Lab | BadInput]:
        """All of them; in place of one with a faulty file the error."""
        return [self._one(name) for name in lab_ids(self._project)]

    def _one(self, name: str) -> Lab | BadInput:
        when = (self._project.labs / name / "lab.yml").stat().st_mtime_ns
        before = self._read.get(name)
        if before is not None and before[0] == when:
            return before[1]
        try:
            found: Lab | BadInput = load_lab(self._project, name)
        except BadInput as error:
            found = error
        self._read[name] = when, found
        return found


def _search(project: Project, labs: list[Lab | BadInput]) -> None:
    rows = list[tuple[str, ui.element]]()
    query = ui.input("Search the labs").props('clearable type=search aria-label="Search the labs"')
    with ui.element("ol").classes("labs"):
        for one in labs:
            with ui.element("li") as row:
                if isinstance(one, BadInput):
                    trouble(one)
                    continue
                try:
                    _card(project, one)
                except BadInput as error:  # a damaged file of the student
                    trouble(error)
            text = " ".join([one.id, one.title, *(exercise.title for exercise in one.exercises)])
            rows.append((text.lower(), row))

    def narrow() -> None:
        wanted = (query.value or "").lower().split()
        for text, row in rows:
            row.set_visibility(all(word in text for word in wanted))

    query.on_value_change(narrow)


def _card(project: Project, lab: Lab) -> None:
    progress = read_progress(lab)
    exercises = lab.whole.exercises
    passed = sum(progress.of(exercise.id).passed for exercise in exercises)
    with ui.element("h2"):
        ui.link(lab.title, f"/lab/{lab.id}")
    words("p", f"{lab.id} · {lab.minutes} minutes · {passed} of {len(exercises)} exercises passed", "soft")
    label = f'aria-label="{passed} of {len(exercises)} exercises passed"'
    ui.linear_progress(passed / max(len(exercises), 1), show_value=False).props(label)
    if progress.exercises or progress.predictions:
        words("p", f"next: {sources_of(project, lab).next_step(lab, progress)}", "soft")


def _lab(project: Project, lab: Lab, *, look: bool) -> None:
    progress, sources = read_progress(lab), sources_of(project, lab)
    words("p", lab.title, "lead")
    words("p", f"next: {sources.next_step(lab, progress)}", "soft")
    with ui.element("ol").classes("steps").props('aria-label="Exercises"'):
        for exercise in in_order(lab):
            done = progress.of(exercise.id)
            with ui.element("li").classes("done" if done.passed else ""):
                ui.link(exercise.shown_title, f"/lab/{lab.id}/exercise/{exercise.id}")
                words("p", _state(progress, sources, exercise.id), "soft")
    with ui.element("div").classes("row"):
        ui.link("Measure the lab's cases", f"/lab/{lab.id}/measure").classes("action")
        if look:
            ui.link("Look at the firewall", f"/lab/{lab.id}/look").classes("action")
    ui.markdown(shown(project, lab.folder / "README.md"), extras=EXTRAS)


def _state(progress: Progress, sources: Sources, exercise: str) -> str:
    """What was done of an exercise, in a few words."""
    done = progress.of(exercise)
    if done.last is None:
        return "predicted, not checked yet" if exercise in sources.predictions else "not begun"
    tries = f"{len(done.tries)} {'check' if len(done.tries) == 1 else 'checks'}"
    failed = f": {'; '.join(map(check_words, done.last.failed))}" if done.last.failed else ""
    state = "passed" if done.passed else f"last: {done.last.outcome.value}{failed}"
    return f"{state}; {tries}" + ("" if done.why or not done.passed else "; why it passes is missing")
