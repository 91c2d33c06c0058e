# SPDX-License-Identifier: GPL-2.0-or-later
"""The image behind dut-freebsd: found, verified, unpacked and looked at before anything boots."""

import hashlib
import lzma
import os
from pathlib import Path

import pytest

from fwlab.checkout.project import Project
from fwlab.images import freebsd
from fwlab.images.boxes import BuildError, SourceError
from fwlab.images.build import Builder, virtual_gib
from fwlab.images.freebsd import GPT_UFS, GPT_ZFS, OFFICIAL, FreebsdImage, explained, freebsd_image
from fwlab.images.programs import Subprocesses
from tests import ROOT
from tests.fakes.image_build import build
from tests.fakes.programs import needs, program

NAME = "FreeBSD-15.1-RELEASE-amd64-BASIC-CLOUDINIT-ufs.qcow2.xz"
needs_qemu = needs("qemu-img")


def disk(release: str = "15.1", guid: bytes = GPT_UFS, extra: bytes = b"# PROVIDE: nuageinit\n") -> bytes:
    """A raw disk with a boot sector, one GPT partition and the bytes of two files."""
    content = bytearray(2 << 20)
    content[510:512] = b"\x55\xaa"
    content[446 + 4] = 0xEE
    content[1024:1040] = guid
    text = f'\nUSERLAND_VERSION="{release}-RELEASE"\n'.encode() + extra
    content[1 << 20 : (1 << 20) + len(text)] = text
    return bytes(content)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the image is published."""
    for name in (freebsd.FREEBSD_URL, freebsd.FREEBSD_SHA256, "FWLAB_DUT"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "published").mkdir()
    return tmp_path / "published"


def publish(folder: Path, content: bytes, name: str = NAME, *, listed: bool = True) -> Path:
    path = folder / name
    path.write_bytes(lzma.compress(content, preset=0) if name.endswith(".xz") else content)
    if listed:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        sums = [f"SHA256 (another-{name}) = {'0' * 64}", f"SHA256 ({name}) = {digest}"]
        (folder / freebsd.CHECKSUMS).write_text("\n".join(sums) + "\n")
    return path


def unpack(image: FreebsdImage, tmp_path: Path) -> Path:
    work = tmp_path / "work"
    work.mkdir(exist_ok=True)
    return image.disk(tmp_path / "cache", work, lambda _: None, lambda: False)


def left_in(tmp_path: Path) -> list[Path]:
    return [path for top in ("work", "cache") for path in (tmp_path / top).rglob("*") if path.is_file()]


@needs_qemu
@pytest.mark.parametrize("name", [NAME, NAME.removesuffix(".xz"), "plain.raw"])
@pytest.mark.parametrize("form", ["{}", "file://{}"])
def test_an_image_is_verified_by_the_list_beside_it_and_unpacked(
    folder: Path, tmp_path: Path, name: str, form: str
) -> None:
    path = publish(folder, disk(), name)
    found = unpack(FreebsdImage(form.format(path)), tmp_path)
    assert found.read_bytes() == disk()
    assert left_in(tmp_path) == [found]
    assert virtual_gib(found) == 1


@needs_qemu
def test_a_given_checksum_needs_no_list(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = publish(folder, disk(), listed=False)
    monkeypatch.setenv(freebsd.FREEBSD_URL, str(path))
    monkeypatch.setenv(freebsd.FREEBSD_SHA256, hashlib.sha256(path.read_bytes()).hexdigest().upper())
    image = freebsd_image(Project(tmp_path))
    assert unpack(image, tmp_path).read_bytes() == disk()
    assert image.record() == {"url": str(path), "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}


@needs_qemu
def test_a_download_is_kept_packed(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = publish(folder, disk())
    address = f"http://127.0.0.1/{NAME}"
    asked = []

    class File:
        def __init__(self, path: Path) -> None:
            self.file, self.headers = path.open("rb"), {"Content-Length": str(path.stat().st_size)}

        def __enter__(self):
            return self

        def __exit__(self, *_: object) -> None:
            self.file.close()

        def read(self, size: int = -1) -> bytes:
            return self.file.read(size)

    monkeypatch.setattr(
        "urllib.request.urlopen", lambda url, timeout: asked.append(url) or File(folder / Path(url).name)
    )
    for _ in range(2):
        unpack(FreebsdImage(address), tmp_path).unlink()
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert left_in(tmp_path) == [tmp_path / "cache/downloads" / f"{digest}.freebsd"]
    sums = f"http://127.0.0.1/{freebsd.CHECKSUMS}"
    assert asked == [sums, address, sums]


#: What is published, and what is said of it.
UNFIT = {
    "too old": (disk("13.2"), "FreeBSD 13.2 is too old; 14 or later is needed"),
    "no nuageinit": (disk(extra=b""), "FreeBSD 15.1 without nuageinit"),
    "ZFS": (disk(guid=GPT_ZFS), "its root is ZFS"),
    "Linux": (disk(guid=bytes.fromhex("af3dc60f838472478e793d69d8477de4")), "not a disk of FreeBSD"),
    "no disk": (b"a web page" * 1000, "not a disk of FreeBSD"),
}


@needs_qemu
@pytest.mark.parametrize(("content", "message"), UNFIT.values(), ids=UNFIT)
def test_an_image_that_does_not_fit_is_refused_before_it_boots(
    folder: Path, tmp_path: Path, content: bytes, message: str
) -> None:
    path = publish(folder, content)
    with pytest.raises(SourceError) as refused:
        unpack(FreebsdImage(str(path)), tmp_path)
    assert f"{path}: " in refused.value.message
    assert message in refused.value.message
    assert OFFICIAL in refused.value.hint
    assert refused.value.exit_code == 2
    assert not left_in(tmp_path)
    assert path.exists()


@needs_qemu
def test_a_compressed_disk_is_not_refused_for_what_cannot_be_seen(folder: Path, tmp_path: Path) -> None:
    path = publish(folder, disk(release="x.y"))
    assert unpack(FreebsdImage(str(path)), tmp_path)


def test_an_xz_that_breaks_off_leaves_nothing(folder: Path, tmp_path: Path) -> None:
    path = publish(folder, os.urandom(1 << 20), listed=False)
    path.write_bytes(path.read_bytes()[:-5000])
    image = FreebsdImage(str(path), hashlib.sha256(path.read_bytes()).hexdigest())
    with pytest.raises(SourceError, match=f"^{path}: cannot be unpacked: "):
        unpack(image, tmp_path)
    assert not left_in(tmp_path)


def test_a_wrong_checksum_leaves_nothing(folder: Path, tmp_path: Path) -> None:
    path = publish(folder, disk())
    path.write_bytes(path.read_bytes() + b"x")
    with pytest.raises(SourceError, match="its sha256 is [0-9a-f]{64}, but FWLAB_FREEBSD_SHA256 says ") as refused:
        unpack(FreebsdImage(str(path)), tmp_path)
    assert refused.value.exit_code == 2
    assert not left_in(tmp_path)


def test_a_missing_list_names_the_variable(folder: Path, tmp_path: Path) -> None:
    path = publish(folder, disk(), listed=False)
    with pytest.raises(SourceError, match=f"{folder}/CHECKSUM.SHA256: No such file") as refused:
        unpack(FreebsdImage(str(path)), tmp_path)
    assert freebsd.FREEBSD_SHA256 in refused.value.hint
    (folder / freebsd.CHECKSUMS).write_text(f"SHA256 (x{NAME}) = {'0' * 64}\n")
    with pytest.raises(SourceError, match=f"{folder}/CHECKSUM.SHA256: no SHA-256 of {NAME}"):
        unpack(FreebsdImage(str(path)), tmp_path)


@pytest.mark.parametrize(
    ("url", "digest", "message"),
    [
        ("", "0" * 64, "FWLAB_FREEBSD_SHA256 is set and FWLAB_FREEBSD_URL is not"),
        ("/a.qcow2", "0" * 63, "FWLAB_FREEBSD_SHA256 is not a SHA-256: 000"),
    ],
)
def test_wrong_variables_are_named(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str, digest: str, message: str
) -> None:
    monkeypatch.setenv(freebsd.FREEBSD_URL, url)
    monkeypatch.setenv(freebsd.FREEBSD_SHA256, digest)
    with pytest.raises(SourceError, match=message):
        freebsd_image(Project(tmp_path))


TIMEOUT = BuildError("dut-freebsd: packer: 'packer' failed with 1:\n  Timeout waiting for SSH.")


@pytest.mark.parametrize(
    ("error", "console", "message"),
    [
        (TIMEOUT, "SeaBIOS\nNo bootable device", "image: no FreeBSD started from it"),
        (
            TIMEOUT,
            "x\nFreeBSD 15.1-RELEASE-p1 releng/15.1 GENERIC\n",
            "RELEASE-p1 started, but allows no login",
        ),
        (TIMEOUT, "x\nFreeBSD 13.4-RELEASE GENERIC\n", "image: FreeBSD 13.4 is too old"),
        (BuildError("a script failed"), "FreeBSD 13.4-RELEASE GENERIC", "image: FreeBSD 13.4 is too old"),
        (BuildError("a script failed"), "FreeBSD 14.5-RELEASE GENERIC", "a script failed"),
    ],
)
def test_the_console_explains_why_packer_failed(error: BuildError, console: str, message: str) -> None:
    assert message in explained(error, "image", console).message


def test_the_key_is_that_of_the_images_content(folder: Path, tmp_path: Path) -> None:
    def key(path: Path) -> str:
        return Builder(Project(ROOT), tmp_path, Subprocesses(), print, freebsd=FreebsdImage(str(path))).key(
            "dut-freebsd"
        )

    first = key(publish(folder, disk()))
    (tmp_path / "elsewhere").mkdir()
    assert key(publish(tmp_path / "elsewhere", disk(), f"{NAME[:-3]}-renamed.xz")) == first
    assert key(publish(folder, disk("14.5"))) != first


def test_only_its_own_scripts_travel(tmp_path: Path) -> None:
    builder = Builder(Project(ROOT), tmp_path, Subprocesses(), print, freebsd=FreebsdImage("/x", "0" * 64))
    staged = builder._staged("dut-freebsd", tmp_path)
    assert {path.name for path in staged.iterdir()} == {"run", "idempotence_check", "cleanup", "dut-freebsd"}
    assert "cloud-init" not in (staged / "cleanup").read_text()
    assert not (staged / "dut-freebsd/cleanup").exists()


def test_naming_it_and_failing_is_an_error(tmp_path: Path, folder: Path) -> None:
    program("packer")
    none = build("--no-vagrant", "sink", "dut-freebsd", FWLAB_CACHE=str(tmp_path / "cache"), FWLAB_FREEBSD_URL="none")
    assert (none.returncode, none.stderr) == (
        2,
        "packer/build: FWLAB_FREEBSD_URL=none leaves dut-freebsd out\n  next: unset FWLAB_FREEBSD_URL\n",
    )
    url = str(folder / NAME)
    done = build("--no-vagrant", "dut-freebsd", FWLAB_CACHE=str(tmp_path / "cache"), FWLAB_FREEBSD_URL=url)
    assert done.returncode == 2
    assert f"{folder}/CHECKSUM.SHA256: No such file or directory" in done.stderr
    assert freebsd.FREEBSD_SHA256 in done.stderr
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file() and path.parent.name != "locks"]
