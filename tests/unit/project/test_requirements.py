# SPDX-License-Identifier: GPL-2.0-or-later
"""Imported packages are declared in pyproject.toml, and declared ones are locked: requirements*.lock."""

import ast
import re
import sys
import tomllib
from importlib.metadata import distributions, packages_distributions

import pytest
from packaging.specifiers import SpecifierSet

from tests import ROOT

#: Debian 12's own. The Python of these tests may be newer, and pip then accepts more.
OLDEST_PYTHON = "3.11.2"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def normal(name: str) -> str:
    """A distribution's name without its version, normalized as in PEP 503."""
    return re.sub(r"[-_.]+", "-", re.match(r"[\w.-]+", name)[0]).lower()


DECLARED = {normal(line) for line in PROJECT["dependencies"]}
EXTRA = {name: {normal(line) for line in lines} for name, lines in PROJECT["optional-dependencies"].items()}


def locked(file: str) -> dict[str, str]:
    """By the package's name, its version and hashes."""
    blocks = re.findall(r"^([\w.-]+)(==.*\n(?: +--hash=.*\n)+)", (ROOT / file).read_text(), re.MULTILINE)
    return {normal(name): rest for name, rest in blocks}


LOCKED, RUN = locked("requirements-dev.lock"), locked("requirements.lock")


def imported() -> dict[str, str]:
    """Third-party modules that the package imports, each with one file that does."""
    found = {}
    for path in sorted((ROOT / "fwlab").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module]
            found |= {name.split(".")[0]: path.name for name in names}
    return {name: where for name, where in found.items() if name not in sys.stdlib_module_names}


def test_imports_are_declared() -> None:
    """Transitive dependencies do not count."""
    brings = packages_distributions()
    foreign = {name: where for name, where in imported().items() if name in brings}
    assert {"zmq", "pydantic", "matplotlib"} <= set(foreign)
    of = {name: {normal(dist) for dist in brings[name]} for name in foreign if name != "fwlab"}
    assert {name: foreign[name] for name, dists in of.items() if not dists & (DECLARED | EXTRA["web"])} == {}
    assert (DECLARED | EXTRA["web"]) - set().union(*of.values()) == set(), "nothing else is installed to run labs"


def test_declared_packages_are_locked() -> None:
    run = DECLARED | EXTRA["setup"] | EXTRA["web"]
    assert (run | EXTRA["dev"]) - set(LOCKED) == set()
    assert run - set(RUN) == set()


def test_what_runs_labs_has_no_linter_and_the_same_versions() -> None:
    assert set(RUN) & EXTRA["dev"] == set()
    assert {name: rest for name, rest in LOCKED.items() if name in RUN} == RUN


@pytest.mark.parametrize("file", ["requirements.lock", "requirements-dev.lock"])
def test_a_lock_names_no_source_of_packages(file: str) -> None:
    """An option such as --find-links would name a folder or a mirror of one machine."""
    assert re.findall(r"^-.*", (ROOT / file).read_text(), re.MULTILINE) == []


def test_locked_packages_run_on_debian_12s_python() -> None:
    wanted = {normal(one.name): one.metadata.get("Requires-Python") or "" for one in distributions()}
    assert "pydantic" in wanted
    unfit = {name: text for name, text in wanted.items() if name in LOCKED and OLDEST_PYTHON not in SpecifierSet(text)}
    assert unfit == {}
