# SPDX-License-Identifier: GPL-2.0-or-later
"""`make release`: the version of the tag, what is in the folder, and that it can be installed from the folder alone."""

import hashlib
import io
import json
import os
import subprocess
import sys
import sysconfig
import tarfile
from pathlib import Path

import pytest

from fwlab.model.errors import BadInput, BuildError
from tests import ROOT
from tests.checkout import LAB_IDS
from tests.fakes.programs import program
from tests.unit.project.test_requirements import RUN, normal
from tools import sbom
from tools.release import SUMS, _add_image, catalog, differences, notes_of, tagged_version, write_sums

UV = Path(sys.executable).with_name("uv")
CHANGELOG = (
    "# Changelog\n\n## [Unreleased]\n\n- new\n\n## [1.0.0] - 2027-01-31\n\n### Labs\n\n- one\n\n## [0.9.0]\n\n- old\n"
)
STATUS = """\
Package: nftables
Status: install ok installed
Architecture: amd64
Version: 1.0.6-2
Description: a tool
 of netfilter

Package: adduser
Architecture: all
Version: 3.134
"""


def run(*words: object, cwd: Path, **environment: str) -> str:
    done = subprocess.run(
        [str(word) for word in words], cwd=cwd, env={**os.environ, **environment}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    run("git", "init", "-q", cwd=tmp_path)
    commit(tmp_path)
    return tmp_path


def commit(folder: Path) -> None:
    author = ("-c", "user.name=x", "-c", "user.email=x@example.org")
    run("git", *author, "commit", "-q", "--allow-empty", "-am", "x", cwd=folder)


def test_the_version_is_the_name_of_the_tag(repository: Path) -> None:
    assert tagged_version(repository) is None
    run("git", "tag", "v1.2.3", cwd=repository)
    assert tagged_version(repository) == "1.2.3"
    commit(repository)
    assert tagged_version(repository) is None
    run("git", "tag", "v1.3.0rc1", cwd=repository)
    assert tagged_version(repository) == "1.3.0rc1"
    run("git", "tag", "v1.3.0", cwd=repository)
    with pytest.raises(BadInput, match="not one version"):
        tagged_version(repository)


def test_a_tag_that_is_no_version(repository: Path) -> None:
    run("git", "tag", "v1", cwd=repository)
    with pytest.raises(BadInput, match="v1: not one version"):
        tagged_version(repository)


def test_the_notes_are_the_section_of_the_version() -> None:
    assert notes_of(CHANGELOG, "1.0.0") == "### Labs\n\n- one\n"
    assert notes_of(CHANGELOG, None) == "- new\n"
    with pytest.raises(BadInput, match=r"no section 1\.1\.0"):
        notes_of(CHANGELOG, "1.1.0")
    with pytest.raises(BadInput, match=r"section 0\.9\.0 has no date"):
        notes_of(CHANGELOG, "0.9.0")
    assert notes_of((ROOT / "CHANGELOG.md").read_text(), None).startswith("### ")


def test_what_differs_is_named(tmp_path: Path) -> None:
    for name, texts in {"one": ("a", "b", None), "two": ("a", "c", "d")}.items():
        (tmp_path / name / "sub").mkdir(parents=True)
        for file, text in zip(("same", "sub/unlike", "alone"), texts, strict=True):
            if text is not None:
                (tmp_path / name / file).write_text(text)
    assert differences(tmp_path / "one", tmp_path / "two") == ["alone", "sub/unlike"]
    assert differences(tmp_path / "one", tmp_path / "one") == []


def test_sums_are_those_of_sha256sum(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "b").write_text("x")
    (tmp_path / "a").write_text("y")
    write_sums(tmp_path)
    write_sums(tmp_path)  # the list is not in itself
    assert run("sha256sum", "-c", SUMS, cwd=tmp_path) == "a: OK\nsub/b: OK\n"


def test_a_catalog_is_what_vagrant_reads() -> None:
    box = {"path": "/cache/boxes/sink-0123.box", "sha256": "ab", "manifest": {"kernel": "6.1.0-1"}}
    found = catalog("sink", box, "1.0.0", "https://example.org/v1/")
    [version] = found["versions"]
    [provider] = version["providers"]
    assert (found["name"], version["version"]) == ("fwlab/sink", "1.0.0")
    assert provider["url"] == "https://example.org/v1/sink-0123.box"
    assert (provider["name"], provider["checksum_type"], provider["checksum"]) == ("libvirt", "sha256", "ab")
    assert provider["architecture"] == run("dpkg", "--print-architecture", cwd=ROOT).strip()
    assert catalog("sink", box, "1.0.0", "")["versions"][0]["providers"][0]["url"] == "sink-0123.box"


@pytest.mark.thorough
@pytest.mark.timeout(300)
def test_vagrant_adds_a_box_by_its_catalog_and_finds_the_next_version(tmp_path: Path) -> None:
    vagrant, served = program("vagrant"), tmp_path / "served"
    served.mkdir()
    (tmp_path / "Vagrantfile").write_text(
        f'Vagrant.configure("2") {{ |c| c.vm.box = "fwlab/sink"; c.vm.box_url = "file://{served}/sink.json" }}\n'
    )

    def publish(*versions: str) -> None:
        """A box of each version; the catalog lists them all."""
        listed = []
        for version in versions:
            path = served / f"sink-{version}.box"
            with tarfile.open(path, "w") as box:
                metadata = json.dumps({"provider": "libvirt", "format": "qcow2", "virtual_size": 1}).encode()
                for name, content in {
                    "metadata.json": metadata,
                    "box.img": version.encode(),
                    "Vagrantfile": b"",
                }.items():
                    entry = tarfile.TarInfo(name)
                    entry.size = len(content)
                    box.addfile(entry, io.BytesIO(content))
            record = {"path": str(path), "sha256": hashlib.sha256(path.read_bytes()).hexdigest(), "manifest": {}}
            made = catalog("sink", record, version, f"file://{served}")
            listed += made["versions"]
        (served / "sink.json").write_text(json.dumps(made | {"versions": listed}))

    def said(*words: str) -> str:
        return run(vagrant, *words, cwd=tmp_path, VAGRANT_HOME=str(tmp_path / "home"), VAGRANT_CHECKPOINT_DISABLE="1")

    publish("1.0.0")
    said("box", "add", "--provider", "libvirt", "served/sink.json")
    assert "fwlab/sink (libvirt, 1.0.0" in said("box", "list")
    publish("1.0.0", "1.1.0")
    said("box", "update", "--provider", "libvirt")
    assert "fwlab/sink (libvirt, 1.1.0" in said("box", "list")
    (served / "sink-1.1.0.box").write_bytes(b"another")
    said("box", "remove", "fwlab/sink", "--box-version", "1.1.0")
    with pytest.raises(AssertionError, match="checksum"):
        said("box", "update", "--provider", "libvirt")


def test_a_boxes_bill_has_its_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packages = sbom.packages_in(STATUS.splitlines())
    assert packages == [("nftables", "1.0.6-2", "amd64"), ("adduser", "3.134", "all")]
    monkeypatch.setattr(sbom, "_status", lambda _: STATUS)
    digest = hashlib.sha256(b"adduser 3.134\nnftables 1.0.6-2").hexdigest()
    box = {"path": "x.box", "key": "0123456789abcdef", "manifest": {"packages_sha256": digest}}
    for path in (tmp_path / "one", tmp_path / "two"):
        sbom.write_box("fwlab-sink", box, path)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    found = json.loads((tmp_path / "one").read_text())
    assert found["metadata"]["component"]["name"] == "fwlab-sink"
    assert [one["purl"] for one in found["components"]] == [
        "pkg:deb/debian/adduser@3.134?arch=all",
        "pkg:deb/debian/nftables@1.0.6-2?arch=amd64",
    ]
    box["manifest"]["packages_sha256"] = 64 * "0"
    with pytest.raises(BuildError, match="not those of its record"):
        sbom.write_box("fwlab-sink", box, tmp_path / "one")


@pytest.mark.thorough
def test_an_image_is_a_file_with_its_bill(tmp_path: Path) -> None:
    podman, image = program("podman"), f"localhost/fwlab-test-{os.getpid()}"
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as files:
        entry = tarfile.TarInfo("var/lib/dpkg/status")
        entry.size = len(STATUS)
        files.addfile(entry, io.BytesIO(STATUS.encode()))
    (tmp_path / "files.tar").write_bytes(packed.getvalue())
    run(podman, "import", "-q", "files.tar", image, cwd=tmp_path)
    try:
        _add_image(image, tmp_path / "fwlab-1.0.0-image")
    finally:
        run(podman, "rmi", "-f", image, cwd=tmp_path)
    found = json.loads((tmp_path / "fwlab-1.0.0-image.cdx.json").read_text())
    assert [one["name"] for one in found["components"]] == ["adduser", "nftables"]
    run("zstd", "-q", "-d", "fwlab-1.0.0-image.tar.zst", cwd=tmp_path)
    with tarfile.open(tmp_path / "fwlab-1.0.0-image.tar") as saved:
        assert "manifest.json" in saved.getnames()


def test_the_environments_bill_has_every_locked_package(tmp_path: Path) -> None:
    sbom.write_environment(ROOT, tmp_path / "bill")
    found = json.loads((tmp_path / "bill").read_text())
    assert {normal(one["name"]): f"=={one['version']}" for one in found["components"]} == {
        name: rest.split()[0] for name, rest in RUN.items()
    }
    assert found["metadata"]["component"]["name"] == "fwlab"


def test_an_unclean_tree_is_refused(tmp_path: Path) -> None:
    root = tmp_path / "fwlab"
    run("git", "clone", "-q", ROOT, root, cwd=tmp_path)
    (root / "more").write_text("")
    done = subprocess.run(
        [sys.executable, "-m", "tools", "release", tmp_path / "out"], cwd=root, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert done.stderr.startswith("fwlab: not committed: more\n")


@pytest.mark.thorough
@pytest.mark.timeout(900)
def test_a_release_can_be_installed_from_its_folder_alone(tmp_path: Path) -> None:
    """Its dependencies, which are not in it, are those of this environment; nothing is fetched."""
    root, out, version = tmp_path / "fwlab", tmp_path / "out", "9.8.7"
    run("git", "clone", "-q", ROOT, root, cwd=tmp_path)
    log = root / "CHANGELOG.md"
    log.write_text(log.read_text().replace("## [Unreleased]", f"## [Unreleased]\n\n## [{version}] - 2027-01-31"))
    commit(root)
    run("git", "tag", f"v{version}", cwd=root)
    said = run(sys.executable, "-m", "tools", "release", "--once", out, cwd=root, PYTHONPATH=str(root))
    assert said.startswith(f"{out}: fwlab {version}, ")
    run("sha256sum", "--quiet", "-c", SUMS, cwd=out)
    names = {path.name for path in out.rglob("*")}
    sites = {f"fwlab-{version}-site-{readers}.tar.gz" for readers in ("students", "instructors")}
    others = {f"fwlab-{version}{end}" for end in (".tar.gz", "-results.tar.gz", "-environment.cdx.json")}
    assert sites | others | {f"fwlab-{lab}.tar.gz" for lab in (*LAB_IDS, "labs")} <= names
    assert f"version: {version}\n" in (out / "CITATION.cff").read_text()
    assert (out / "NOTES.md").read_text().startswith("### ")
    run(Path(sys.executable).with_name("check-jsonschema"), "--builtin-schema", "vendor.citation-file-format",
        out / "CITATION.cff", cwd=out)  # fmt: skip
    with tarfile.open(out / "bundles" / "fwlab-lab03-ipset.tar.gz") as bundle:
        inside = bundle.extractfile("fwlab-lab03-ipset/fwlab/__init__.py")
        assert f'__version__ = "{version}"' in io.TextIOWrapper(inside).read()

    run(UV, "venv", "-q", "--offline", "--python", sys.executable, tmp_path / "tool", cwd=tmp_path)
    [wheel] = out.glob("*.whl")
    run(UV, "pip", "install", "-q", "--offline", "--no-deps", "--python", tmp_path / "tool/bin/python", wheel, cwd=out)
    [packages] = (tmp_path / "tool").glob("lib/python*/site-packages")
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if not (path.name.startswith(("fwlab", "__editable__")) or (packages / path.name).exists()):
            (packages / path.name).symlink_to(path)
    fwlab = tmp_path / "tool" / "bin" / "fwlab"
    assert run(fwlab, "--version", cwd=tmp_path) == f"fwlab {version}\n"
    run(fwlab, "init", "mine", "--lab", "lab03", cwd=tmp_path)
    assert [lab["id"] for lab in json.loads(run(fwlab, "list", "--json", cwd=tmp_path / "mine"))] == ["lab03-ipset"]
