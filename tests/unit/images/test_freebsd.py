# SPDX-License-Identifier: GPL-2.0-or-later
"""The image behind dut-freebsd: whether it is built; found, verified, unpacked and looked at before anything boots."""

import hashlib
import json
import lzma
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fwlab.checkout.project import Project
from fwlab.dut.freebsd import image as freebsd
from fwlab.dut.freebsd.image import GPT_UFS, GPT_ZFS, OFFICIAL, FreebsdImage, chosen_image
from fwlab.images import __main__ as command
from fwlab.images.boxes import LINUX_IMAGES, add_boxes, built_boxes
from fwlab.images.build import Builder, virtual_gib
from fwlab.images.makers_images import chosen_images, default_images, known, left_out
from fwlab.images.programs import Subprocesses
from fwlab.model.errors import BuildError, SourceError
from tests import ROOT
from tests.fakes.programs import needs

NAME = "FreeBSD-15.1-RELEASE-amd64-BASIC-CLOUDINIT-ufs.qcow2.xz"
needs_qemu = needs("qemu-img")


@pytest.fixture(autouse=True)
def nothing_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (freebsd.URL_NAME, freebsd.SUM_NAME, "FWLAB_DUT"):
        monkeypatch.delenv(name, raising=False)


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
def folder(tmp_path: Path) -> Path:
    """Where the image is published."""
    (tmp_path / "published").mkdir()
    return tmp_path / "published"


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def publish(folder: Path, content: bytes, name: str = NAME, *, listed: bool = True) -> Path:
    path = folder / name
    path.write_bytes(lzma.compress(content, preset=0) if name.endswith(".xz") else content)
    if listed:
        sums = [f"SHA256 (another-{name}) = {'0' * 64}", f"SHA256 ({name}) = {digest(path)}"]
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
    monkeypatch.setenv(freebsd.URL_NAME, str(path))
    monkeypatch.setenv(freebsd.SUM_NAME, digest(path).upper())
    image = chosen_image(None)
    assert unpack(image, tmp_path).read_bytes() == disk()
    assert image.record() == {"url": str(path), "sha256": digest(path)}


@needs_qemu
def test_a_download_is_kept_packed(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = publish(folder, disk())
    address, asked = f"http://127.0.0.1/{NAME}", []

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
    assert left_in(tmp_path) == [tmp_path / "cache/downloads" / f"{digest(path)}.freebsd"]
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
    with pytest.raises(SourceError, match=f"^{path}: .*{message}") as refused:
        unpack(FreebsdImage(str(path)), tmp_path)
    assert OFFICIAL in refused.value.hint
    assert not left_in(tmp_path)
    assert path.exists()


@needs_qemu
def test_a_compressed_disk_is_not_refused_for_what_cannot_be_seen(folder: Path, tmp_path: Path) -> None:
    assert unpack(FreebsdImage(str(publish(folder, disk(release="x.y")))), tmp_path)


def test_a_damaged_image_leaves_nothing(folder: Path, tmp_path: Path) -> None:
    path = publish(folder, os.urandom(1 << 20))
    path.write_bytes(path.read_bytes()[:-5000])
    with pytest.raises(SourceError, match="its sha256 is [0-9a-f]{64}, but FWLAB_FREEBSD_SHA256 says "):
        unpack(FreebsdImage(str(path)), tmp_path)
    with pytest.raises(SourceError, match=f"^{path}: cannot be unpacked: "):
        unpack(FreebsdImage(str(path), digest(path)), tmp_path)
    assert not left_in(tmp_path)


def test_a_missing_list_names_the_variable(folder: Path, tmp_path: Path) -> None:
    path = publish(folder, disk(), listed=False)
    with pytest.raises(SourceError, match=f"{folder}/CHECKSUM.SHA256: No such file") as refused:
        unpack(FreebsdImage(str(path)), tmp_path)
    assert freebsd.SUM_NAME in refused.value.hint
    (folder / freebsd.CHECKSUMS).write_text(f"SHA256 (x{NAME}) = {'0' * 64}\n")
    with pytest.raises(SourceError, match=f"{folder}/CHECKSUM.SHA256: no SHA-256 of {NAME}"):
        unpack(FreebsdImage(str(path)), tmp_path)


@pytest.mark.parametrize(
    ("url", "sum_", "message"),
    [
        ("", "0" * 64, "FWLAB_FREEBSD_SHA256 is set and FWLAB_FREEBSD_URL is not"),
        ("/a.qcow2", "0" * 63, "FWLAB_FREEBSD_SHA256 is not a SHA-256: 000"),
    ],
)
def test_wrong_variables_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str, sum_: str, message: str
) -> None:
    monkeypatch.setenv(freebsd.URL_NAME, url)
    monkeypatch.setenv(freebsd.SUM_NAME, sum_)
    with pytest.raises(SourceError, match=message):
        chosen_image(None)


TIMEOUT = BuildError("dut-freebsd: packer: 'packer' failed with 1:\n  Timeout waiting for SSH.")


@pytest.mark.parametrize(
    ("error", "console", "message"),
    [
        (TIMEOUT, "SeaBIOS\nNo bootable device", "image: no FreeBSD started from it"),
        (TIMEOUT, "x\nFreeBSD 15.1-RELEASE-p1 releng/15.1 GENERIC\n", "RELEASE-p1 started, but allows no login"),
        (TIMEOUT, "x\nFreeBSD 13.4-RELEASE GENERIC\n", "image: FreeBSD 13.4 is too old"),
        (BuildError("a script failed"), "FreeBSD 13.4-RELEASE GENERIC", "image: FreeBSD 13.4 is too old"),
        (BuildError("a script failed"), "FreeBSD 14.5-RELEASE GENERIC", "a script failed"),
    ],
)
def test_the_console_explains_why_packer_failed(error: BuildError, console: str, message: str) -> None:
    assert message in FreebsdImage("image").explained(error, console).message


def test_the_key_is_that_of_the_images_content(folder: Path, tmp_path: Path) -> None:
    def key(path: Path) -> str:
        image = FreebsdImage(str(path))
        return Builder(Project(ROOT), tmp_path, Subprocesses(), print, makers={"dut-freebsd": image}).key("dut-freebsd")

    first = key(publish(folder, disk()))
    (tmp_path / "elsewhere").mkdir()
    assert key(publish(tmp_path / "elsewhere", disk(), f"{NAME[:-3]}-renamed.xz")) == first
    assert key(publish(folder, disk("14.5"))) != first


# ---- whether it is built ------------------------------------------------------------------------------------------


@pytest.fixture
def labs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A checkout with a lab on Linux, one on either system, and one on FreeBSD."""
    for name in ("FWLAB_CACHE", "VAGRANT_HOME"):  # old boxes are removed there
        monkeypatch.setenv(name, str(tmp_path / name))
    for lab, systems in (("lab03-ipset", None), ("lab08-pf", ["freebsd", "linux"]), ("lab13-x", ["freebsd"])):
        (tmp_path / "labs" / lab).mkdir(parents=True)
        needs = {"systems": systems} if systems else {}
        (tmp_path / "labs" / lab / "lab.yml").write_text(json.dumps({"needs": needs}))
    return Project(tmp_path)


@pytest.mark.parametrize(
    ("lab", "variables", "built"),
    [
        (None, {}, False),
        ("lab03-ipset", {}, False),
        ("lab99-none", {}, False),
        ("lab08-pf", {}, True),
        ("lab08-pf", {"FWLAB_DUT": "linux"}, False),
        (None, {freebsd.URL_NAME: "/image.qcow2"}, True),
        ("lab08-pf", {freebsd.URL_NAME: "none"}, False),
    ],
)
def test_who_has_linux_labs_only_downloads_no_freebsd(
    labs: Project, monkeypatch: pytest.MonkeyPatch, lab: str | None, variables: dict[str, str], built: bool
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert default_images(labs, lab) == [*LINUX_IMAGES, *(["dut-freebsd"] if built else [])]


def test_an_image_stays_chosen_until_none_is_asked_for(labs: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    assert chosen_images(labs)["dut-freebsd"].url == OFFICIAL
    chosen = {"url": "/a.qcow2.xz", "sha256": "a" * 64}
    add_boxes(labs, {"dut-freebsd": {"box": "b", "freebsd": chosen}, "sink": {"box": "s"}})
    assert chosen_images(labs)["dut-freebsd"].record() == chosen == known(labs, "dut-freebsd")
    assert default_images(labs, None)[-1] == "dut-freebsd"
    monkeypatch.setenv(freebsd.URL_NAME, "none")
    assert chosen_images(labs) == {}
    add_boxes(labs, {}, without=["dut-freebsd"])
    assert built_boxes(labs) == {"sink": {"box": "s"}}


def test_what_works_without_it_is_said(labs: Project) -> None:
    assert left_out(labs, "dut-freebsd", "no network") == (
        "dut-freebsd: left out: no network\n"
        "  without it: every lab but lab08-pf (on linux: FWLAB_DUT=linux), lab13-x\n"
        "  next: packer/build dut-freebsd"
    )
    for lab in ("lab08-pf", "lab13-x"):
        shutil.rmtree(labs.labs / lab)
    assert left_out(labs, "dut-freebsd", "no network") is None


@pytest.mark.parametrize("named", [[], ["sink", "dut-freebsd"]], ids=["by default", "by name"])
def test_an_image_that_cannot_be_had_fails_only_those_who_named_it(
    labs: Project,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    named: list[str],
) -> None:
    def ready_box(builder: Builder, image: str) -> dict[str, str]:
        if image == "dut-freebsd":
            raise SourceError(f"{builder.makers[image].url}: no route", "download it by other means")
        return {"box": f"fwlab-{image}-0", "path": str(tmp_path / image)}

    monkeypatch.setattr(Builder, "ready_box", ready_box)
    with ThreadPoolExecutor(1) as pool:
        work = (labs, named, "lab08-pf", Subprocesses(), pool, None)
        if named:
            with pytest.raises(SourceError, match=f"{OFFICIAL}: no route"):
                command._build(*work)
        else:
            command._build(*work)
            assert set(built_boxes(labs)) == {*LINUX_IMAGES}
            assert capsys.readouterr().err == f"{left_out(labs, 'dut-freebsd', f'{OFFICIAL}: no route')}\n"
