# SPDX-License-Identifier: GPL-2.0-or-later
"""A plug-in's metric works in lab.yml, measuring, judging and every report, without a change in fwlab/."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import ROOT, contract
from tests.fakes.factories import PROFILE, TEXTS

PROGRAM = contract.PLUGINS / "metric_run.py"
LAB = "lab97-misses"
RULES = "table ip f {\n  chain c {\n    type filter hook forward priority 0;\n%s  }\n}\n"

MEASURED = {"traffic": "flood", "metric": "cache_misses"}
DECLARED: dict[str, Any] = {
    "id": LAB,
    "title": "How often does the DUT miss its cache?",
    "minutes": 10,
    "classes": {"others": {"src": "198.18.0.0/16"}},
    "traffic": {"flood": {"profile": "profile.py"}},
    "baseline": "one",
    "cases": [{"id": "one", "title": "One rule", "ruleset": "one", **MEASURED}],
    "sweeps": [
        {"id": "rules", "title": "Rules", "ruleset": "rules", "parameter": "rules", "values": [2, 8], **MEASURED}
    ],
    "expectations": [{"id": "misses", "metric": "cache_misses", "cases": ["rules-2", "rules-8"], **TEXTS}],
    "exercises": [
        {
            "id": "ex1-few",
            "title": "Miss it less often",
            "traffic": "flood",
            "predict": {"question": "How many misses?", "metric": "cache_misses"},
            "checks": [{"metric": "cache_misses", "between": [0, 7], **TEXTS}],
        }
    ],
}
#: The range for eight rules is from a machine with a larger cache, so it fails.
RANGES = {"tolerance": 0.1, "ratio_tolerance": 0.2, "medians": {"rules-2": 4, "rules-8": 1.5}}


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("checkout")
    lab = root / "labs" / LAB
    for name, rules in (
        ("one", "    drop\n"),
        ("rules", "{% for _ in range(rules) %}    drop\n{% endfor %}"),
        ("ex1-few/reference", "    drop\n" * 3),
    ):
        (lab / "rulesets" / name).mkdir(parents=True)
        template = "rules.nft.j2" if "{%" in rules else "rules.nft"
        (lab / "rulesets" / name / template).write_text(RULES % rules)
    (lab / "profile.py").write_text(PROFILE)
    (lab / "lab.yml").write_text(yaml.safe_dump(DECLARED))
    ranges = {"virtual": {"kernel": "6.1", "source": "made up", "metrics": {"cache_misses": RANGES}}}
    (lab / "ranges.yml").write_text(yaml.safe_dump(ranges))
    shutil.copy(ROOT / "topology.yml", root)
    return root


@pytest.fixture(scope="module")
def document(checkout: Path) -> dict[str, Any]:
    done = contract.python(PROGRAM, checkout, LAB, plugins=contract.PLUGINS / "metric")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_it_is_measured_and_judged(document: dict[str, Any]) -> None:
    assert (document["metrics"][0], document["metrics"][-1]) == ("capacity", "cache_misses")
    misses = {"one": 2.0, "rules-2": 4.0, "rules-8": 16.0}
    assert document["values"] == {case: {"cache_misses": [value] * 3} for case, value in misses.items()}
    assert document["cases"] == {"one": None, "rules-2": "pass", "rules-8": "fail"}
    assert document["checks"] == {"cache_misses": ["pass", 6.0]}
    assert set(document["reports"]) == {report for report, _ in SHOWN}


SHOWN = [
    ("json", '"metric": "cache_misses"'),
    ("check-json", '"metric": "cache_misses"'),
    ("markdown", "| case | cache misses, misses/packet |"),
    ("html", '<td>cache misses</td><td class="n">16.00 misses/packet</td>'),
    ("html", "Cache misses. Bars reach from the best to the worst."),
    ("plots", "cache misses, misses/packet"),
    ("terminal", "rules-8  cache misses  16.00 misses/packet"),
]


@pytest.mark.parametrize(("report", "shown"), SHOWN)
def test_every_report_shows_it(document: dict[str, Any], report: str, shown: str) -> None:
    assert shown in document["reports"][report]


def test_without_the_plug_in_the_lab_names_an_unknown_metric(checkout: Path) -> None:
    done = contract.python(PROGRAM, checkout, LAB, plugins=None)
    assert done.returncode != 0
    assert f"labs/{LAB}/lab.yml: cases.one.metric: unknown metric 'cache_misses'; known metrics: cap" in done.stderr
