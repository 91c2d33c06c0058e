# SPDX-License-Identifier: GPL-2.0-or-later
"""Measure rulesets on a plug-in's DUT and print the results as JSON."""

from __future__ import annotations

import contextlib
import json
import sys
from types import SimpleNamespace

from fwlab.dut.registry import DUTS, dut_system
from fwlab.generator.protocol import PlaybackResult
from fwlab.measure.measurer import Measurer
from fwlab.metrics.measurement import MeasurementSpec, Nodes
from fwlab.model.case import Trials
from fwlab.model.errors import BadInput
from fwlab.rulesets.files import ruleset_file

played = SimpleNamespace(stop=lambda: PlaybackResult(10_000, 1.0))
engine = SimpleNamespace(start=lambda: played, use=lambda *_: None)
tables = SimpleNamespace(plays_packets=lambda _: True, of_play=lambda *_: tables, flows=lambda _: {})
sink = SimpleNamespace(absorb_all=lambda _classes: None, set_flows=lambda _flows: None)


def spec(name: str, text: str) -> MeasurementSpec:
    files = [ruleset_file("rules.nft", text)] if text else []
    metrics = ["capacity", "entries", "load_time"]
    return MeasurementSpec(name, name, name, files, metrics, traffic="flood", trial=Trials(count=2))


found = {"systems": list(DUTS)}
with dut_system("toaster").connect(SimpleNamespace(), ["slot0", "slot1"]) as dut:
    found["kernel"] = dut.facts()["kernel"]
    nodes = Nodes(dut, engine, sink, tables, {}, lambda _level: contextlib.nullcontext(), levels=1)
    measurer = Measurer(nodes)
    texts = {"nothing": "", "two lines": "add table ip t\nadd table ip u\n", "bad": "add table ip burn\n"}
    for name, text in texts.items():
        measured = measurer.measure(spec(name, text))
        found[name] = {
            "processed": [trial.processed for trial in measured.trials],
            "entries": measured.entries,
            "loads": measured.loads,
            "problems": measured.problems,
            "refused": measured.refused,
        }
found["done"] = dut.done
try:
    dut_system("kettle")
except BadInput as error:
    found["unknown"] = [error.message, error.hint]
json.dump(found, sys.stdout)
