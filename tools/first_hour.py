# SPDX-License-Identifier: GPL-2.0-or-later
"""A newcomer's first hour, step by step with seconds: in a new clone with an empty cache, or in the container image.

Debian's packages are installed where they are missing, so a host that has none shows what they cost.
"""

import datetime
import json
import os
import shlex
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import typer

from fwlab.checkout.project import Project, display_path, find_project
from fwlab.checkout.raw_results import raw_result, raw_results, read_document, write_document
from fwlab.cli.options import LabName
from fwlab.images.box_transfer import require_new
from fwlab.images.disk_use import PARTS, bytes_of, bytes_of_machines
from fwlab.measure.provenance import commit, host_facts
from fwlab.model.errors import EXIT_FAIL, CannotMeasure
from tools.markdown import block, table

EXERCISE = "ex1"
#: Before each step's time (s since 1970) in what the container prints.
MARK = "fwlab-step "
#: By name: what a newcomer types, in the folder that the step before left.
IN_A_CLONE = {
    "Debian's packages": "provision/host/install",
    "Python's packages": "provision/host/venv",
    "boxes": "packer/build --lab LAB",
}
#: The first and the last of these on a host that takes its boxes from elsewhere.
IMPORTED = {
    "Debian's packages": "provision/host/install packages.txt",
    "boxes": "packer/build --import FOLDER",
}
AFTERWARDS = {
    "`vagrant up`": "vagrant up LAB",
    "the first figure": "fwlab run LAB raw-drop",
    "an exercise, checked": f"fwlab start LAB {EXERCISE} && fwlab check LAB {EXERCISE}",
    "every case": "fwlab run LAB",
    "`vagrant destroy`": "vagrant destroy -f LAB",
    "`vagrant up` again": "vagrant up LAB",
}
Steps = list[dict[str, Any]]


def first_hour_command(
    lab: LabName,
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A new folder: the clone, its cache, the log.")],
    image: Annotated[str, typer.Option(help="Instead of a clone, this container image, by Podman.")] = "",
    option: Annotated[
        list[str] | None, typer.Option(metavar="OPTION", help="An option of `podman`, before `run`; may be repeated.")
    ] = None,
    imported: Annotated[
        Path | None,
        typer.Option("--import", metavar="FOLDER", help="Boxes of another host; build none."),
    ] = None,
    name: Annotated[str, typer.Option(help="Of the result, such as debian13.")] = "debian12",
) -> None:
    """Do what a newcomer does, with the time of each step, and keep that under results/."""
    project = find_project()
    require_new(folder)
    folder.mkdir(parents=True, exist_ok=True)
    result = {
        "what": "a newcomer's first hour",
        "started": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "commit": commit(project),
        "host": host_facts().model_dump(mode="json"),
        "lab": lab,
        "image": bool(image),
    }
    log = folder / "log"
    if image:
        result["steps"] = in_the_image(["podman", *(option or [])], image, lab, log, typer.echo)
    else:
        result |= in_a_clone(project, folder.absolute(), lab, imported, typer.echo)
    result["load_average"] = os.getloadavg()
    today = datetime.date.today().isoformat()
    path = raw_result(project, f"first-hour/{today}-{'image' if image else name}")
    write_document(path, json.dumps(result, indent=1) + "\n")
    typer.echo(f"written: {display_path(project, path)}")


def in_a_clone(
    project: Project, folder: Path, lab: str, imported: Path | None, emit: Callable[[str], None]
) -> dict[str, Any]:
    """Steps, and what is on the disk after them (MiB). Raises CannotMeasure for a step that fails."""
    top, cache, log = folder / "fwlab", folder / "cache", folder / "log"
    path = f"{top / '.venv/bin'}:{os.environ['PATH']}"
    own = {"FWLAB_CACHE": str(cache), "VAGRANT_HOME": str(folder / "vagrant"), "PATH": path}
    steps: Steps = []
    began = time.monotonic()
    _run(["git", "clone", "--quiet", str(project.root), str(top)], log, own, project.root)
    steps.append({"name": "the clone", "seconds": round(time.monotonic() - began, 1)})
    before = bytes_of_machines()
    try:
        for step, words in {**IN_A_CLONE, **(IMPORTED if imported else {}), **AFTERWARDS}.items():
            began = time.monotonic()
            typed = words.replace("LAB", lab).replace("FOLDER", shlex.quote(str(imported and imported.absolute())))
            _run(["sh", "-c", typed], log, own, top, _allowed(words))
            steps.append({"name": step, "seconds": round(time.monotonic() - began, 1)})
            emit(f"{step}: {steps[-1]['seconds']} s")
        disk = {part: bytes_of(cache / part) for part in PARTS}
        disk |= {"cache": bytes_of(cache), ".venv": bytes_of(top / ".venv")}
        disk |= {"clone": bytes_of(top) - disk[".venv"], "machines and their boxes": bytes_of_machines() - before}
        disk["machines and their boxes"] += bytes_of(folder / "vagrant")
    finally:
        subprocess.run(["vagrant", "destroy", "-f", lab], cwd=top, env={**_usual(), **own}, check=False)
    return {"steps": steps, "disk_mib": {part: size >> 20 for part, size in disk.items()}}


def in_the_image(podman: list[str], image: str, lab: str, log: Path, emit: Callable[[str], None]) -> Steps:
    """Steps in one container, without a network or a capability. Raises CannotMeasure."""
    names = list(AFTERWARDS)
    mark = f"echo '{MARK}'$(date +%s.%N)\n"
    script = mark
    for words in AFTERWARDS.values():
        script += f"({words}) || {{ code=$?; [ $code = {max(_allowed(words))} ] || exit $code; }}\n{mark}"
    container = f"fwlab-first-hour-{os.getpid()}"
    alone = ("run", "--rm", f"--name={container}", "--network=none", "--cap-drop=ALL")
    began = time.time()
    try:
        _run([*podman, *alone, image, "sh", "-c", script.replace("LAB", lab)], log, {}, Path.cwd())
    finally:  # the container goes on if Ctrl-C ends its client
        subprocess.run([*podman, "rm", "--force", "--ignore", container], capture_output=True, check=False)
    marks = [float(line[len(MARK) :]) for line in log.read_text().splitlines() if line.startswith(MARK)]
    if len(marks) != len(names) + 1:
        raise CannotMeasure(f"{image}: only {len(marks)} steps started", f"read {log}")
    times = [began, *marks]
    steps = [
        {"name": name, "seconds": round(end - start, 1)}
        for name, (start, end) in zip(["the container", *names], pairwise(times), strict=True)
    ]
    for step in steps:
        emit(f"{step['name']}: {step['seconds']} s")
    return steps


def _allowed(words: str) -> tuple[int, ...]:
    """Exit codes with which a step is done: the start of an exercise fails its checks."""
    return (0, EXIT_FAIL) if "check" in words else (0,)


def _run(words: list[str], log: Path, own: Mapping[str, str], where: Path, allowed: Iterable[int] = (0,)) -> None:
    with log.open("ab") as file:
        done = subprocess.run(words, cwd=where, env={**_usual(), **own}, stdout=file, stderr=file, check=False)
    if done.returncode not in allowed:
        raise CannotMeasure(f"{words[-1].strip().splitlines()[-1]} ended with {done.returncode}", f"read {log}")


def _usual() -> dict[str, str]:
    """The environment without anybody's settings, and with what Python keeps of what it has compiled."""
    drop = ("FWLAB_", "VAGRANT_", "PYTHONDONTWRITEBYTECODE")
    return {name: value for name, value in os.environ.items() if not name.startswith(drop)}


def first_hours() -> str:
    """Of each kind the newest result: a column with each step's seconds; below it the host's CPU, the disk."""
    newest = {path.name[11:].partition(".")[0]: path for path in raw_results(find_project(), "first-hour/*")}
    if not newest:
        return block("No such run has been kept yet.")
    found = {kind: json.loads(read_document(path)) for kind, path in newest.items()}
    seconds = {kind: {step["name"]: step["seconds"] for step in one["steps"]} for kind, one in found.items()}
    names = dict.fromkeys(name for steps in seconds.values() for name in steps)
    rows = [(name, *(f"{steps[name]:.0f}" if name in steps else "" for steps in seconds.values())) for name in names]
    rows.append(("together", *(f"{sum(steps.values()):.0f}" for steps in seconds.values())))
    heads = [f"{kind}, {one['started'][:10]}, load {one['load_average'][-1]:.1f}:" for kind, one in found.items()]
    notes = []
    for kind, one in found.items():
        parts = ", ".join(f"{part} {size}" for part, size in one.get("disk_mib", {}).items())
        note = f"{kind}: {one['host']['cpu']}, {one['host']['cores']} cores"
        notes.append(f"{note}; on the disk afterwards, in MiB: {parts}." if parts else f"{note}.")
    return block("\n\n".join([table(("step, s", *heads), rows), *notes]))
