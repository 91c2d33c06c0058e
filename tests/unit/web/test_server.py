# SPDX-License-Identifier: GPL-2.0-or-later
"""`fwlab web` as a process: its address, its end, and what it says where it cannot begin."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.cookiejar import CookieJar
from pathlib import Path

import pytest

from fwlab.cli import web
from tests.fakes import student_checkout as checkouts
from tests.fakes.student_checkout import Door

PATIENCE_S = 120.0


@pytest.fixture
def server(checkout: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "fwlab.cli.entry", "web", "--port", "0"],
        cwd=checkout,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        line = process.stdout.readline()
        yield process, re.search(r"http://\S+", line)[0]
    finally:
        process.kill()
        process.wait()


def test_it_serves_with_the_token_and_ends_cleanly(server: tuple[subprocess.Popen[str], str], checkout: Path) -> None:
    process, address = server
    base, _, token = address.partition("?token=")
    assert base.startswith("http://127.0.0.1:")
    assert len(token) >= 32
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(base, timeout=PATIENCE_S)
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
    with opener.open(address, timeout=PATIENCE_S) as answer:
        assert "Firewall Performance Lab" in answer.read().decode()
        assert answer.url == base
    for path in ("docs", "openapi.json"):
        with pytest.raises(urllib.error.HTTPError, match="404"):
            opener.open(base + path, timeout=PATIENCE_S)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, said
    assert "Traceback" not in said
    assert not (checkout / ".nicegui").exists()


def test_sigterm_ends_it_too(server: tuple[subprocess.Popen[str], str]) -> None:
    process, _ = server
    process.terminate()
    said, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, said
    assert "Traceback" not in said


@pytest.fixture
def door(checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Door:
    del checkout
    return checkouts.door(monkeypatch, capsys)


def test_a_port_that_is_taken(door: Door) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        code, _, complaint = door("web", "--port", str(port))
    assert code == 3
    assert complaint.startswith(f"fwlab: cannot listen at 127.0.0.1:{port}: Address already in use\n  next: fwlab web")


@pytest.mark.parametrize("address", ["evil.example", "127.0.0.1/8", ""])
def test_a_wrong_address(door: Door, address: str) -> None:
    code, _, complaint = door("web", "--port", "0", "--address", address)
    assert code == 2
    assert "is not an IP address" in complaint


def test_without_nicegui_it_says_how_to_install_it(door: Door, checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "find_spec", lambda _: None)
    code, _, complaint = door("web")
    assert code == 3
    assert "needs NiceGUI" in complaint
    assert "[web]" in complaint
    (checkout / "requirements.lock").touch()
    assert "provision/host/venv" in door("web")[2]


def test_other_commands_do_not_import_it() -> None:
    code = "import sys, fwlab.cli.main; print(sorted({'nicegui', 'fastapi', 'uvicorn'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
