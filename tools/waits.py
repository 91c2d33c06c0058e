# SPDX-License-Identifier: GPL-2.0-or-later
"""How long students and instructors wait, measured as they would: by the commands that they type.

Machines are made by a boot, and from their saved states; one student's reference solutions are graded; and what all of
that takes of the host's memory and disk. Real time depends on the host, so the result names it, and its load.
"""

import csv
import datetime
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import psutil
import typer

from fwlab.checkout.project import Project, display_path, find_project
from fwlab.checkout.raw_results import raw_result, write_document
from fwlab.cli.options import LabName
from fwlab.host.environment import cache_directory
from fwlab.images.disk_use import PARTS, bytes_of, bytes_of_machines
from fwlab.measure.labs import load_lab
from fwlab.measure.provenance import commit, host_facts
from fwlab.model.errors import CannotMeasure
from fwlab.model.lab import Lab
from fwlab.model.topology import ROLES, Topology
from fwlab.rulesets.files import rendered
from fwlab.testbed.choices import topology_of
from fwlab.testbed.qemu_process import qemu_of

STUDENT = "ada"


def waits_command(
    lab: LabName,
    every_case: Annotated[bool, typer.Option("--every-case", help="Also measure all cases, as `make lab`.")] = False,
) -> None:
    """Measure how long students and instructors wait on this host, and keep it under results/."""
    project = find_project()
    found = load_lab(project, lab)
    result = waits(project, found, topology_of(project, found), typer.echo, every_case=every_case)
    today = datetime.date.today().isoformat()
    path = write_document(raw_result(project, f"{found.id}/{today}-waits"), json.dumps(result, indent=1) + "\n")
    typer.echo(f"written: {display_path(project, path)}")


def waits(
    project: Project, lab: Lab, topology: Topology, emit: Callable[[str], None], *, every_case: bool = False
) -> dict[str, Any]:
    """Seconds and sizes (MiB), by name. The lab must have no machines; it has none afterwards. Raises CannotMeasure."""
    result: dict[str, Any] = {
        "what": "how long students and instructors wait",
        "started": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "commit": commit(project),
        "host": host_facts().model_dump(mode="json"),
        "load_average": os.getloadavg(),
    }
    if _machines(topology, lab):
        raise CannotMeasure(
            f"{lab.id} has machines, and this measures how they are made", f"vagrant destroy -f {lab.id}"
        )
    try:
        for name, saved in (("up_by_booting_s", "no"), ("up_from_saved_state_s", "yes")):
            destroy(project, lab)
            if saved == "yes":  # once more, so that there is a state
                _timed(project, ["vagrant", "up", lab.id], FWLAB_SAVED=saved)
                destroy(project, lab)
            result[name] = _timed(project, ["vagrant", "up", lab.id], FWLAB_SAVED=saved)
            emit(f"{name}: {result[name]:.1f}")
        result["resident_mib"] = {
            role: psutil.Process(pid).memory_info().rss >> 20 for role, pid in _machines(topology, lab).items()
        }
        result |= _one_student(project, lab, topology)
        emit(f"one_student_graded_s: {result['one_student_graded_s']:.1f}, {len(result['marks'])} exercises")
        if every_case:
            destroy(project, lab)
            # With the machines, which it starts and destroys.
            program = str(Path(sys.executable).with_name("fwlab"))
            result["every_case_measured_s"] = _timed(project, [program, "run", lab.id])
            emit(f"every_case_measured_s: {result['every_case_measured_s']:.1f}, {len(lab.cases)} cases")
    finally:
        destroy(project, lab)
    result["cache_mib"] = {part: bytes_of(cache_directory() / part) >> 20 for part in PARTS}
    result["machines_mib"] = bytes_of_machines() >> 20
    emit(f"resident MiB: {result['resident_mib']}; cache MiB: {result['cache_mib']}")
    return result


def destroy(project: Project, lab: Lab) -> None:
    """Destroy the lab's machines, if it has any."""
    _timed(project, ["vagrant", "destroy", "-f", lab.id])


def _one_student(project: Project, lab: Lab, topology: Topology) -> dict[str, Any]:
    """Grade one student who hands in the reference of every exercise that counts, from the command to the last file."""
    with tempfile.TemporaryDirectory(prefix="fwlab-waits-") as made:
        top = Path(made)
        for exercise in lab.exercises:
            if exercise.further:
                continue
            folder = top / "class" / STUDENT / exercise.id
            folder.mkdir(parents=True)
            source = lab.folder / "rulesets" / exercise.id / "reference"
            for name, text in dict(rendered(source, exercise.parameters, topology)).items():
                (folder / name).write_text(text)
        words = [sys.executable, "-m", "pytest", "--testinfra", "--lab", lab.id, f"--submissions={top / 'class'}"]
        seconds = _timed(project, [*words, f"--results={top / 'results'}", "-q", "-p", "no:cacheprovider"])
        marks = list(csv.DictReader((top / "results" / "marks.csv").open(newline="")))
        run = json.loads((top / "results" / "run.json").read_text())
    each = {measured["id"]: measured["wall_s"] for measured in run["exercises"]}
    return {"one_student_graded_s": seconds, "of_which_measuring_s": each, "marks": marks}


def _timed(project: Project, words: Sequence[str], **environment: str) -> float:
    """Run a command to its end; the seconds that it took. Raises CannotMeasure if it fails."""
    began = time.monotonic()
    # With that variable, which a user seldom has, each command would compile the whole package again.
    usual = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        words, cwd=project.root, env={**usual, **environment}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()[-1:]
        command = " ".join(words[:3])
        raise CannotMeasure(f"{command} failed (exit {done.returncode}): {''.join(said)}", "fwlab doctor")
    return round(time.monotonic() - began, 1)


def _machines(topology: Topology, lab: Lab) -> dict[str, int]:
    """Process ids of the lab's QEMUs that run, by role."""
    found = {}
    for role in ROLES:
        try:
            found[role] = qemu_of(topology.ports.address, topology.ssh_port(lab.number, role))
        except CannotMeasure:
            continue
    return {str(role): pid for role, pid in found.items()}
