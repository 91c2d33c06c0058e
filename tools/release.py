# SPDX-License-Identifier: GPL-2.0-or-later
"""Everything that a release publishes, in one folder: `make release`.

The version is the name of the tag of this commit, v1.0.0, and is written nowhere else; without a tag it is that of a
checkout. All is built twice, each time in a new clone, and compared. Boxes are copied from the cache of this host.
"""

import contextlib
import datetime
import filecmp
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer

import fwlab
from fwlab.checkout.project import Project, find_project, lab_ids
from fwlab.grading.student_bundle import archive, write_bundle
from fwlab.host.environment import cache_directory
from fwlab.images.box_transfer import export_boxes, require_new
from fwlab.images.boxes import Boxes, built_boxes, sha256_of
from fwlab.model.errors import BadInput, CannotMeasure
from tools import sbom
from tools.site.students import build_site, build_students_site

SUMS, BUILDS = "SHA256SUMS", "BUILDS.txt"
_TAG = re.compile(r"v(\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?)")
_VERSION = re.compile(r'^__version__ = ".*"$', re.MULTILINE)
#: Debian's names for architectures, which Vagrant uses too.
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def release_command(
    output: Annotated[Path, typer.Argument(metavar="DIR", help="A new folder.")],
    url: Annotated[
        str,
        typer.Option(
            "--url",
            metavar="URL",
            help="Where boxes will be published, for Vagrant's catalogs (default: where one is).",
        ),
    ] = "",
    image: Annotated[
        str, typer.Option("--image", metavar="NAME", help="Add this image, which `make image` built of this commit.")
    ] = "",
    once: Annotated[bool, typer.Option("--once", help="Build once, and compare nothing.")] = False,
) -> None:
    """Build everything that a release publishes. Exits with 2 if the tree is not clean or a section is missing."""
    project = find_project()
    if changed := _git(project.root, "status", "--porcelain"):
        raise BadInput(f"not committed: {changed.splitlines()[0][3:]}", "commit or stash it; a release has a commit")
    tagged = tagged_version(project.root)
    version = tagged or fwlab.__version__
    notes = notes_of((project.root / "CHANGELOG.md").read_text(encoding="utf-8"), tagged)
    require_new(output)
    with tempfile.TemporaryDirectory(prefix="fwlab-release-") as made:
        first, *others = [_built(project, version, Path(made, name)) for name in ("one", *(() if once else ("two",)))]
        shutil.copytree(first, output, dirs_exist_ok=True)
        told = [line for other in others for line in differences(first, other)]
    commit = _git(project.root, "rev-parse", "HEAD")
    how = "built once" if once else f"built twice; {', '.join(told) or 'nothing'} differs"
    (output / BUILDS).write_text(f"fwlab {version}, commit {commit}: {how}. Boxes were built before.\n")
    (output / "NOTES.md").write_text(notes, encoding="utf-8")
    with contextlib.suppress(CannotMeasure):  # no box was built here
        _add_boxes(built_boxes(project), version, url, output / "boxes")
    if image:
        _add_image(image, output / f"fwlab-{version}-image")
    write_sums(output)
    typer.echo(f"{output}: fwlab {version}, {len(list(_files(output)))} files; {how}")


def tagged_version(root: Path) -> str | None:
    """From the name of the tag of the checked out commit; None without a tag. Raises BadInput."""
    tags = _git(root, "tag", "--points-at", "HEAD", "--list", "v*").split()
    if not tags:
        return None
    found = _TAG.fullmatch(tags[-1])
    if found is None or len(tags) > 1:
        raise BadInput(f"{' and '.join(tags)}: not one version", "tag the commit once, as v1.2.3 or v1.2.3rc1")
    return found[1]


def notes_of(changelog: str, version: str | None) -> str:
    """The section of this version, or the unreleased one. Raises BadInput if there is none, or it has no date."""
    name = "Unreleased" if version is None else version
    found = re.search(rf"^## \[{re.escape(name)}\](?P<date>.*)\n(?P<text>(?:(?!## ).*\n?)*)", changelog, re.MULTILINE)
    if found is None or not found["text"].strip():
        raise BadInput(f"CHANGELOG.md has no section {name}", f"put `## [{name}] - DATE` below `## [Unreleased]`")
    if version is not None and not re.fullmatch(r" - \d{4}-\d\d-\d\d", found["date"]):
        raise BadInput(f"CHANGELOG.md: section {name} has no date", f"## [{name}] - {datetime.date.today()}")
    return found["text"].strip() + "\n"


def differences(one: Path, other: Path) -> list[str]:
    """Files of these folders that are not the same, by name."""
    names = {path.relative_to(folder).as_posix() for folder in (one, other) for path in _files(folder)}
    both = [name for name in sorted(names) if (one / name).is_file() and (other / name).is_file()]
    _, unlike, faulty = filecmp.cmpfiles(one, other, both, shallow=False)
    return sorted({*names - set(both), *unlike, *faulty})


def catalog(image: str, box: dict[str, Any], version: str, url: str) -> dict[str, Any]:
    """What `config.vm.box_url` names and `vagrant box update` reads: https://developer.hashicorp.com/vagrant."""
    provider = {
        "name": "libvirt",
        "url": f"{url.rstrip('/')}/{Path(box['path']).name}" if url else Path(box["path"]).name,
        "checksum_type": "sha256",
        "checksum": box["sha256"],
        "architecture": ARCHITECTURES[os.uname().machine],
        "default_architecture": True,
    }
    description = f"{image} of the Firewall Performance Lab; kernel {box['manifest'].get('kernel', 'unknown')}"
    versions = [{"version": version, "providers": [provider]}]
    return {"name": f"fwlab/{image}", "description": description, "versions": versions}


def write_sums(folder: Path) -> None:
    """SHA256SUMS, as sha256sum prints it and `sha256sum -c` reads it."""
    names = sorted(path.relative_to(folder).as_posix() for path in _files(folder))
    (folder / SUMS).write_text("".join(f"{sha256_of(folder / name)}  {name}\n" for name in names))


def _built(project: Project, version: str, folder: Path) -> Path:
    """Build everything but the boxes in a new clone."""
    root, made, name = folder / "fwlab", folder / "release", f"fwlab-{version}"
    made.mkdir(parents=True)
    _git(project.root, "clone", "--quiet", str(project.root), str(root))
    commit_time = _git(root, "log", "-1", "--format=%ct")
    init = root / "fwlab" / "__init__.py"
    init.write_text(_VERSION.sub(f'__version__ = "{version}"', init.read_text(encoding="utf-8")), encoding="utf-8")
    clone = Project(root)
    (made / f"{name}.tar.gz").write_bytes(archive(name, _tree(root, ".")))
    (made / f"{name}-results.tar.gz").write_bytes(archive(f"{name}-results", _tree(root, "results")))
    day = datetime.datetime.fromtimestamp(int(commit_time), datetime.UTC).date()
    citation = (root / "CITATION.cff").read_text(encoding="utf-8")
    (made / "CITATION.cff").write_text(f"{citation}version: {version}\ndate-released: {day}\n", encoding="utf-8")
    _wheel(root, made, commit_time)
    for labs in ([lab] for lab in lab_ids(clone)):
        write_bundle(clone, labs, made / "bundles")
    write_bundle(clone, lab_ids(clone), made / "bundles", every=True)
    build_site(root, folder / "instructors")
    build_students_site(clone, folder / "students")
    for readers in ("instructors", "students"):
        site = {path.relative_to(folder / readers).as_posix(): path for path in _files(folder / readers)}
        packed = archive(f"{name}-site-{readers}", {one: (path.read_bytes(), False) for one, path in site.items()})
        (made / f"{name}-site-{readers}.tar.gz").write_bytes(packed)
    sbom.write_environment(root, made / f"{name}-environment.cdx.json")
    return made


def _tree(root: Path, under: str) -> dict[str, tuple[bytes, bool]]:
    """The files that git keeps. A symbolic link is what it leads to."""
    names = _git(root, "ls-files", "-z", "--", under).split("\0")
    paths = {name: root / name for name in names if name}
    return {name: (path.read_bytes(), os.access(path, os.X_OK)) for name, path in paths.items()}


def _wheel(root: Path, to: Path, commit_time: str) -> None:
    uv = str(Path(sys.executable).with_name("uv"))
    command = [uv, "-q", "build", "--wheel", "--no-build-isolation", "--python", sys.executable, "--out-dir", str(to)]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": commit_time}
    done = subprocess.run([*command, str(root)], env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BadInput(f"the wheel cannot be built\n{done.stderr}", "make wheel")
    (to / ".gitignore").unlink(missing_ok=True)


def _add_boxes(boxes: Boxes, version: str, url: str, folder: Path) -> None:
    """The boxes as `make boxes IMPORT=` takes them, with their catalogs and bills of materials."""
    export_boxes(cache_directory(), boxes, folder, typer.echo, states=False)
    for image, box in boxes.items():
        text = json.dumps(catalog(image, box, version, url), indent=1) + "\n"
        (folder / "boxes" / f"{image}.json").write_text(text)
        if "packages_sha256" in box["manifest"]:
            sbom.write_box(f"fwlab-{image}", box, folder / "boxes" / f"{image}.cdx.json")


def _add_image(image: str, path: Path) -> None:
    """The image as a file for `podman load` or `docker load`, and its bill of materials. Raises BuildError."""
    program = next(filter(shutil.which, ("podman", "docker")), None)
    if program is None:
        raise BadInput("neither podman nor docker is here", "leave --image out")
    sbom.write_image(image, program, path.with_name(f"{path.name}.cdx.json"))
    saved = path.with_name(f"{path.name}.tar")
    for command in ([program, "save", "-o", saved, image], ["zstd", "-q", "-T0", "--rm", saved]):
        subprocess.run(list(map(str, command)), check=True)


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and path.name != SUMS]


def _git(root: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise BadInput(f"git {words[0]}: {done.stderr.strip()}", "git status")
    return done.stdout.rstrip("\n")
