# SPDX-License-Identifier: GPL-2.0-or-later
"""Bills of materials (CycloneDX): the Python packages that run labs, and the Debian packages in a box or in the
image.

A box's packages are read from dpkg's status in its disk, without mounting it. The box's record has a hash of the same
list, made by dpkg itself while the image was built, with which it has to agree.
"""

import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from debian.deb822 import Deb822
from packageurl import PackageURL

from fwlab.model.errors import BuildError

#: Where mmdebstrap's only partition begins (bytes).
PARTITION = 1 << 20
STATUS = "/var/lib/dpkg/status"


def write_environment(root: Path, to: Path) -> None:
    """That of requirements.lock, with the hashes of all distributions."""
    command = [sys.executable, "-W", "ignore", "-m", "cyclonedx_py", "requirements", "--output-reproducible"]
    command += ["--pyproject", "pyproject.toml", "--of", "JSON", "-o", str(to.absolute()), "requirements.lock"]
    subprocess.run(command, cwd=root, check=True, capture_output=True)


def write_box(name: str, box: dict[str, Any], to: Path) -> None:
    """That of a Linux box. Raises BuildError if its disk does not have what its record says."""
    status = _status(Path(box["path"]))
    packages = packages_in(status.splitlines())
    listed = "\n".join(sorted(f"{package} {version}" for package, version, _ in packages))
    manifest = box["manifest"]
    if hashlib.sha256(listed.encode()).hexdigest() != manifest["packages_sha256"]:
        raise BuildError(f"{box['path']}: its packages are not those of its record", "make boxes")
    to.write_text(bill_of(name, box["key"], packages), encoding="utf-8")


def write_image(image: str, program: str, to: Path) -> None:
    """That of a container image, as Podman or Docker has it. Nothing of it runs. Raises BuildError."""
    container = _said(program, "create", image, "true").strip()
    try:
        packed = subprocess.run([program, "cp", f"{container}:{STATUS}", "-"], capture_output=True, check=True).stdout
    finally:
        _said(program, "rm", container)
    with tarfile.open(fileobj=io.BytesIO(packed)) as files:
        status = files.extractfile(files.getmembers()[0])
        assert status is not None  # noqa: S101 - it is a file
        packages = packages_in(status.read().decode().splitlines())
    key = _said(program, "image", "inspect", "--format", "{{.Id}}", image).strip().removeprefix("sha256:")
    to.write_text(bill_of("fwlab-image", key, packages), encoding="utf-8")


def _said(program: str, *words: str) -> str:
    done = subprocess.run([program, *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildError(f"{program} {words[0]}: {done.stderr.strip()}", "make image")
    return done.stdout


def bill_of(name: str, key: str, packages: Iterable[tuple[str, str, str]]) -> str:
    """The document. The same packages give the same bytes."""
    bom = Bom(serial_number=uuid.uuid5(uuid.NAMESPACE_URL, f"fwlab:{key}"))
    root = Component(name=name, version=key[:12], type=ComponentType.OPERATING_SYSTEM, bom_ref=name)
    bom.metadata.component = root
    for package, version, architecture in packages:
        url = PackageURL("deb", "debian", package, version, {"arch": architecture})
        bom.components.add(Component(name=package, version=version, purl=url, bom_ref=str(url)))
    bom.register_dependency(root, bom.components)
    document = json.loads(JsonV1Dot6(bom).output_as_string())
    document["metadata"].pop("timestamp", None)
    return json.dumps(document, indent=1, sort_keys=True) + "\n"


def packages_in(status: Iterable[str]) -> list[tuple[str, str, str]]:
    """Name, version and architecture of each package that dpkg knows."""
    return [(one["Package"], one["Version"], one["Architecture"]) for one in Deb822.iter_paragraphs(status)]


def _status(box: Path) -> str:
    """dpkg's status in a box's disk. Raises BuildError."""
    environment = {**os.environ, "PATH": f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"}
    with tempfile.TemporaryDirectory(prefix="fwlab-sbom-") as made:
        disk = Path(made, "disk.raw")
        commands = [
            ["tar", "-xf", str(box.absolute()), "-C", made, "box.img"],
            ["qemu-img", "convert", "-O", "raw", f"{made}/box.img", str(disk)],
            ["debugfs", "-R", f"cat {STATUS}", f"{disk}?offset={PARTITION}"],
        ]
        said = ""
        for command in commands:
            done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
            if done.returncode:
                raise BuildError(f"{box}: {command[0]}: {done.stderr.strip()}", "make boxes")
            said = done.stdout
    return said
