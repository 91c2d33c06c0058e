# SPDX-License-Identifier: GPL-2.0-or-later
"""What a student needs of a checkout, without solutions: as an archive, or as a folder that an installed fwlab makes.

What goes in is listed, and everything else stays out: a file that somebody adds is no leak. The same checkout gives the
same bytes.
"""

import gzip
import io
import posixpath
import re
import shutil
import subprocess
import tarfile
import zipfile
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from jinja2 import Environment, StrictUndefined

from fwlab.checkout.atomic_write import write_atomically
from fwlab.checkout.project import Project, lab_ids
from fwlab.measure.labs import load_lab
from fwlab.model.errors import BadInput
from fwlab.model.lab import Lab

#: Files and folders of the checkout, whole: the tools, and what builds the machines.
TOOLS = (
    *("LICENSE", "Vagrantfile", "pyproject.toml", "requirements.lock", "topology.yml", ".gitignore"),
    *("engine/*", "fwlab/*", "packer/*", "provision/*"),
)
#: Those of them that an archive has and a folder does without: the package is installed.
INSTALLED = ("pyproject.toml", "requirements.lock", "fwlab/*")
#: Where a wheel keeps what folders are made from, which setup.py copies there. A checkout has no such folder.
PACKED = Path(__file__).with_name("files")
GUIDES = ("before", "course-map", "glossary", "links", "method", "student", "traffic", "troubleshooting")
#: Of a lab's folder. `*` does not reach into folders here. Each case's ruleset and each exercise's start come with it.
OF_A_LAB = (
    *("README.md", "lab.yml", "ranges.yml", "hints.yml", "answers.yml", "explained.md", "*.py"),
    *("pictures/*", "work/README.md", "work/.gitignore"),
)
#: Pages of the bundle's own, by their templates.
OWN = {"README.md": "guides/bundle/README.md.j2", "Makefile": "guides/bundle/Makefile.j2"}
_LINK = re.compile(r"(?<!!)\[(?P<text>[^\]]+)\]\((?P<target>[^)\s]+)\)")
_PICTURE = re.compile(r"!\[[^\]]*\]\((?P<target>[^)\s]+)\)\n?")


def write_bundle(project: Project, lab_ids: list[str], folder: Path, *, every: bool = False) -> Path:
    """Write the archive of these labs into `folder`; its path. Raises BadInput for an unknown lab, or without git."""
    labs = [load_lab(project, lab_id) for lab_id in lab_ids]
    name = f"fwlab-{'labs' if every else '-'.join(lab_ids)}"
    return write_atomically(folder / f"{name}.tar.gz", archive(name, bundle_files(project, labs)))


def bundle_files(project: Project, labs: list[Lab], *, installed: bool = False) -> dict[str, tuple[bytes, bool]]:
    """What is in the bundle of these labs, by path: contents, and whether it is a program.

    installed  without the package, which the reader has
    """
    paths = {name: project.root / name for name in _names(project, labs, installed=installed)}
    found = {name: (path.read_bytes(), bool(path.stat().st_mode & 0o100)) for name, path in paths.items()}
    for name, template in OWN.items():
        found[name] = (_rendered(project.root / template, labs).encode(), False)
    for name, (content, program) in found.items():
        if name.endswith(".md"):
            found[name] = (without_lost_links(content.decode(), name, found).encode(), program)
    return found


def pack(project: Project, folder: Path) -> None:
    """Copy what bundles of all labs are made from, but for the package, into `folder`: PACKED of a wheel."""
    labs = [load_lab(project, lab_id) for lab_id in lab_ids(project)]
    for name in (*_names(project, labs, installed=True), *OWN.values()):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(project.root / name, folder / name)


def _names(project: Project, labs: list[Lab], *, installed: bool) -> list[str]:
    left_out = INSTALLED if installed else ()
    return [
        name
        for name in (_packed() if project.root == PACKED else _tracked(project))
        if any(wanted(name, lab) for lab in labs) and not any(fnmatchcase(name, pattern) for pattern in left_out)
    ]


def wanted(name: str, lab: Lab) -> bool:
    """Whether a student of this lab needs the file of that path."""
    path = PurePosixPath(name)
    if path.parts[0] == "guides":
        return path.parent.name == "guides" and path.suffix == ".md" and path.stem in GUIDES
    if path.parts[0] != "labs":
        return any(fnmatchcase(name, pattern) for pattern in TOOLS)
    if path.parts[1] != lab.id:
        return path.suffix == ".py" and path.parent in {PurePosixPath("labs", f.name) for f in lab.whole.code_folders}
    inside = path.relative_to(f"labs/{lab.id}")
    if inside.parts[0] == "rulesets":
        return _ruleset_wanted(inside.parts[1:], lab)
    return any(len(inside.parts) == pattern.count("/") + 1 and inside.match(pattern) for pattern in OF_A_LAB)


def _ruleset_wanted(parts: tuple[str, ...], lab: Lab) -> bool:
    """A case's ruleset, or the start of an exercise. A folder that is both has solutions: only its start."""
    if parts[0] in {exercise.id for exercise in lab.whole.exercises}:
        return len(parts) > 2 and parts[1] == "start"
    return parts[0] in {case.ruleset for case in lab.whole.cases.values()}


def without_lost_links(text: str, page: str, there: Iterable[str]) -> str:
    """The page with the words alone where a link leads to a file that is not in the bundle, and without its picture."""
    known = set(there)
    for folder in {posixpath.dirname(name) for name in known}:
        known.update(parent.as_posix() for parent in (PurePosixPath(folder), *PurePosixPath(folder).parents))

    def lost(target: str) -> bool:
        path = target.partition("#")[0]
        if not path or re.match(r"[a-z]+:", path):
            return False
        return posixpath.normpath(PurePosixPath(page).parent / path) not in known

    text = _PICTURE.sub(lambda found: "" if lost(found["target"]) else found[0], text)
    return _LINK.sub(lambda found: found["text"] if lost(found["target"]) else found[0], text)


def archive(folder: str, files: Mapping[str, tuple[bytes, bool]]) -> bytes:
    """A .tar.gz of these files in one folder. Its bytes depend on nothing else: not on times, users or the order."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name in sorted(files):
            content, program = files[name]
            entry = tarfile.TarInfo(f"{folder}/{name}")
            entry.size, entry.mode = len(content), 0o755 if program else 0o644
            tar.addfile(entry, io.BytesIO(content))
    return gzip.compress(packed.getvalue(), mtime=0)


def zip_archive(files: Mapping[str, tuple[bytes, int]]) -> bytes:
    """A .zip of these files, each with its mode. Its bytes depend on nothing else, as those of `archive`."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as made:
        for name, (content, mode) in files.items():
            info = zipfile.ZipInfo(name)  # of 1980
            info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, mode << 16
            made.writestr(info, content)
    return packed.getvalue()


def _rendered(template: Path, labs: list[Lab]) -> str:
    """A page of the bundle's own. The labs are those of the project, so nothing in them needs escaping."""
    environment = Environment(undefined=StrictUndefined, trim_blocks=True, keep_trailing_newline=True)  # noqa: S701
    first = labs[0]
    exercises = first.whole.exercises
    return environment.from_string(template.read_text(encoding="utf-8")).render(
        labs=labs, first=first, exercise=exercises[0].id if exercises else "EXERCISE"
    )


def _packed() -> list[str]:
    """The files in this installed package. What installed it may have compiled the labs' Python files."""
    paths = [path.relative_to(PACKED) for path in sorted(PACKED.rglob("*")) if path.is_file()]
    return [path.as_posix() for path in paths if "__pycache__" not in path.parts]


def _tracked(project: Project) -> list[str]:
    """The files that git keeps: a student's own work and old reports are none of them."""
    command = ["git", "-C", str(project.root), "ls-files", "-z"]
    try:
        listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise BadInput(
            f"{project.root}: not a git checkout, so there is no list of its files", "git clone the project"
        ) from error
    return [name for name in listed.split("\0") if name and (project.root / name).is_file()]
