# SPDX-License-Identifier: GPL-2.0-or-later
"""An archive comes from a stranger: whatever it holds, only plain files below one folder are made."""

from __future__ import annotations

import contextlib
import gzip
import random
import shutil
import stat
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from fwlab.grading import archives, confined
from fwlab.grading.archives import EXPORT, STUDENT, Limits, Unreadable, is_archive, stem, unpack
from tests.fakes.hand_ins import GOOD, RULES, make_tar, make_zip, tar_entry, tar_of, zip_entry

SMALL = Limits(members=4, total=3000, file=2000)


def unpacked(archive: Path, limits: Limits = STUDENT) -> dict[str, bytes]:
    folder = archive.parent / "out"
    unpack(archive, folder, limits)
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def refused(archive: Path, limits: Limits = STUDENT) -> str:
    """The reason. Nothing may exist outside the folder, and in it only plain files and folders."""
    before = set(archive.parent.rglob("*"))
    with pytest.raises(Unreadable) as error:
        unpack(archive, archive.parent / "out", limits)
    made = set(archive.parent.rglob("*")) - before
    assert {path for path in made if not path.is_relative_to(archive.parent / "out")} == set()
    assert all(path.is_dir() or stat.S_ISREG(path.lstat().st_mode) for path in made)
    return error.value.message


@pytest.mark.parametrize(("make", "name"), [(make_zip, "a.zip"), (make_tar, "a.tar.gz"), (make_tar, "A.TGZ")])
def test_ordinary_archives(tmp_path: Path, make: Callable, name: str) -> None:
    """A list of addresses, which packs well, is not taken for a bomb."""
    listed = "".join(f"add blacklist 10.{n >> 16}.{n >> 8 & 255}.{n & 255}\n" for n in range(1, 265_000)).encode()
    files = GOOD | {"__MACOSX/ex1-block/._rules": b"\0", "./b/c.nft": b"\xff", "b.ipset": listed}
    found = {"ex1-block/rules.iptables": RULES.encode(), "b/c.nft": b"\xff", "b.ipset": listed}
    assert unpacked(make(tmp_path / name, files)) == found


def test_suffixes() -> None:
    names = ("a.zip", "a.TAR.GZ", "a.tgz", "a.tar", "a.rar", "zip")
    assert [name for name in names if is_archive(name)] == ["a.zip", "a.TAR.GZ", "a.tgz"]
    assert [stem(name) for name in ("a.b.zip", "a.Tar.Gz", "a")] == ["a.b", "a", "a"]


@pytest.mark.parametrize("name", ["../evil", "a/../../evil", "/etc/evil", "..\\evil", "C:\\evil", "c:evil", "\\\\h\\x"])
@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
def test_no_path_leads_out(tmp_path: Path, name: str, kind: str) -> None:
    inner = tmp_path / "in" / "side"
    inner.mkdir(parents=True)
    archive = zip_entry(inner / "a.zip", name) if kind == "zip" else make_tar(inner / "a.tar.gz", {name: b"x"})
    assert "leads out of the archive" in refused(archive)
    assert not list(tmp_path.rglob("evil*"))


SPECIAL = ": a link or a special file"


@pytest.mark.parametrize("mode", [stat.S_IFLNK, stat.S_IFCHR, stat.S_IFBLK, stat.S_IFIFO, stat.S_IFSOCK])
def test_special_files_in_a_zip(tmp_path: Path, mode: int) -> None:
    assert refused(zip_entry(tmp_path / "a.zip", "rules.nft", b"/etc/passwd", mode=mode | 0o777)).endswith(SPECIAL)


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE])
def test_special_files_in_a_tar(tmp_path: Path, kind: bytes) -> None:
    assert refused(tar_entry(tmp_path / "a.tgz", "rules.nft", kind, "/etc/passwd")).endswith(SPECIAL)


def test_a_file_behind_a_link_of_the_same_name(tmp_path: Path) -> None:
    link = tarfile.TarInfo("out")
    link.type, link.linkname = tarfile.SYMTYPE, str(tmp_path)
    archive = tar_of(tmp_path / "a.tgz", [(link, b""), (tarfile.TarInfo("out/evil"), b"x")])
    assert refused(archive) == f"out{SPECIAL}"
    assert not (tmp_path / "evil").exists()


def test_an_encrypted_zip(tmp_path: Path) -> None:
    assert "encrypted" in refused(zip_entry(tmp_path / "a.zip", "rules.nft", flags=1))


@pytest.mark.parametrize(
    ("one", "other", "why"),
    [
        ("ex1/Rules.nft", "ex1/rules.nft", "ex1/Rules.nft and ex1/rules.nft differ only in case"),
        ("EX1/a.nft", "ex1/b.nft", "EX1 and ex1 differ only in case"),
        ("e\u0301.nft", "\u00e9.nft", "e\u0301.nft and \u00e9.nft differ only in case"),
        ("ß", "SS", "ß and SS differ only in case"),
        ("ex1/rules.nft", "./ex1//rules.nft", "ex1/rules.nft appears twice"),
        ("ex1", "ex1/rules.nft", "ex1 is a file and a folder"),
        ("ex1/rules.nft", "ex1", "ex1 is a file and a folder"),
    ],
)
def test_names_that_stand_for_one_file(tmp_path: Path, one: str, other: str, why: str) -> None:
    for make, name in ((make_zip, "a.zip"), (make_tar, "b/a.tgz")):
        assert refused(make(tmp_path / name, {one: "1", other: "2"})) == why


def test_one_students_names_do_not_refuse_a_class(tmp_path: Path) -> None:
    """Names that differ only in case, and one that became too long when a platform added the student's."""
    long = f"Ada_11_assignsubmission_file_{'長' * 80}.zip"
    names = ["b/Rules.nft", "b/rules.nft", long, long.replace(".zip", "い.zip")]
    found = unpacked(make_zip(tmp_path / "class.zip", dict.fromkeys(names, "x")), EXPORT)
    assert {"b/Rules.nft", "b/rules.nft"} < set(found)
    assert len(found) == len(names)
    assert all(name[:29] + name[-4:] == long[:29] + ".zip" for name in found if not name.startswith("b/"))


@pytest.mark.parametrize(("make", "name"), [(make_zip, "a.zip"), (make_tar, "a.tgz")])
def test_limits(tmp_path: Path, make, name: str) -> None:
    few = {str(number): "x" for number in range(4)}
    assert len(unpacked(make(tmp_path / "0" / name, few), SMALL)) == 4
    assert refused(make(tmp_path / "1" / name, few | {"4": "x"}), SMALL) == "more than 4 files and folders"
    noise = random.Random(1).randbytes(2001)
    assert refused(make(tmp_path / "2" / name, {"a": noise}), SMALL) == "a: more than 0 MiB"
    both = {"a": noise[:2000], "b": noise[:1001]}
    assert refused(make(tmp_path / "3" / name, both), SMALL) in ("more than 0 MiB unpacked", "more than 0 MiB")
    bomb = make(tmp_path / "4" / name, {"a.nft": bytes(64 << 20)})  # 64 kB packed
    assert refused(bomb) == "a.nft: more than 200 times as large as packed"


def test_a_zip_that_lies_about_sizes(tmp_path: Path) -> None:
    """What is read counts, and not what the directory of the archive claims."""
    archive = make_zip(tmp_path / "a.zip", {"a": random.Random(1).randbytes(5000)})
    raw = bytearray(archive.read_bytes())
    at = raw.index(b"PK\x01\x02") + 24
    raw[at : at + 4] = (10).to_bytes(4, "little")
    archive.write_bytes(raw)
    assert "damaged archive" in refused(archive)


def test_a_tar_that_claims_a_hole(tmp_path: Path) -> None:
    """A sparse file of a terabyte, some 500 bytes packed."""
    info = tarfile.TarInfo("a.nft")
    info.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": "a.nft",
                        "GNU.sparse.realsize": str(1 << 40)}  # fmt: skip
    assert refused(tar_of(tmp_path / "a.tgz", [(info, b"0\n" + bytes(510))])).endswith(SPECIAL)


def test_names_in_other_encodings(tmp_path: Path) -> None:
    """UTF-8 without its flag, as many programs write it; code page 437; bytes that are no text at all."""
    for number, (name, found) in enumerate([("lösung".encode(), "lösung"), (b"l\x94sung", "lösung")]):
        archive = zip_entry(tmp_path / f"{number}.zip", "x" * len(name))
        archive.write_bytes(archive.read_bytes().replace(b"x" * len(name), name))
        unpack(archive, tmp_path / str(number))
        assert [path.name for path in (tmp_path / str(number)).iterdir()] == [found]
    odd = [(tarfile.TarInfo("\udcff.nft"), b"x")]
    unpack(tar_of(tmp_path / "a.tgz", odd), tmp_path / "odd")
    assert [path.name for path in (tmp_path / "odd").iterdir()] == ["\udcff.nft"]


def test_names_that_no_file_can_have(tmp_path: Path) -> None:
    for number, name in enumerate(["x" * 300, "/".join("a" * 40)]):
        assert refused(make_tar(tmp_path / str(number) / "a.tgz", {name: b"x"}))
    archive = zip_entry(tmp_path / "a.zip", "aXb")
    archive.write_bytes(archive.read_bytes().replace(b"aXb", b"a\0b"))  # Python itself cuts such a name
    assert refused(archive) == "a\\x00b: not a usable name"


@pytest.mark.parametrize("name", ["a.zip", "a.tgz"])
def test_damaged_archives(tmp_path: Path, name: str) -> None:
    """Cut at any place and with any byte changed: unpacked in part, or refused with a reason, never anything else."""
    make = make_zip if name.endswith("zip") else make_tar
    whole = make(tmp_path / "whole" / name, {"a/b.nft": random.Random(2).randbytes(300), "c": "d" * 400}).read_bytes()
    chance = random.Random(3)
    plain = gzip.decompress(whole) if name == "a.tgz" else b""
    pages = [b"<html>not found</html>", gzip.compress(b"no tar"), plain]
    inputs = [b"", b"PK", b"\x1f\x8b", whole[:-30], whole[: len(whole) // 2], *pages]
    for _ in range(150):
        bent = bytearray(whole)
        bent[chance.randrange(len(bent))] ^= 1 << chance.randrange(8)
        inputs.append(bytes(bent))
    unharmed = 0
    for number, data in enumerate(inputs):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / name).write_bytes(data)
        with contextlib.suppress(Unreadable):
            unpack(folder / name, folder / "out")
            unharmed += 1
        assert {path.name for path in folder.iterdir()} <= {name, "out"}
    assert unharmed < len(inputs) - 20


def test_an_archive_that_is_a_link(tmp_path: Path) -> None:
    make_zip(tmp_path / "real.zip")
    (tmp_path / "a.zip").symlink_to(tmp_path / "real.zip")
    assert refused(tmp_path / "a.zip") == "not a plain file"


def test_a_full_disk_is_not_the_students_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(archives, "_copy", full)
    with pytest.raises(confined.DiskFull, match="No space left"):
        unpack(make_zip(tmp_path / "a.zip"), tmp_path / "out")


def with_attributes(path: Path, attributes: bytes, size: int | None = None) -> Path:
    """A .tgz whose first header holds these bytes in place of a list of attributes, and claims this size."""
    info = tarfile.TarInfo("attributes")
    info.type, info.size = tarfile.XHDTYPE, len(attributes) if size is None else size
    header = info.tobuf(tarfile.GNU_FORMAT) + attributes + bytes(-len(attributes) % 512)
    path.write_bytes(gzip.compress(header + tarfile.TarInfo("a.nft").tobuf() + bytes(1024)))
    return path


def test_attributes_of_a_tar_and_sizes_below_zero(tmp_path: Path) -> None:
    usual = b"30 mtime=1700000000.123456789\n" + b"14 path=b.nft\n"
    assert unpacked(with_attributes(tmp_path / "a.tgz", usual)) == {"b.nft": b""}
    shutil.rmtree(tmp_path / "out")
    assert refused(with_attributes(tmp_path / "a.tgz", b"", size=-512))
    info = tarfile.TarInfo("a.nft")
    info.size = -512
    (tmp_path / "b.tgz").write_bytes(gzip.compress(info.tobuf(tarfile.GNU_FORMAT) + bytes(1024)))
    assert refused(tmp_path / "b.tgz")


@pytest.mark.parametrize(
    "attributes", [lambda: b"2 " * 2_000_000 + b"=", lambda: b"30 comment=" + bytes(300 << 20)], ids=["pairs", "long"]
)
def test_costly_headers_end_at_the_limits_of_the_child(
    tmp_path: Path, attributes: Callable[[], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """tarfile's time for attributes can grow with their square (CVE-2024-6232), and it keeps them in memory."""
    monkeypatch.setattr(confined, "CPU_S", 1)
    monkeypatch.setattr(confined, "MEMORY", 64 << 20)
    archive = with_attributes(tmp_path / "a.tgz", attributes())
    told = confined.run_confined(lambda _tell: unpack(archive, tmp_path / "out"))
    assert told.limit or "damaged archive" in str(told.bug)
    assert not list(tmp_path.glob("out/*"))
