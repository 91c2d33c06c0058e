# SPDX-License-Identifier: GPL-2.0-or-later
"""A DUT operating system that is defined outside fwlab is found, connected to and measured."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.contract import PLUGINS, environment

SESSION = PLUGINS.with_name("plugin_programs") / "dut_session.py"


@pytest.fixture(scope="module")
def session() -> dict[str, Any]:
    argv = [sys.executable, SESSION]
    done = subprocess.run(argv, env=environment(PLUGINS), capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_it_is_found_and_connected_to(session: dict[str, Any]) -> None:
    assert session["systems"] == ["freebsd", "linux", "toaster"]
    assert session["kernel"] == "toast 1.0"
    assert (session["done"][0], session["done"][-2:]) == ("open", ["reset", "close"])


def test_it_is_measured(session: dict[str, Any]) -> None:
    assert session["nothing"]["processed"] == [100_000] * 2
    slower = session["two lines"]
    assert (slower["processed"], slower["entries"], slower["loads"]) == ([98_000] * 2, 2, [1.0] * 2)
    assert not any(session[name]["problems"] for name in ("nothing", "two lines", "bad"))


def test_its_refusal_is_reported(session: dict[str, Any]) -> None:
    assert session["bad"]["refused"] == "toaster: no burning"


def test_an_unknown_system_is_named_with_those_that_are_known(session: dict[str, Any]) -> None:
    assert session["unknown"] == ["topology.yml: no DUT runs kettle", "use one of: freebsd linux toaster"]
