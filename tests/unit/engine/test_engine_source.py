# SPDX-License-Identifier: GPL-2.0-or-later
"""The replay engine compiles without a warning, reads good frame tables, refuses bad ones, and never crashes."""

from __future__ import annotations

import json
import os
import random
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from fwlab.generator.frame_table import MAX_FRAMES, write_table
from fwlab.model.errors import BadInput
from tests.engine_build import build_engine
from tests.fakes.captures import read_table

NEEDED = ("gcc", "clang", "bpftool", "make")
ENVIRONMENT = {**os.environ, "PATH": os.environ.get("PATH", "") + ":/usr/sbin:/sbin"}  # bpftool lives in sbin

pytestmark = pytest.mark.skipif(
    any(shutil.which(tool, path=ENVIRONMENT["PATH"]) is None for tool in NEEDED),
    reason=f"the engine's build needs {', '.join(NEEDED)}",
)


def build(folder: Path, compiler: str, *extra: str) -> Path:
    binary = folder / "fwlab-replay"
    said = build_engine(f"CC={compiler}", f"BUILD={folder}/build", f"OUT={binary}", *extra, environment=ENVIRONMENT)
    assert "warning" not in said
    return binary


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The engine as the generator gets it."""
    return build(tmp_path_factory.mktemp("gcc"), "gcc")


@pytest.fixture(scope="module")
def checked_engine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The engine with the address and undefined-behaviour sanitizers, which end it at the first invalid access."""
    flags = "-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all"
    return build(tmp_path_factory.mktemp("asan"), "gcc", f"CFLAGS={flags}", f"LDFLAGS={flags}")


def check(binary: Path, table: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([binary, "--check", "--table", table], capture_output=True, text=True, timeout=30)


def good_table(path: Path) -> bytes:
    frames = [bytes([n]) * (60 + 10 * n) for n in range(8)]
    write_table(path, frames, [1000 * n for n in range(8)], [n % 3 for n in range(8)], loop_ns=8000)
    return path.read_bytes()


def test_clang_compiles_it_without_a_warning(tmp_path: Path) -> None:
    # Not every clang knows the name.
    asked = subprocess.run(["gcc", "-print-multiarch"], capture_output=True, text=True, check=True)
    assert build(tmp_path, "clang", f"MULTIARCH={asked.stdout.strip()}").is_file()


def test_the_binary_needs_no_shared_library(engine: Path) -> None:
    headers = subprocess.run(["readelf", "-lW", engine], capture_output=True, text=True, check=True).stdout
    assert "INTERP" not in headers


def test_the_engine_reads_tables_written_by_python(engine: Path, tmp_path: Path) -> None:
    good_table(tmp_path / "good.tbl")
    done = check(engine, tmp_path / "good.tbl")
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    del figures["version"]
    assert figures == {"frames": 8, "streams": 3, "shortest": 60, "longest": 130, "loop_ns": 8000}


def test_a_table_can_be_read_back(tmp_path: Path) -> None:
    frames = [b"a" * 60, b"b" * 1514, b"a" * 60, b"short"]
    write_table(tmp_path / "t.tbl", frames, streams=[0, 5, 0, 65535])
    table = read_table(tmp_path / "t.tbl")
    assert table.frames == [*frames[:3], b"short".ljust(60, b"\0")]
    assert table.streams == [0, 5, 0, 65535]
    assert table.times_ns is None


def test_the_largest_table(engine: Path, tmp_path: Path) -> None:
    write_table(tmp_path / "big.tbl", [struct.pack("<I", n).ljust(60) for n in range(MAX_FRAMES)])
    assert json.loads(check(engine, tmp_path / "big.tbl").stdout)["frames"] == MAX_FRAMES


@pytest.mark.parametrize(
    ("at", "form", "value", "message"),
    [
        (0, "<8s", b"PCAPFILE", "not a frame table (wrong magic)"),
        (8, "<I", 2, "version 2, this engine reads version 1"),
        (12, "<I", 0, "holds no frames"),
        (12, "<I", MAX_FRAMES + 1, f"{MAX_FRAMES + 1} frames, more than {MAX_FRAMES}"),
        (12, "<I", 9, "do not hold 9 records"),
        (24, "<Q", 2**64 - 1, "do not hold 8 records"),
        (16, "<Q", 7000, "frame 7: time 7000 ns decreases, or lies outside the loop of 7000 ns"),
        (32 + 16, "<Q", 5000, "frame 2: time 2000 ns decreases"),
        (32 + 8, "<I", 2**32 - 1, "frame 0: bytes 4294967295 to 4294967355 lie outside the file"),
        (32 + 7 * 16 + 8, "<I", 700, "frame 7: bytes 700 to 830 lie outside the file"),
        (32 + 12, "<H", 59, "frame 0: 59 bytes, outside 60..9018"),
        (32 + 12, "<H", 9019, "frame 0: 9019 bytes, outside 60..9018"),
    ],
)
def test_errors_name_the_field(
    checked_engine: Path, tmp_path: Path, at: int, form: str, value: int | bytes, message: str
) -> None:
    path = tmp_path / "bad.tbl"
    data = bytearray(good_table(path))
    struct.pack_into(form, data, at, value)
    path.write_bytes(data)
    done = check(checked_engine, path)
    assert done.returncode == 2, done.stderr
    assert message in done.stderr
    assert "next: " in done.stderr
    assert done.stdout == ""


def test_truncated_tables_are_refused_without_a_crash(checked_engine: Path, tmp_path: Path) -> None:
    path = tmp_path / "cut.tbl"
    whole = good_table(path)
    for length in [*range(0, 200, 7), len(whole) - 1]:
        path.write_bytes(whole[:length])
        done = check(checked_engine, path)
        assert done.returncode == 2, (length, done.stderr)


def test_damaged_tables_do_not_crash(checked_engine: Path, tmp_path: Path) -> None:
    path = tmp_path / "random.tbl"
    whole = good_table(path)
    chance = random.Random(20)
    for _ in range(60):
        data = bytearray(whole)
        for _ in range(chance.randint(1, 6)):
            data[chance.randrange(32 + 8 * 16)] = chance.randrange(256)
        path.write_bytes(data)
        done = check(checked_engine, path)
        assert done.returncode in (0, 2), done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "--table: missing"),
        (["--table", "{good}"], "--dev: missing"),
        (["--check", "--table", "/nowhere"], "/nowhere: cannot open"),
        (["--check", "--table", "/"], "/: not a regular file"),
        (["--dev", "lo", "--table", "{good}", "--rate", "0"], "--rate 0: not a number in its range"),
        (["--dev", "lo", "--table", "{good}", "--rate", "nan"], "--rate nan: not a number in its range"),
        (["--dev", "lo", "--table", "{good}", "--count", "1.5"], "--count 1.5: not a number in its range"),
        (["--dev", "lo", "--table", "{good}", "--batch", "257"], "--batch 257: not a number in its range"),
        (["--dev", "lo", "--table", "{good}", "--rate", "5", "--speed", "1"], "exclude each other"),
        (["--dev", "lo", "--table", "{good}", "--driver", "dpdk"], "--driver dpdk: not a driver of this engine"),
        (["--dev", "lo", "--table", "{good}", "--bogus"], "unknown or incomplete option"),
        (["--dev", "lo", "--table", "{good}", "more"], "more: not expected"),
        (["--dev", "nosuchdevice0", "--table", "{good}"], "nosuchdevice0: no network device"),
        (["--dev", "lo", "--table", "{untimed}", "--speed", "1"], "untimed.tbl: its frames have no times"),
        (["--dev", "lo", "--table", "{long}"], "a frame of 4000 bytes: too long for a live frame"),
    ],
)
def test_refuses_bad_arguments(checked_engine: Path, tmp_path: Path, arguments: list[str], message: str) -> None:
    good_table(tmp_path / "good.tbl")
    write_table(tmp_path / "untimed.tbl", [bytes(60)])
    write_table(tmp_path / "long.tbl", [bytes(4000)])
    names = {name: tmp_path / f"{name}.tbl" for name in ("good", "untimed", "long")}
    filled = [argument.format(**names) for argument in arguments]
    done = subprocess.run([checked_engine, *filled], capture_output=True, text=True, timeout=30)
    assert done.returncode == 2, done.stderr
    assert message in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("frames", "streams", "message"),
    [
        ([], None, "0 frames"),
        ([bytes(60)] * (MAX_FRAMES + 1), None, f"{MAX_FRAMES + 1} frames"),
        ([bytes(60), bytes(9019)], None, "frame 1: 9019 bytes"),
        ([bytes(60)] * 2, [0, 65536], "stream 65536"),
    ],
)
def test_python_refuses_to_write_an_invalid_table(
    tmp_path: Path, frames: list[bytes], streams: list[int] | None, message: str
) -> None:
    with pytest.raises(BadInput, match=message):
        write_table(tmp_path / "bad.tbl", frames, streams=streams)
    assert list(tmp_path.iterdir()) == []
