# SPDX-License-Identifier: GPL-2.0-or-later
"""TRex's tarball for the image, and the choice of the engine. Nothing is built."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from fwlab.checkout.project import Project
from fwlab.generator import selection as engines
from fwlab.images.boxes import IMAGES, BuildError
from fwlab.images.build import Builder
from fwlab.images.programs import Subprocesses
from fwlab.images.sources import Tarball, trex_tarball
from fwlab.model.errors import BadInput, CannotMeasure
from tests import ROOT


@pytest.fixture(autouse=True)
def nothing_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FWLAB_TREX_URL", "FWLAB_TREX_SHA256"):
        monkeypatch.delenv(name, raising=False)


def chosen(tmp_path: Path, cache: Path) -> Tarball | None:
    """Choose an engine in a checkout that has built nothing."""
    return trex_tarball(Project(tmp_path / "checkout"), cache, lambda _: None)


def release(path: Path, *names: str, folder: str = "v9.99") -> str:
    """A tarball like a release, and its SHA-256."""
    with tarfile.open(path, "w:gz") as archive:
        for name in names or ("t-rex-64", "_t-rex-64-o"):
            member = tarfile.TarInfo(f"{folder}/{name}")
            member.size, member.mode = 3, 0o755
            archive.addfile(member, io.BytesIO(b"abc"))
    return hashlib.sha256(path.read_bytes()).hexdigest()


def ask(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cache: Path, url: str, sha256: str) -> Tarball | None:
    monkeypatch.setenv("FWLAB_TREX_URL", url)
    monkeypatch.setenv("FWLAB_TREX_SHA256", sha256)
    return chosen(tmp_path, cache)


def left_in(cache: Path) -> list[Path]:
    return [path for path in cache.rglob("*") if path.is_file()]


def test_by_default_there_is_no_trex(tmp_path: Path) -> None:
    assert chosen(tmp_path, tmp_path) is None
    assert not left_in(tmp_path)


@pytest.mark.parametrize("form", ["{}", "file://{}"])
def test_a_verified_tarball_is_kept(monkeypatch, tmp_path: Path, form: str) -> None:
    sum_ = release(tmp_path / "trex.tar.gz")
    found = ask(monkeypatch, tmp_path, tmp_path / "cache", form.format(tmp_path / "trex.tar.gz"), sum_.upper())
    assert (found.version, found.sha256) == ("v9.99", sum_)
    assert left_in(tmp_path / "cache") == [found.path]
    (tmp_path / "trex.tar.gz").unlink()
    assert ask(monkeypatch, tmp_path, tmp_path / "cache", "gone", sum_) == found, "it is fetched once"


def test_a_wrong_checksum_names_both_and_leaves_nothing(monkeypatch, tmp_path: Path) -> None:
    sum_, wrong = release(tmp_path / "trex.tar.gz"), "0" * 64
    with pytest.raises(BuildError) as caught:
        ask(monkeypatch, tmp_path, tmp_path / "cache", str(tmp_path / "trex.tar.gz"), wrong)
    assert sum_ in str(caught.value)
    assert wrong in str(caught.value)
    assert caught.value.hint
    assert not left_in(tmp_path / "cache")


@pytest.mark.parametrize(
    ("url", "sha256", "what"),
    [
        ("/there/is/none.tar.gz", "a" * 64, "/there/is/none.tar.gz"),
        ("", "a" * 64, "go together"),
        ("/a.tar.gz", "", "go together"),
        ("/a.tar.gz", "abc", "not a SHA-256: abc"),
        ("http://127.0.0.1:1/a.tar.gz", "a" * 64, "127.0.0.1:1"),
    ],
)
def test_an_unavailable_tarball_is_named(monkeypatch, tmp_path: Path, url: str, sha256: str, what: str) -> None:
    with pytest.raises(BuildError, match=what) as caught:
        ask(monkeypatch, tmp_path, tmp_path, url, sha256)
    assert caught.value.hint
    assert not left_in(tmp_path)


@pytest.mark.parametrize("content", ["no tarball", "another program"])
def test_another_tarball_is_refused(monkeypatch, tmp_path: Path, content: str) -> None:
    path = tmp_path / "trex.tar.gz"
    if content == "no tarball":
        path.write_bytes(b"<html>not found</html>")
        sum_ = hashlib.sha256(path.read_bytes()).hexdigest()
    else:
        sum_ = release(path, "README")
    with pytest.raises(BuildError, match="not a release of TRex"):
        ask(monkeypatch, tmp_path, tmp_path / "cache", str(path), sum_)
    assert not left_in(tmp_path / "cache")


def test_a_checkout_keeps_its_trex_until_told_otherwise(monkeypatch, tmp_path: Path) -> None:
    images = tmp_path / "checkout" / ".fwlab" / "images.json"
    images.parent.mkdir(parents=True)
    sum_ = release(tmp_path / "trex.tar.gz")
    given = ask(monkeypatch, tmp_path, tmp_path / "cache", str(tmp_path / "trex.tar.gz"), sum_)
    images.write_text(json.dumps({"generator": {"trex": given.record()}}))
    for name in ("FWLAB_TREX_URL", "FWLAB_TREX_SHA256"):
        monkeypatch.delenv(name)
    assert chosen(tmp_path, tmp_path / "cache") == given
    given.path.write_bytes(b"damaged")
    again = chosen(tmp_path, tmp_path / "cache")
    assert (again.sha256, again.path) == (sum_, None), "a damaged tarball goes into no image"
    monkeypatch.setenv("FWLAB_TREX_URL", "none")
    assert chosen(tmp_path, tmp_path / "cache") is None


def test_only_the_generators_image_changes_with_it() -> None:
    builder = Builder(Project(ROOT), ROOT, Subprocesses(), lambda _: None)
    with_trex = replace(builder, tarball=Tarball("c" * 64, "v9.99", None))
    assert {image for image in IMAGES if builder.key(image) != with_trex.key(image)} == {"generator"}
    with pytest.raises(BuildError, match="lost"):
        with_trex.make_box("generator", "k", ROOT)


def project(tmp_path: Path, images: dict) -> Project:
    (tmp_path / ".fwlab").mkdir()
    (tmp_path / ".fwlab" / "images.json").write_text(json.dumps(images))
    return Project(tmp_path)


WITH = {"generator": {"box": "b", "trex": {"version": "v9.99", "sha256": "d" * 64}}}
WITHOUT = {"generator": {"box": "b"}}


@pytest.mark.parametrize(
    ("images", "wanted", "name", "why"),
    [
        (WITH, "auto", "trex", "TRex v9.99"),
        (WITH, "trex", "trex", "asked for"),
        (WITH, "replay", "replay", "asked for"),
        (WITHOUT, "auto", "replay", "no TRex"),
        (WITHOUT, "replay", "replay", "asked for"),
        ({}, "auto", "replay", "no TRex"),
    ],
)
def test_the_engine_is_chosen_once(tmp_path: Path, images: dict, wanted: str, name: str, why: str) -> None:
    choice = engines.choose(project(tmp_path, images), wanted)
    assert choice.name == name
    assert why in choice.why


def test_a_missing_engine_is_reported_with_the_next_command(tmp_path: Path) -> None:
    with pytest.raises(CannotMeasure, match="no TRex") as caught:
        engines.choose(project(tmp_path, WITHOUT), "trex")
    assert "make boxes" in caught.value.hint
    with pytest.raises(BadInput, match="unknown engine iperf"):
        engines.choose(Project(tmp_path), "iperf")


def test_an_engine_can_be_chosen_before_anything_is_built(tmp_path: Path) -> None:
    assert engines.choose(Project(tmp_path)).name == "replay"
