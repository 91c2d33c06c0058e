# SPDX-License-Identifier: GPL-2.0-or-later
"""The project's files name their licence and contain nothing specific to one machine."""

import ast
import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

from tests import ROOT

CODE = {".py", ".sh", ".rb", ".hcl", ".c", ".h"}
WITH_LICENCE = {*CODE, ".yml", ".yaml", ".j2", ".toml"}
# REUSE-IgnoreStart
LICENCE = "SPDX-License-Identifier: GPL-2.0-or-later"
# REUSE-IgnoreEnd

#: An absolute path into a developer's working folder. The students' "work/" always follows another path.
WORKPLACE = re.compile(r"(?<![\w.*>})\]$/~-])/work\b")
#: Hosts that packages may come from, and a reserved one for examples (RFC 2606). Mirrors are configured on a host.
PUBLIC = {"deb.debian.org", "security.debian.org", "cloud.debian.org", "pypi.org", "github.com", "example.org"}
WHERE_PACKAGES_COME_FROM = ("packer/", "provision/", "engine/", ".ci/", "Makefile", "requirements", "pyproject")


@cache
def tracked() -> tuple[Path, ...]:
    """Files of the project, including those not committed yet."""
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout, so the list of files is unknown")
    files = [ROOT / name for name in listed.split("\0") if name]
    return tuple(path for path in files if path.is_file() and not path.is_symlink())


def text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


def is_code(path: Path) -> bool:
    named = path.name in ("Makefile", "Vagrantfile")
    return path.suffix in CODE or named or (not path.suffix and path.read_bytes()[:2] == b"#!")


_CONTAINERS = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)


def _state(path: Path) -> list[str]:
    """Places where a module keeps state: `global`, or a list, dict or set without a constant's name."""
    tree = ast.parse(text(path))
    found = [f"{path.name}:{node.lineno} global" for node in ast.walk(tree) if isinstance(node, ast.Global)]
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, _CONTAINERS):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [target.id for target in targets if isinstance(target, ast.Name)]
            found += [f"{path.name}:{node.lineno} {name}" for name in names if name != "__all__" and not name.isupper()]
    return found


def test_modules_keep_no_state() -> None:
    modules = [path for path in tracked() if re.fullmatch(r"(fwlab|coresim)/.*\.py", relative(path))]
    assert len(modules) > 100
    assert [place for path in modules for place in _state(path)] == []


def test_no_module_has_a_catch_all_name() -> None:
    assert not [relative(path) for path in tracked() if path.stem in ("utils", "util", "helpers", "misc", "common")]


def test_source_files_name_their_licence() -> None:
    sources = [path for path in tracked() if path.stat().st_size and (path.suffix in WITH_LICENCE or is_code(path))]
    assert not [relative(path) for path in sources if LICENCE not in "\n".join(text(path).splitlines()[:4])]


def test_no_path_into_a_developers_folder() -> None:
    assert not [relative(path) for path in tracked() if WORKPLACE.search(text(path))]


def test_packages_come_from_public_archives() -> None:
    names = [path for path in tracked() if relative(path).startswith(WHERE_PACKAGES_COME_FROM)]
    hosts = {host for path in names for host in hosts_in(text(path))}
    assert "deb.debian.org" in hosts, "the pattern finds nothing"
    assert hosts <= PUBLIC


def hosts_in(words: str) -> set[str]:
    """Host names in the URLs of a text. URLs put together at run time are not found."""
    found = re.findall(r"https?://(?:[^/@\s\"']*@)?([A-Za-z0-9.-]+)", words)
    return {host.lower().rstrip(".") for host in found}
