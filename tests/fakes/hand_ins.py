# SPDX-License-Identifier: GPL-2.0-or-later
"""Archives as students hand them in, and as an attacker would."""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

RULES = "*raw\n-A PREROUTING -s 198.18.20.66 -j DROP\nCOMMIT\n"
GOOD = {"ex1-block/rules.iptables": RULES}


def make_zip(path: Path, files: Mapping[str, str | bytes] = GOOD) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, data in files.items():
            packed.writestr(name, data)
    return path


def zip_entry(path: Path, name: str, data: bytes = b"x", *, mode: int = 0, flags: int = 0) -> Path:
    """An archive of one member with these Unix mode bits; `flags` are set in its directory afterwards."""
    info = zipfile.ZipInfo(name)
    info.external_attr = mode << 16
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr(info, data)
    if flags:
        raw = bytearray(path.read_bytes())
        for signature, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
            at = raw.index(signature) + place
            raw[at : at + 2] = (int.from_bytes(raw[at : at + 2], "little") | flags).to_bytes(2, "little")
        path.write_bytes(raw)
    return path


def make_tar(path: Path, files: Mapping[str, str | bytes] = GOOD) -> Path:
    return tar_of(path, [(tarfile.TarInfo(name), _bytes(data)) for name, data in files.items()])


def tar_of(path: Path, members: list[tuple[tarfile.TarInfo, bytes]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:gz") as packed:
        for info, data in members:
            info.size = len(data)
            packed.addfile(info, io.BytesIO(data))
    return path


def tar_entry(path: Path, name: str, kind: bytes, target: str = "") -> Path:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return tar_of(path, [(info, b"")])


def _bytes(data: str | bytes) -> bytes:
    return data.encode() if isinstance(data, str) else data
