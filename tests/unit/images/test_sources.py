# SPDX-License-Identifier: GPL-2.0-or-later
"""What boxes are made from: fetched once, verified before use, named in every error, and nothing left of a failure."""

import hashlib
import http.server
import io
import json
import tarfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fwlab.checkout.project import Project
from fwlab.generator import selection as engines
from fwlab.images.build import Builder
from fwlab.images.programs import Subprocesses
from fwlab.images.sources import CloudImage, Tarball, cloud_image, trex_tarball
from fwlab.model.errors import BadInput, BuildError, CannotMeasure
from tests import ROOT

DISK = bytes(510) + b"\x55\xaa" + bytes(1000)
Ask = Callable[[str, str], CloudImage]


def sum_of(content: bytes, algorithm: str = "sha512") -> str:
    return hashlib.new(algorithm, content).hexdigest()


def files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and path.parent.name != "locks"]


@pytest.fixture(autouse=True)
def nothing_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FWLAB_TREX_URL", "FWLAB_TREX_SHA256", "http_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)


# ---- a cloud image ------------------------------------------------------------------------------------------------


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch) -> Ask:
    """The image that the two variables name."""

    def named(url: str, checksum: str) -> CloudImage:
        monkeypatch.setenv("FWLAB_BASE_URL", url)
        monkeypatch.setenv("FWLAB_BASE_CHECKSUM", checksum)
        return cloud_image()

    return named


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    path = tmp_path / "published" / "debian 12.raw"
    path.parent.mkdir()
    path.write_bytes(DISK)
    return path


@pytest.fixture
def address(disk: Path) -> Iterator[str]:
    """URL of an HTTP server for `disk`. With /short before the name, the transfer breaks off in the middle."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args: object) -> None:
            super().__init__(*args, directory=str(disk.parent))

        def do_GET(self) -> None:
            if not self.path.startswith("/short/"):
                super().do_GET()
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(DISK)))
            self.end_headers()
            self.wfile.write(DISK[:700])

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def get(image: CloudImage, cache: Path, *, stopped: bool = False) -> Path:
    return image.fetched(cache, lambda _: None, lambda: stopped)


@pytest.mark.parametrize("checksum", [sum_of(DISK).upper(), f"sha256:{sum_of(DISK, 'sha256')}", sum_of(DISK, "sha256")])
def test_a_file_of_this_host_is_used_in_place(ask: Ask, disk: Path, tmp_path: Path, checksum: str) -> None:
    for url in (str(disk), disk.as_uri(), f"file://{disk}"):
        assert get(ask(url, checksum), tmp_path / "cache") == disk
    assert files_in(tmp_path) == [disk], "a copy was made"


def test_a_download_is_kept_and_verified_each_time(ask: Ask, disk: Path, address: str, tmp_path: Path) -> None:
    image, cache = ask(f"{address}/debian%2012.raw", sum_of(DISK)), tmp_path / "cache"
    kept = get(image, cache)
    assert (kept.read_bytes(), files_in(cache)) == (DISK, [kept])
    disk.unlink()
    assert get(image, cache) == kept
    kept.write_bytes(b"damaged")
    with pytest.raises(BuildError, match="File not found"):
        get(image, cache)


@pytest.mark.parametrize(
    ("url", "checksum", "says"),
    [
        ("DISK", "0" * 128, f"DISK: its sha512 is {sum_of(DISK)}, but FWLAB_BASE_CHECKSUM says {'0' * 128}"),
        ("ADDRESS/debian%2012.raw", "0" * 128, f"its sha512 is {sum_of(DISK)}, but FWLAB_BASE_CHECKSUM says"),
        ("ADDRESS/short/image", sum_of(DISK), "ended after 700 of 1512 bytes"),
        ("/there/is/none.qcow2", "a" * 128, "/there/is/none.qcow2: No such file"),
        ("http://127.0.0.1:1/a.qcow2", "a" * 128, "127.0.0.1:1"),
        ("", "a" * 128, "go together"),
        ("/a.qcow2", "", "go together"),
        ("/a.qcow2", "none", "no SHA-512 or SHA-256: none"),
        ("/a.qcow2", "a" * 32, "no SHA-512 or SHA-256: aaa"),
        ("/a.qcow2", "sha256:" + "a" * 128, "no SHA-512 or SHA-256: sha256:aaa"),
        ("/a.qcow2", "file:http://127.0.0.1/SHA512SUMS", "no SHA-512 or SHA-256: file:http"),
    ],
)
def test_what_is_wrong_with_a_cloud_image_is_named(
    ask: Ask, disk: Path, address: str, tmp_path: Path, url: str, checksum: str, says: str
) -> None:
    with pytest.raises(BuildError) as caught:
        get(ask(url.replace("DISK", str(disk)).replace("ADDRESS", address), checksum), tmp_path / "cache")
    assert says.replace("DISK", str(disk)) in caught.value.message
    assert caught.value.hint
    assert files_in(tmp_path) == [disk]


def test_a_file_that_is_not_a_disk_is_refused(ask: Ask, disk: Path, address: str, tmp_path: Path) -> None:
    disk.write_bytes(content := b"a tar.xz, say" * 100)
    for url in (str(disk), f"{address}/debian%2012.raw"):
        with pytest.raises(BuildError, match=f"^{url}: neither a qcow2 image nor a raw disk"):
            get(ask(url, sum_of(content)), tmp_path / "cache")
    assert not files_in(tmp_path / "cache")


def test_three_boxes_download_a_wrong_image_once(ask: Ask, address: str, tmp_path: Path) -> None:
    image, said = ask(f"{address}/debian%2012.raw", "1" * 128), []
    for _ in range(3):
        with pytest.raises(BuildError, match="its sha512 is"):
            image.fetched(tmp_path / "cache", said.append, lambda: False)
    assert len(said) == 1


def test_a_download_can_be_stopped(ask: Ask, address: str, tmp_path: Path) -> None:
    with pytest.raises(BuildError, match="stopped"):
        get(ask(f"{address}/debian%2012.raw", sum_of(DISK)), tmp_path / "cache", stopped=True)
    assert not files_in(tmp_path / "cache")


# ---- TRex ---------------------------------------------------------------------------------------------------------


class Trex:
    """A checkout that may ask for TRex, and its cache."""

    def __init__(self, top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.project, self.cache, self._monkeypatch = Project(top / "checkout"), top / "cache", monkeypatch

    def chosen(self, **variables: object) -> Tarball | None:
        for name in ("url", "sha256"):
            self._monkeypatch.setenv(f"FWLAB_TREX_{name.upper()}", str(variables.get(name, "")))
        return trex_tarball(self.project, self.cache, lambda _: None)


@pytest.fixture
def trex(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Trex:
    return Trex(tmp_path, monkeypatch)


def release(path: Path, *names: str) -> str:
    """A tarball like a release, and its SHA-256."""
    with tarfile.open(path, "w:gz") as archive:
        for name in names or ("t-rex-64", "_t-rex-64-o"):
            member = tarfile.TarInfo(f"v9.99/{name}")
            member.size, member.mode = 3, 0o755
            archive.addfile(member, io.BytesIO(b"abc"))
    return sum_of(path.read_bytes(), "sha256")


@pytest.mark.parametrize("form", ["{}", "file://{}"])
def test_a_verified_tarball_is_kept(trex: Trex, tmp_path: Path, form: str) -> None:
    assert trex.chosen() is None
    path = tmp_path / "trex.tar.gz"
    sum_ = release(path)
    found = trex.chosen(url=form.format(path), sha256=sum_.upper())
    assert (found.version, found.sha256, [found.path]) == ("v9.99", sum_, files_in(trex.cache))
    path.unlink()
    assert trex.chosen(url="gone", sha256=sum_) == found, "it is fetched once"


@pytest.mark.parametrize(
    ("url", "sha256", "says"),
    [
        ("/there/is/none.tar.gz", "a" * 64, "/there/is/none.tar.gz"),
        ("RELEASE", "0" * 64, "RELEASE: its sha256 is .* but FWLAB_TREX_SHA256 says 000"),
        ("PAGE", "right", "not a release of TRex"),
        ("OTHER", "right", "not a release of TRex"),
        ("", "a" * 64, "go together"),
        ("/a.tar.gz", "", "go together"),
        ("/a.tar.gz", "abc", "not a SHA-256: abc"),
        ("http://127.0.0.1:1/a.tar.gz", "a" * 64, "127.0.0.1:1"),
    ],
)
def test_what_is_wrong_with_a_tarball_is_named(trex: Trex, tmp_path: Path, url: str, sha256: str, says: str) -> None:
    release(tmp_path / "RELEASE")
    release(tmp_path / "OTHER", "README")
    (tmp_path / "PAGE").write_bytes(b"<html>not found</html>")
    if url.isupper():
        sha256 = sum_of((tmp_path / url).read_bytes(), "sha256") if sha256 == "right" else sha256
        url = str(tmp_path / url)
    with pytest.raises(BuildError, match=says) as caught:
        trex.chosen(url=url, sha256=sha256)
    assert caught.value.hint
    assert not files_in(trex.cache)


def listed(trex: Trex, images: dict[str, object]) -> None:
    trex.project.state.mkdir(parents=True)
    (trex.project.state / "images.json").write_text(json.dumps(images))


def test_a_checkout_keeps_its_trex_until_none_is_asked_for(trex: Trex, tmp_path: Path) -> None:
    path = tmp_path / "trex.tar.gz"
    given = trex.chosen(url=path, sha256=(sum_ := release(path)))
    listed(trex, {"generator": {"trex": given.record()}})
    assert trex.chosen() == given
    given.path.write_bytes(b"damaged")
    lost = trex.chosen()
    assert (lost.sha256, lost.path) == (sum_, None)
    with pytest.raises(BuildError, match="lost"):
        Builder(Project(ROOT), ROOT, Subprocesses(), print, lost).make_box("generator", "k", ROOT)
    assert trex.chosen(url="none") is None


WITH = {"generator": {"box": "b", "trex": {"version": "v9.99", "sha256": "d" * 64}}}
WITHOUT = {"generator": {"box": "b"}}


@pytest.mark.parametrize(
    ("images", "wanted", "name", "why"),
    [
        (WITH, "auto", "trex", "TRex v9.99"),
        (WITH, "trex", "trex", "asked for"),
        (WITH, "replay", "replay", "asked for"),
        (WITHOUT, "auto", "replay", "no TRex"),
        ({}, "auto", "replay", "no TRex"),
    ],
)
def test_the_engine_is_chosen_by_what_the_generator_has(
    trex: Trex, images: dict[str, object], wanted: str, name: str, why: str
) -> None:
    listed(trex, images)
    choice = engines.choose(trex.project, wanted)
    assert choice.name == name
    assert why in choice.why


def test_an_engine_that_is_not_there_is_named(trex: Trex) -> None:
    assert engines.choose(trex.project).name == "replay", "before anything is built"
    with pytest.raises(BadInput, match="unknown engine iperf"):
        engines.choose(trex.project, "iperf")
    listed(trex, WITHOUT)
    with pytest.raises(CannotMeasure, match="no TRex") as caught:
        engines.choose(trex.project, "trex")
    assert "make boxes" in caught.value.hint
