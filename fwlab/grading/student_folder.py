# SPDX-License-Identifier: GPL-2.0-or-later
"""The folder that `fwlab init` makes: a bundle whose package is the installed one, to whose environment .venv leads."""

import shutil
import sys
import tempfile
from pathlib import Path

from fwlab import __version__
from fwlab.checkout.atomic_write import write_errors_as
from fwlab.checkout.project import Project, find_project, lab_ids, lab_named
from fwlab.checkout.version import VERSION, reject_other_version
from fwlab.grading.student_bundle import PACKED, bundle_files
from fwlab.measure.labs import load_lab
from fwlab.model.errors import BadInput

#: Programs of an environment that Vagrant and `make` look for in a folder's .venv.
PROGRAMS = ("python", "fwlab")


def source() -> Project:
    """What folders are made from: the files in this installed package, else its checkout."""
    return Project(PACKED) if PACKED.is_dir() else find_project(Path(__file__))


def make_folder(folder: Path, named: list[str]) -> bool:
    """Make a folder of these labs, or of all if none is named. False if it is there; then only its link is renewed.

    Raises BadInput, and leaves what was there as it was.
    """
    project = source()
    chosen = [lab_named(project, name) for name in named] or lab_ids(project)
    environment = Path(sys.prefix).resolve()  # it may have been found through a folder's .venv
    if lacking := [name for name in PROGRAMS if not (environment / "bin" / name).exists()]:
        hint = "install fwlab with `uv tool install` or `pipx install`"
        raise BadInput(f"{environment} has no bin/{lacking[0]}, which plans the machines", hint)
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise BadInput(f"{folder} is not a folder", "name a new folder")
    if (folder / VERSION).is_file():
        reject_other_version(folder)
        if missing := sorted(set(chosen if named else ()) - set(lab_ids(Project(folder)))):
            there = ", ".join(lab_ids(Project(folder)))
            raise BadInput(f"{folder} has {there}, but not {missing[0]}", f"fwlab init NEW-FOLDER --lab {missing[0]}")
        with write_errors_as(folder):
            (folder / ".venv").unlink(missing_ok=True)
            (folder / ".venv").symlink_to(environment)
        return False
    if folder.is_dir() and (others := sorted(path.name for path in folder.iterdir())):
        raise BadInput(f"{folder} contains other files ({', '.join(others[:3])})", "name a new folder")
    files = bundle_files(project, [load_lab(project, lab_id) for lab_id in chosen], installed=True)
    with write_errors_as(folder):
        _fill(folder, files, environment)
    return True


def _fill(folder: Path, files: dict[str, tuple[bytes, bool]], environment: Path) -> None:
    """Write into a draft, then move. It is inside the folder, which may be a volume or the working directory."""
    new = not folder.exists()
    moved: list[Path] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".fwlab-init-", dir=folder) as made:
            draft = Path(made)
            for name, (content, program) in {**files, VERSION.as_posix(): (f"{__version__}\n".encode(), False)}.items():
                path = draft / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
                if program:
                    path.chmod(path.stat().st_mode | (path.stat().st_mode & 0o444) >> 2)
            (draft / ".venv").symlink_to(environment)
            moved = [folder / path.name for path in draft.iterdir()]
            for path in sorted(moved, key=lambda one: one.name == VERSION.parts[0]):
                (draft / path.name).rename(path)
    except BaseException:  # Ctrl-C, too
        for path in moved:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
        if new and folder.is_dir():
            folder.rmdir()
        raise
