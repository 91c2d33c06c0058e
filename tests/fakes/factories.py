# SPDX-License-Identifier: GPL-2.0-or-later
"""A small lab and a small run for tests. All numbers are invented."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from fwlab.model.expectation import Expectation
from fwlab.model.lab import Lab
from fwlab.model.results import DutFacts, HostFacts, Measured, Run, TestbedFacts
from fwlab.model.trial import Delivery, Trial
from tests import ROOT

NS_PER_INSTRUCTION = 4
#: Chosen so that capacities in pps are whole numbers of packets in a trial.
BUSY_S = 4.0
#: Capacity of the raw drop, in pps on the reference CPU.
BASELINE_PPS = 300_000.0

#: A traffic profile: one stream of one packet.
PROFILE = """
from trex_stl_lib.api import *

class Flood:
    def get_streams(self, direction=0, target="198.19.0.9", **kwargs):
        headers = Ether() / IP(src="198.18.0.9", dst=target) / UDP(sport=1025, dport=12)
        return [STLStream(packet=STLPktBuilder(pkt=headers / bytes(18)), mode=STLTXCont(pps=1000))]

def register():
    return Flood()
"""

TEXTS = {"why": "Invented reason.", "source": ["S1"], "pass": "Well done.", "fail": "Look again."}


def expectation(**fields: Any) -> dict[str, Any]:
    return {"id": "made-up", **TEXTS, **fields}


#: raw-drop and set-1000 pass, set-1 fails.
RANGES = [
    expectation(id="absolute", virtual={"raw-drop": [290_000, 310_000], "set-1": [280_000, float("inf")]}),
    expectation(id="relative", ratio_to="raw-drop", ratio={"set-1000": [0.88, 0.94]}),
]


def check(**fields: Any) -> dict[str, Any]:
    return {"metric": "capacity", "between": [200_000, float("inf")], **TEXTS, **fields}


def a_lab(expectations: list[dict] | None = None, checks: list[dict] | None = None) -> Lab:
    """A lab with a raw drop, two sweeps with a published point each, a case in a sweep, and one exercise."""
    lab = Lab.model_validate(
        {
            "id": "lab99-made-up",
            "title": "What does the made-up rule cost?",
            "minutes": 10,
            "classes": {"attacker": {"src": "198.18.20.66/32"}, "others": {"src": "198.18.0.0/16"}},
            "traffic": {"flood": {"profile": "profile.py"}},
            "baseline": "raw-drop",
            "cases": [
                {
                    "id": "raw-drop",
                    "title": "Raw drop",
                    "ruleset": "raw-drop",
                    "traffic": "flood",
                    "published": [{"source": "S1", "value": 280_000, "ratio": 1.0}],
                },
                {
                    "id": "set-1",
                    "title": "A set | one entry",
                    "ruleset": "set",
                    "sweep": "set",
                    "parameters": {"entries": 1},
                    "traffic": "flood",
                },
            ],
            "sweeps": [
                {
                    "id": "rules",
                    "title": "Rules",
                    "ruleset": "rules",
                    "parameter": "rules",
                    "values": [16, 1024],
                    "traffic": "flood",
                    "also": ["load_time"],
                },
                {
                    "id": "set",
                    "title": "Set",
                    "ruleset": "set",
                    "parameter": "entries",
                    "values": [1000],
                    "traffic": "flood",
                    "also": ["load_time"],
                    "published": {"1000": [{"source": "S1", "value": 255_000, "ratio": 0.91}]},
                },
                {
                    "id": "load-each",
                    "title": "One command each",
                    "ruleset": "rules",
                    "parameter": "rules",
                    "values": [16],
                    "metric": "load_time",
                    "load": "each",
                },
            ],
            "exercises": [
                {
                    "id": "ex1-block",
                    "title": "Block one host",
                    "traffic": "flood",
                    "predict": {"question": "How many pps?"},
                    "checks": checks
                    if checks is not None
                    else [check(), check(metric="delivered", between=[0, 0], **{"class": "attacker"})],
                }
            ],
        }
    )
    return lab.with_expectations([Expectation.model_validate(fields) for fields in expectations or []])


def trials(*capacities: float, busy_share: float = 1.0, scale: int = NS_PER_INSTRUCTION) -> list[Trial]:
    """One trial for each capacity, in pps after scaling."""
    return [
        Trial(duration_s=BUSY_S / busy_share, busy_s=BUSY_S, processed=round(pps * BUSY_S / scale))
        for pps in capacities
    ]


def measured(lab: Lab, case_id: str, *capacities: float, **fields: Any) -> Measured:
    """A result of the case with these capacities; `fields` replace other fields of the result."""
    case = lab.cases[case_id]
    known = {
        "id": case_id,
        "title": case.title,
        "ruleset": case.ruleset,
        "ruleset_hash": "0" * 64,
        "parameters": case.parameters,
        "traffic": case.traffic,
        "metric": case.metric,
        "also": case.also,
        "trials": trials(*capacities),
    }
    return Measured(**{**known, **fields})


def attempt(*capacities: float, arrived: int = 0, **fields: Any) -> Measured:
    """A result of ex1-block: `arrived` of the attacker's 900 packets and all 100 others reach the sink."""
    delivery = Delivery(
        intended_load=1000,
        sent=1000,
        offered={"attacker": 900, "others": 100},
        arrived={"attacker": arrived, "others": 100},
    )
    known = {
        "id": "ex1-block",
        "title": "Block one host",
        "ruleset": "work/ex1-block",
        "ruleset_hash": "1" * 64,
        "traffic": "flood",
        "metric": "capacity",
        "also": ["delivered"],
        "trials": trials(*capacities),
        "deliveries": [delivery],
    }
    return Measured(**{**known, **fields})


def testbed(**fields: Any) -> TestbedFacts:
    known = {
        "name": "virtual",
        "accelerator": "tcg",
        "clock": "instructions",
        "ns_per_instruction": NS_PER_INSTRUCTION,
        "forced": False,
        "link": "socket",
        "engine": "replay",
        **fields,
    }
    real = "host_class" if known["accelerator"] == "kvm" else "none"
    return TestbedFacts(**{"ranges": "portable" if known["name"] == "virtual" else real, **known})


def real(accelerator: str = "kvm") -> TestbedFacts:
    return testbed(name="real", accelerator=accelerator, clock="host", ns_per_instruction=None)


testbed.__test__ = False  # not a test, despite its name


def a_run(cases: list[Measured], exercises: list[Measured] | None = None, **fields: Any) -> Run:
    known = {
        "lab": "lab99-made-up",
        "started": "2026-01-02T03:04:05+00:00",
        "commit": "abcdef0123456789",
        "fwlab": "0.1.0",
        "seed": 1,
        "host": HostFacts(
            cpu="Made-up CPU <7>",
            cores=2,
            memory_mib=4096,
            os="Debian 12",
            kernel="6.1.0-host",
            qemu="7.2",
            libvirt="9.0",
            load_average=0.5,
        ),
        "testbed": testbed(),
        "dut": DutFacts(kernel="6.1.0-dut", cmdline="nokaslr", clocksource="tsc", image={"nftables": "1.0.6"}),
        "cases": cases,
        "exercises": exercises or [],
    }
    return Run(**{**known, **fields})


def a_full_run(lab: Lab) -> Run:
    """A run with every case of `a_lab` and its exercise with a prediction."""
    return a_run(
        [
            measured(lab, "raw-drop", 299_700, 300_000, 300_600),
            measured(lab, "set-1", 270_000, 270_000, 270_600),
            measured(lab, "rules-16", 240_000, 240_000, 241_200, loads=[0.04, 0.044]),
            measured(lab, "rules-1024", 15_000, 15_000, 15_060, loads=[0.4, 0.44]),
            measured(lab, "set-1000", 273_000, 273_000, 273_600, loads=[0.08, 0.088]),
            measured(lab, "load-each-16", loads=[2.0]),
        ],
        [attempt(255_000, 255_000, 256_200)],
        predictions={"ex1-block": 300_000},
    )


def small_checkout(top: Path, lab: str) -> None:
    """Fill `top` with a checkout that has one small lab, of two rulesets and an exercise."""
    root, folder = ROOT, top / "labs" / lab
    for name in ("raw-drop", "rules", "ex1-block/start"):
        (folder / "rulesets" / name).mkdir(parents=True)
        (folder / "rulesets" / name / "rules.iptables").write_text("*raw\n-A PREROUTING -j DROP\nCOMMIT\n")
    (folder / "work").mkdir()
    shutil.copy(root / "topology.yml", top)
    shutil.copy(root / "tests/data/errors/good.yml", folder / "lab.yml")
    (folder / "profile.py").write_text(PROFILE)
