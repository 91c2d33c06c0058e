# SPDX-License-Identifier: GPL-2.0-or-later
"""The machines of this checkout: which there are, who uses them, and what `fwlab doctor` finds on this host."""

from dataclasses import dataclass

from nicegui import run, ui

from fwlab.checkout.project import Project, lab_ids
from fwlab.host.memory import memory_left
from fwlab.measure.host_room import memory_of_a_set
from fwlab.model.errors import FwlabError
from fwlab.model.topology import ROLES, Role
from fwlab.testbed.machines import RUNNING, memory_of_machines, states
from fwlab.testbed.session_lock import holder_of
from fwlab.web.jobs import Job, Jobs
from fwlab.web.view import attempt, cancel_button, progress_of, trouble, words

#: Seconds between looks at the machines, and at what a command does.
EVERY_S, JOB_EVERY_S = 3.0, 0.5
#: What a job of this page is about.
ABOUT = "machines"


@dataclass(frozen=True)
class Seen:
    """What there is: states by lab and role, MiB by lab, who holds the machines of a lab, and MiB that are left."""

    states: dict[str, dict[Role, str]]
    memory: dict[str, int]
    holders: dict[str, str]
    left: str


def seen(project: Project) -> Seen:
    """Ask libvirt. Raises CannotMeasure."""
    labs = lab_ids(project)
    found = states(project, labs)
    holders = {lab: holder for lab in found if (holder := holder_of(project, lab))}
    return Seen(found, memory_of_machines(project, labs), holders, str(memory_left()))


def machines_page(project: Project, jobs: Jobs) -> None:
    """Draw the page."""
    _Page(project, jobs).draw()


class _Page:
    def __init__(self, project: Project, jobs: Jobs) -> None:
        self._project, self._jobs = project, jobs
        self._seen: Seen | FwlabError | None = None
        self._job: tuple[object, ...] = ()

    def draw(self) -> None:
        self.running()
        self.machines()
        with ui.element("section"):
            words("h2", "This host")
            self.host = ui.element("div")
            with self.host:
                ui.button("Examine it", on_click=self._doctor, color=None).props("outline no-caps")
        ui.timer(JOB_EVERY_S, self._look_at_job)
        ui.timer(EVERY_S, self._look)

    async def _look(self) -> None:
        try:
            found: Seen | FwlabError | None = await run.io_bound(seen, self._project)
        except FwlabError as error:
            found = error
        if str(found) != str(self._seen):
            self._seen = found
            self.machines.refresh()

    def _look_at_job(self) -> None:
        before, self._job = self._job, self._jobs.state()
        if before != self._job:
            self.running.refresh()

    @ui.refreshable_method
    def running(self) -> None:
        job = self._jobs.latest
        if job is not None and job.running:
            words("p", job.line)
            cancel_button(self._jobs)
        if job is not None and (job.running or job.about == ABOUT):
            progress_of(job)

    @ui.refreshable_method
    def machines(self) -> None:
        if self._seen is None:
            words("p", "Asking libvirt …")
            return
        if isinstance(self._seen, FwlabError):
            trouble(self._seen)
            return
        found = self._seen
        words("p", f"{found.left} of memory are available; three machines need {memory_of_a_set(self._project)} MiB.")
        if found.states:
            with ui.element("table").props('aria-label="Machines"'), ui.element("tbody"):
                with ui.element("tr"):
                    for title in ("lab", *ROLES, "memory", "in use by", ""):
                        words("th", title).props("scope=col")
                for lab in sorted(found.states):
                    self._row(lab, found)
        else:
            words("p", "No machines. A check starts those that it needs, and destroys them at its end.")
        others = [lab for lab in lab_ids(self._project) if lab not in found.states]
        with ui.element("div").classes("row"):
            chosen = ui.select(others, label="A lab without machines").mark("lab")
            ui.button("Up", on_click=lambda: self._vagrant("up", chosen.value)).props("no-caps")

    def _row(self, lab: str, found: Seen) -> None:
        with ui.element("tr"):
            words("td", lab)
            for role in ROLES:
                words("td", found.states[lab].get(role, "not there"))
            words("td", f"{found.memory[lab]} MiB" if lab in found.memory else "", "number")
            words("td", found.holders.get(lab, "nobody"))
            with ui.element("td"):
                if lab in found.holders:
                    return
                if set(found.states[lab].values()) == {RUNNING}:
                    ui.button("Halt", on_click=lambda: self._vagrant("halt", lab), color=None).props("flat no-caps")
                else:
                    ui.button("Up", on_click=lambda: self._vagrant("up", lab), color=None).props("flat no-caps")
                ui.button("Destroy", on_click=lambda: self._destroy(lab), color=None).props("flat no-caps")

    async def _destroy(self, lab: str) -> None:
        with ui.dialog() as asked, ui.card():
            words("p", f"Destroy the machines of {lab}? Snapshots of yours go with them; your rulesets stay.")
            with ui.element("div").classes("row"):
                ui.button("Destroy them", on_click=lambda: asked.submit(True)).props("no-caps")
                ui.button("Keep them", on_click=lambda: asked.submit(False), color=None).props("outline no-caps")
        if await asked:
            await self._vagrant("destroy", "-f", lab)

    async def _vagrant(self, *typed: str | None) -> None:
        with attempt():
            given = tuple(word for word in typed if word)
            if len(given) == len(typed):  # a lab was chosen
                await self._jobs.start(Job(given, given[-1], ABOUT, program="vagrant"))

    async def _doctor(self) -> None:
        with attempt():
            found = await self._jobs.document("doctor", "--json")
            self.host.clear()
            with self.host:
                words("p", f"Testbed: {found['testbed']} ({found['why']}); engine: {found['engine']['name']}.")
                with ui.element("table").props('aria-label="This host"'), ui.element("tbody"):
                    for one in sorted(found["findings"], key=lambda finding: (finding["ok"], not finding["required"])):
                        with ui.element("tr"):
                            state = "ok" if one["ok"] else "missing" if one["required"] else "without"
                            words("td", state, "doubt" if state == "missing" else "soft")
                            words("td", one["item"])
                            with ui.element("td"):
                                words("p", one["says"])
                                if not one["ok"]:
                                    words("p", f"next: {one['next']}", "soft")
