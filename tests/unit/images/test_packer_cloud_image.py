# SPDX-License-Identifier: GPL-2.0-or-later
"""A cloud image as the boxes' base: downloaded once, verified before use, and named in every error."""

from __future__ import annotations

import hashlib
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from fwlab.images.boxes import BuildError, content_key
from fwlab.images.sources import CloudImage, base_settings, cloud_image
from tests.fakes.image_build import SETTINGS


@pytest.fixture
def base_variables(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Sets the two variables and returns the image that they name."""
    for name in ("http_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)

    def ask(url: str, checksum: str):
        monkeypatch.setenv("FWLAB_BASE_URL", url)
        monkeypatch.setenv("FWLAB_BASE_CHECKSUM", checksum)
        return cloud_image()

    return ask


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """The beginning of a raw disk with a boot sector."""
    path = tmp_path / "published" / "debian 12.raw"
    path.parent.mkdir()
    path.write_bytes(bytes(510) + b"\x55\xaa" + bytes(1000))
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
            self.send_header("Content-Length", str(disk.stat().st_size))
            self.end_headers()
            self.wfile.write(disk.read_bytes()[:700])

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def sum_of(path: Path, algorithm: str = "sha512") -> str:
    return hashlib.new(algorithm, path.read_bytes()).hexdigest()


def get(image: CloudImage, cache: Path) -> Path:
    return image.fetched(cache, lambda _: None, lambda: False)


def files_in(cache: Path) -> list[Path]:
    return [path for path in cache.rglob("*") if path.is_file() and path.parent.name != "locks"]


@pytest.mark.parametrize("algorithm", ["sha256", "sha512"])
@pytest.mark.parametrize("prefix", [False, True])
def test_local_cloud_image_is_used_in_place(
    base_variables, disk: Path, tmp_path: Path, algorithm: str, prefix: bool
) -> None:
    sum_ = (f"{algorithm}:" if prefix else "") + sum_of(disk, algorithm)
    for url in (str(disk), disk.as_uri(), f"file://{disk}"):
        assert get(base_variables(url, sum_.upper() if not prefix else sum_), tmp_path / "cache") == disk
    assert not files_in(tmp_path)[1:], "a copy was made"


def test_cloud_image_is_downloaded_once(base_variables, disk: Path, address: str, tmp_path: Path) -> None:
    cache, sum_ = tmp_path / "cache", sum_of(disk)
    kept = get(base_variables(f"{address}/debian%2012.raw", sum_), cache)
    assert kept.read_bytes() == disk.read_bytes()
    assert files_in(cache) == [kept]
    disk.unlink()
    assert get(base_variables(f"{address}/debian%2012.raw", sum_), cache) == kept
    kept.write_bytes(b"damaged")
    with pytest.raises(BuildError, match="File not found"):
        get(base_variables(f"{address}/debian%2012.raw", sum_), cache)


@pytest.mark.parametrize("where", ["path", "address"])
def test_wrong_checksum_of_a_cloud_image_names_both_and_leaves_nothing(
    base_variables, disk: Path, address: str, tmp_path: Path, where: str
) -> None:
    url, wrong = str(disk) if where == "path" else f"{address}/debian%2012.raw", "0" * 128
    with pytest.raises(BuildError) as caught:
        get(base_variables(url, wrong), tmp_path / "cache")
    for word in (url, sum_of(disk), wrong, "FWLAB_BASE_CHECKSUM"):
        assert word in str(caught.value)
    assert caught.value.hint
    assert not files_in(tmp_path / "cache")
    assert disk.exists()


def test_truncated_cloud_image_is_reported(base_variables, disk, address: str, tmp_path: Path) -> None:
    with pytest.raises(BuildError, match=r"ended after 700 of 1512 bytes") as caught:
        get(base_variables(f"{address}/short/image", sum_of(disk)), tmp_path / "cache")
    assert "FWLAB_BASE_URL" in caught.value.hint
    assert not files_in(tmp_path / "cache")


def test_three_boxes_download_a_wrong_cloud_image_once(base_variables, address: str, tmp_path: Path) -> None:
    image, said = base_variables(f"{address}/debian%2012.raw", "1" * 128), []
    for _ in range(3):
        with pytest.raises(BuildError, match="its sha512 is"):
            image.fetched(tmp_path / "cache", said.append, lambda: False)
    assert len(said) == 1


def test_download_of_a_cloud_image_can_be_stopped(base_variables, disk, address: str, tmp_path: Path) -> None:
    image = base_variables(f"{address}/debian%2012.raw", sum_of(disk))
    with pytest.raises(BuildError, match="stopped"):
        image.fetched(tmp_path / "cache", lambda _: None, lambda: True)
    assert not files_in(tmp_path / "cache")


@pytest.mark.parametrize(
    ("url", "checksum", "what"),
    [
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
def test_missing_cloud_image_is_named(base_variables, tmp_path: Path, url: str, checksum: str, what: str) -> None:
    with pytest.raises(BuildError, match=what) as caught:
        get(base_variables(url, checksum), tmp_path)
    assert caught.value.hint
    assert not files_in(tmp_path)


def test_a_file_that_is_not_a_disk_is_refused(base_variables, disk: Path, address: str, tmp_path: Path) -> None:
    disk.write_bytes(b"a tar.xz, say" * 100)
    for url in (str(disk), f"{address}/debian%2012.raw"):
        with pytest.raises(BuildError, match=f"^{url}: neither a qcow2 image nor a raw disk") as caught:
            get(base_variables(url, sum_of(disk)), tmp_path / "cache")
        assert "qcow2" in caught.value.hint
    assert not files_in(tmp_path / "cache")


def test_cache_keys_depend_on_the_cloud_images_content_not_its_path(base_variables, checkout: Path) -> None:
    first, moved = base_variables("/a.qcow2", "a" * 128), base_variables("http://127.0.0.1/b.qcow2", "A" * 128)
    other = base_variables("/a.qcow2", "b" * 128)
    keys = [content_key(checkout, "sink", base_settings(image)) for image in (first, moved, other)]
    assert keys[0] == keys[1] != keys[2]
    assert base_settings(None) == SETTINGS


def test_files_for_cloud_images_do_not_affect_other_boxes(base_variables, checkout: Path) -> None:
    cloud = base_settings(base_variables("/a.qcow2", "a" * 128))
    before = [content_key(checkout, "sink", settings) for settings in (SETTINGS, cloud)]
    script = checkout / "packer/cloud/05-cloud-image.sh"
    script.write_text(script.read_text() + "\n# changed\n")
    after = [content_key(checkout, "sink", settings) for settings in (SETTINGS, cloud)]
    assert before[0] == after[0]
    assert before[1] != after[1]
