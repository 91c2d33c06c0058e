# SPDX-License-Identifier: GPL-2.0-or-later
"""The project's files: short, with a licence, and free of anything that belongs to one machine."""

from __future__ import annotations

import os
import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

LONGEST = 300
#: Longer files, with the reason and their own limit.
LONG: dict[str, int] = {}
CODE = {".py", ".sh", ".rb", ".hcl", ".c", ".h"}
WITH_LICENCE = {*CODE, ".yml", ".yaml", ".erb", ".j2", ".toml"}
LICENCE = "SPDX-License-Identifier: GPL-2.0-or-later"

#: An absolute path into somebody's working folder; "work/", the student's, has something before its slash.
WORKPLACE = re.compile(r"(?<![\w.*>})\]$/~-])/work\b")
#: Names that anybody's packages may come from, and one that leads nowhere (RFC 2606). A host behind a mirror asks
#: its own apt for it.
PUBLIC = {"deb.debian.org", "security.debian.org", "cloud.debian.org", "pypi.org", "github.com", "example.org"}
WHERE_PACKAGES_COME_FROM = ("packer/", "provision/", "engine/", ".ci/", "Makefile", "requirements", "pyproject")


@cache
def tracked() -> tuple[Path, ...]:
    """Files that belong to the project, those that are not yet committed with them."""
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout: which files belong to the project is not known")
    files = [ROOT / name for name in listed.split("\0") if name]
    return tuple(path for path in files if path.is_file() and not path.is_symlink())


def text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


def is_code(path: Path) -> bool:
    named = path.name in ("Makefile", "Vagrantfile")
    return path.suffix in CODE or named or (not path.suffix and path.read_bytes()[:2] == b"#!")


def test_no_module_is_named_for_nothing() -> None:
    assert not [relative(path) for path in tracked() if path.stem in ("utils", "util", "helpers", "misc", "common")]


def test_no_file_is_long() -> None:
    lengths = {relative(path): len(text(path).splitlines()) for path in tracked() if is_code(path)}
    assert len(lengths) > 100
    assert not {name: lines for name, lines in lengths.items() if lines > LONG.get(name, LONGEST)}
    assert not {name for name in LONG if lengths[name] <= LONGEST}, "no longer long: strike it off the list"


def test_every_source_file_names_its_licence() -> None:
    sources = [path for path in tracked() if path.stat().st_size and (path.suffix in WITH_LICENCE or is_code(path))]
    assert not [relative(path) for path in sources if LICENCE not in "\n".join(text(path).splitlines()[:4])]


def test_no_path_of_one_workplace() -> None:
    assert not [relative(path) for path in tracked() if WORKPLACE.search(text(path))]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("see /{}/main/x".format("work"), True),
        ("root=/{}".format("work"), True),
        ("labs/lab03-ipset/work/README.md", False),
        ("{lab}/work/{exercise}", False),
        ("/{}bench".format("work"), False),
    ],
)
def test_pattern_of_the_workplace(line: str, found: bool) -> None:
    assert bool(WORKPLACE.search(line)) == found


def test_packages_come_from_public_archives() -> None:
    names = [path for path in tracked() if relative(path).startswith(WHERE_PACKAGES_COME_FROM)]
    hosts = {host for path in names for host in hosts_in(text(path))}
    assert "deb.debian.org" in hosts, "nothing was found: is the pattern right?"
    assert hosts <= PUBLIC


def test_no_host_of_this_machines_own_mirrors() -> None:
    """Where the machine that runs this takes its packages from is its own affair."""
    configured = [*Path("/etc/apt").glob("sources.list*"), *Path("/etc/apt/sources.list.d").glob("*")]
    configured += [*Path("/etc/apt/apt.conf.d").glob("*"), Path("/etc/pip.conf"), Path.home() / ".config/pip/pip.conf"]
    configured += [Path.home() / ".pip/pip.conf", Path.home() / ".npmrc", Path.home() / ".gemrc"]
    lines = [line for path in configured if path.is_file() for line in text(path).splitlines()]
    said = [line for line in lines if not line.lstrip().startswith(("#", "//"))]
    told = [
        value for name, value in os.environ.items() if re.search("index|proxy|registry|mirror", name, re.IGNORECASE)
    ]
    own = hosts_in("\n".join(said + told)) - PUBLIC - {"localhost"}
    assert not [(relative(path), host) for path in tracked() for host in own if host in text(path)]


def hosts_in(words: str) -> set[str]:
    """Host names of the addresses in it; what a program puts together at run time is none."""
    found = re.findall(r"https?://(?:[^/@\s\"']*@)?([A-Za-z0-9.-]+)", words)
    return {host.lower().rstrip(".") for host in found}


def test_hosts_are_found_in_what_configures_them() -> None:
    words = "deb [signed-by=k] http://Mirror.example.org/debian x main\nindex-url = https://me:secret@pypi.example.org:8443/simple"
    assert hosts_in(words) == {"mirror.example.org", "pypi.example.org"}
