# SPDX-License-Identifier: GPL-2.0-or-later
"""Boxes travel in a folder: `packer/build --export` and `--import`, without a machine."""

import hashlib
import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from fwlab.checkout.project import Project, find_project
from fwlab.images.box_transfer import export_boxes, import_boxes
from fwlab.images.boxes import Boxes, cached, content_key, publish
from fwlab.model.errors import BuildError, SourceError
from tests import ROOT
from tests.unit.images.test_boxes import SETTINGS

PROJECT: Project = find_project(ROOT)
FREEBSD_SHA = "ab" * 32


def made(cache: Path, image: str, content: str, settings: dict[str, str], **extra: object) -> dict[str, object]:
    """Put a box into the cache as the build does; returns its entry of images.json."""
    key = content_key(PROJECT.root, image, settings)
    box = cache / "boxes" / f"{image}-{key[:12]}.box"
    box.parent.mkdir(parents=True, exist_ok=True)
    draft = cache / "draft"
    draft.write_text(content)
    record = publish(draft, box, {"key": key, "manifest": {"kernel": "6.1"}, **extra})
    entry = {"box": f"fwlab-{image}-{key[:12]}", "key": key, "settings": settings, "path": str(box)}
    entry |= {"sha256": record["sha256"]}
    return entry | {"manifest": record["manifest"], **extra}


def state(cache: Path, name: str, content: bytes) -> None:
    folder = cache / "saved"
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.qcow2.zst").write_bytes(content)
    record = {"format": "fwlab-saved/1", "sha256": hashlib.sha256(content).hexdigest()}
    (folder / f"{name}.qcow2.zst.json").write_text(json.dumps(record))
    (folder / f"{name}.key").write_text(f"a key of {name}")


class Travel:
    """A cache with boxes, what was exported from it, and an empty cache to import into."""

    def __init__(self, top: Path) -> None:
        self.here, self.there, self.folder = top / "here", top / "there", top / "folder"
        self.said: list[str] = []
        self.boxes: Boxes = {
            image: made(self.here, image, f"the box of {image}", SETTINGS)
            for image in ("dut-linux", "generator", "sink")
        }
        kernel = self.here / "bases" / "dut-linux-0123456789ab" / "vmlinuz"
        kernel.parent.mkdir(parents=True)
        kernel.write_text("a kernel")
        state(self.here, "dut-0123456789abcdef", b"memory and disk")

    def export(self) -> None:
        export_boxes(self.here, self.boxes, self.folder, self.said.append)

    def take(self) -> Boxes:
        return import_boxes(PROJECT, self.there, self.folder, None, full=False, say=self.said.append)

    def left_there(self) -> list[str]:
        return sorted(str(path.relative_to(self.there)) for path in self.there.rglob("*") if path.is_file())


@pytest.fixture
def travel(tmp_path: Path) -> Travel:
    return Travel(tmp_path)


def test_what_was_exported_is_in_the_other_cache(travel: Travel) -> None:
    travel.export()
    subprocess.run(["sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"], cwd=travel.folder, check=True)
    found = travel.take()
    assert set(found) == {"dut-linux", "generator", "sink"}
    for image, entry in found.items():
        assert entry == {**travel.boxes[image], "path": entry["path"]}
        assert Path(entry["path"]).is_relative_to(travel.there)
        assert cached(Path(entry["path"])) is not None
    saved = travel.there / "saved"
    assert (saved / "dut-0123456789abcdef.qcow2.zst").read_bytes() == b"memory and disk"
    assert (saved / "dut-0123456789abcdef.key").stat().st_mode & 0o777 == 0o600
    assert (travel.there / "bases" / "dut-linux-0123456789ab" / "vmlinuz").read_text() == "a kernel"
    assert "imported dut-linux, generator, sink and 1 saved states" in travel.said


def test_a_damaged_state_is_not_exported(travel: Travel) -> None:
    (travel.here / "saved" / "dut-0123456789abcdef.qcow2.zst").write_bytes(b"something else")
    travel.export()
    assert not (travel.folder / "saved").exists()


def test_freebsd_and_trex_travel_with_what_they_were_made_from(travel: Travel) -> None:
    system = {"base_url": "", "base_checksum": f"sha256:{FREEBSD_SHA}", "system": "freebsd"}
    source = {"url": "/somewhere", "sha256": FREEBSD_SHA}
    travel.boxes["dut-freebsd"] = made(travel.here, "dut-freebsd", "BSD", system, freebsd=source)
    trex = {"version": "v3.08", "sha256": "cd" * 32}
    with_trex = {**SETTINGS, "trex_sha256": "cd" * 32}
    travel.boxes["generator"] = made(travel.here, "generator", "TRex", with_trex, trex=trex)
    travel.export()
    found = travel.take()
    assert (found["dut-freebsd"]["freebsd"], found["generator"]["trex"]) == (source, trex)


def test_a_folder_that_exists_is_not_written_to(travel: Travel) -> None:
    travel.folder.mkdir()
    (travel.folder / "mine").write_text("mine")
    with pytest.raises(SourceError, match="exists and is not empty"):
        travel.export()
    assert [path.name for path in travel.folder.iterdir()] == ["mine"]


def test_a_full_disk_leaves_no_folder(travel: Travel, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("fwlab.images.box_transfer.shutil.copyfile", full)
    with pytest.raises(BuildError, match="No space left"):
        travel.export()
    assert not travel.folder.exists()
    assert not list(travel.folder.parent.glob(".folder*"))


def test_what_is_there_already_is_kept(travel: Travel) -> None:
    travel.export()
    travel.there.mkdir()
    state(travel.there, "dut-0123456789abcdef", b"saved there")
    travel.take()
    saved = travel.there / "saved" / "dut-0123456789abcdef.qcow2.zst"
    assert saved.read_bytes() == b"saved there"
    assert (
        json.loads(saved.with_name(f"{saved.name}.json").read_text())["sha256"]
        == hashlib.sha256(b"saved there").hexdigest()
    )


def change(name: str, content: str) -> Callable[[Path], object]:
    return lambda folder: next(folder.glob(name)).write_text(content)


def renamed(entry: str, to: str) -> Callable[[Path], None]:
    """The file is named so in SHA256SUMS."""

    def change_sums(folder: Path) -> None:
        sums = folder / "SHA256SUMS"
        sums.write_text(sums.read_text().replace(entry, to))

    return change_sums


def linked(folder: Path) -> None:
    box = next(folder.glob("boxes/sink-*.box"))
    kept = folder.parent / "kept"
    box.rename(kept)
    box.symlink_to(kept)


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (change("boxes/sink-*.box", "another"), r"boxes/sink-\w+\.box was changed or is cut short"),
        (change("boxes/sink-*.box.json", "{}"), r"sink-\w+\.box\.json was changed"),
        (change("boxes.json", "{}"), r"boxes\.json was changed"),
        (change("SHA256SUMS", ""), "SHA256SUMS is no list"),
        (change("SHA256SUMS", "\x00" * 9), "SHA256SUMS is no list"),
        (lambda folder: next(folder.glob("boxes/sink-*.box")).unlink(), r"sink-\w+\.box is missing"),
        (linked, r"sink-\w+\.box is missing"),
        (lambda folder: (folder / "SHA256SUMS").unlink(), "No such file"),
        (shutil.rmtree, "No such file"),
        (renamed("saved/dut-0123456789abcdef.key", "saved/../../x.key"), r"lists 'saved/\.\./\.\./x\.key'"),
        (renamed("saved/dut-0123456789abcdef.key", "/etc/x.key"), r"lists '/etc/x\.key'"),
        (renamed("boxes/generator", "boxes/monitor"), "lists 'boxes/monitor"),
    ],
)
def test_a_damaged_folder_is_refused(travel: Travel, damage: Callable[[Path], object], says: str) -> None:
    travel.export()
    damage(travel.folder)
    with pytest.raises(SourceError, match=says):
        travel.take()
    assert not [name for name in travel.left_there() if name.startswith("boxes/sink") and name.endswith(".box")]
    assert not list(travel.there.rglob(".import-*"))


def test_entries_must_agree_with_the_sums(travel: Travel) -> None:
    travel.export()
    listed = travel.folder / "boxes.json"
    entries = json.loads(listed.read_text())
    for broken in ([], {"sink": []}, {**entries, "sink": {**entries["sink"], "sha256": "0" * 64}}):
        listed.write_text(json.dumps(broken))
        sums = travel.folder / "SHA256SUMS"
        lines = [line for line in sums.read_text().splitlines() if not line.endswith("boxes.json")]
        digest = hashlib.sha256(listed.read_bytes()).hexdigest()
        sums.write_text("\n".join([*lines, f"{digest}  boxes.json"]) + "\n")
        with pytest.raises(SourceError, match=r"boxes\.json"):
            travel.take()
    assert travel.left_there() == []


def test_boxes_of_another_version_are_not_taken(travel: Travel) -> None:
    travel.boxes["sink"] = made(travel.here, "sink", "another", {**SETTINGS, "base_checksum": "sha256:00"})
    travel.export()
    with pytest.raises(SourceError, match="has no sink for this version") as refused:
        travel.take()
    assert "make boxes" in refused.value.hint
    assert travel.left_there() == []
