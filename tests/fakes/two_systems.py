# SPDX-License-Identifier: GPL-2.0-or-later
"""A made-up lab for two systems, and a run on each of them. All numbers are invented."""

from __future__ import annotations

from typing import Any

from fwlab.model.lab import Lab
from fwlab.model.results import Run
from fwlab.model.systems import on_system, with_systems
from tests.fakes.factories import TEXTS, a_lab, a_run, check, measured

#: Which systems load the folders of the made-up lab's rulesets.
SYSTEMS: dict[str, set[str]] = {
    "raw-drop": {"linux"},
    "rules": {"linux"},
    "set": {"linux"},
    "pf-rules": {"freebsd"},
    "nothing": set(),
    "ex1-block/start": {"linux"},
    "ex2-pf/start": {"freebsd"},
}


def raw(**changes: Any) -> dict[str, Any]:
    """The made-up lab with a second half on FreeBSD, as lab.yml has it."""
    data = a_lab().model_dump(by_alias=True, mode="json", exclude_defaults=True)
    common = {"traffic": "flood", "title": "On FreeBSD"}
    data["needs"] = {"systems": ["freebsd", "linux"], "packages": ["nftables"]}
    data["baseline"] = {"linux": "raw-drop", "freebsd": "pf-off"}
    data["cases"].append({"id": "pf-off", "ruleset": "nothing", "system": "freebsd", **common})
    data["sweeps"].append(
        {"id": "pf", "ruleset": "pf-rules", "parameter": "rules", "values": [16, 1024], **common},
    )
    second = {"id": "ex2-pf", "title": "pf", "traffic": "flood", "predict": {"question": "How many?"}}
    data["exercises"].append({**second, "checks": [check()]})
    data["crossovers"] = [{"id": "both", "title": "pf overtakes", "slower": "rules", "faster": "pf"}]
    data["expectations"] = [
        {"id": "linux", "cases": ["raw-drop", "set-1"], "ratio_to": "raw-drop", **TEXTS},
        {"id": "freebsd", "cases": ["pf-off", "pf"], "ratio_to": "pf-off", **TEXTS},
    ]
    return {**data, **changes}


def settled(systems: dict[str, set[str]] | None = None, **changes: Any) -> Lab:
    return with_systems(Lab.model_validate(raw(**changes)), {**SYSTEMS, **(systems or {})}.__getitem__)


LAB = settled()
LINUX, FREEBSD = on_system(LAB, "linux"), on_system(LAB, "freebsd")


def run_on(system: str, cases: list, **fields: Any) -> Run:
    run = a_run(cases, **fields)
    kernel = "FreeBSD 15.1-RELEASE" if system == "freebsd" else run.dut.kernel
    return run.model_copy(update={"dut": run.dut.model_copy(update={"system": system, "kernel": kernel})})


def linux_run() -> Run:
    found = [measured(LAB, "raw-drop", 300_000), measured(LAB, "set-1", 270_000)]
    return run_on("linux", [*found, measured(LAB, "rules-16", 240_000), measured(LAB, "rules-1024", 15_000)])


def freebsd_run(**fields: Any) -> Run:
    found = [measured(LAB, "pf-off", 200_000), measured(LAB, "pf-16", 150_000), measured(LAB, "pf-1024", 100_000)]
    return run_on("freebsd", found, started="2026-01-03T00:00:00+00:00", **fields)
