# SPDX-License-Identifier: GPL-2.0-or-later
"""The JSON Schemas in schemas/: fresh, and of one mind with what reads the files."""

import json
import re
import shutil
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from fwlab.checkout.project import Project, lab_ids, validated
from fwlab.checkout.yaml_files import read_yaml_file
from fwlab.cli.schemas import MODELS, schema_of
from fwlab.measure.labs import REGISTRIES, lab_in
from fwlab.model.errors import BadInput
from tests import ROOT
from tests.fakes.student_checkout import door
from tests.unit.model.test_lab_errors import BAD, LAB, checkout, written
from tools.pages import write_every_schema

#: By schema, the files of this checkout.
FILES = {
    "lab": ["labs/*/lab.yml", "tests/data/errors/good.yml"],
    "ranges": ["labs/*/ranges.yml"],
    "hints": ["labs/*/hints.yml"],
    "answers": ["labs/*/answers.yml"],
    "variants": ["labs/*/rulesets/*/variants.yml"],
    "topology": ["topology.yml"],
    "published": ["labs/*/published.yml"],
}
PATHS = [(name, path) for name, globs in FILES.items() for glob in globs for path in sorted(ROOT.glob(glob))]
QUESTION = {"id": "q", "question": "How much?", "hint": "h", "why": "w"}
HOST = {"macvtap": {"gen-dut": {"nic": "dummy"}}, "sriov": {"gen-dut": {"ends": {"dut": "0000:01:00.1"}, "vlan": 101}}}


def faults(name: str, data: object) -> list[str]:
    """What the schema in schemas/ has against it. A time is text to an editor, and no key is a number to JSON."""
    plain = json.loads(json.dumps(data, default=lambda value: value.isoformat()))
    schema = json.loads((ROOT / "schemas" / f"{name}.schema.json").read_text())
    return [f"{fault.json_path}: {fault.message}" for fault in Draft202012Validator(schema).iter_errors(plain)]


def test_the_schemas_are_those_of_the_code(tmp_path: Path) -> None:
    (tmp_path / "schemas").mkdir()
    write_every_schema(Project(tmp_path))
    tmp_path /= "schemas"
    assert {path.name for path in tmp_path.iterdir()} == {path.name for path in (ROOT / "schemas").iterdir()}
    stale = [path.name for path in tmp_path.iterdir() if path.read_text() != (ROOT / "schemas" / path.name).read_text()]
    assert not stale, "stale: make readme"
    assert write_every_schema(Project(tmp_path.parent)) == []


@pytest.mark.parametrize("name", MODELS)
def test_each_is_a_schema(name: str) -> None:
    Draft202012Validator.check_schema(schema_of(name))


@pytest.mark.parametrize(("name", "path"), PATHS, ids=lambda value: str(value).removeprefix(f"{ROOT}/"))
def test_every_file_fits_its_schema(name: str, path: Path) -> None:
    assert faults(name, read_yaml_file(path, path.name)) == []


def test_no_kind_of_file_is_left_out() -> None:
    assert {name for name, _ in PATHS} | {"course", "host"} == {*MODELS, "published"}


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad["says"][0])
def test_a_schema_refuses_what_needs_no_names_of_the_file(bad: dict[str, Any], tmp_path: Path) -> None:
    path = checkout(tmp_path, written(bad)).labs / LAB / "lab.yml"
    try:
        data = read_yaml_file(path, path.name)
    except BadInput:  # no YAML, which is not a schema's business
        assert "schema" not in bad
    else:
        assert bool(faults("lab", data)) is bad.get("schema", False)


#: In place of a lab's case, class, check, ...: what both the schema and the reader refuse.
ALSO_WRONG = [
    ("cases.0.trials", {"second": 1}),
    ("cases.0.trials", {"packets": 1}),
    ("cases.0.load", "some"),
    ("cases.0.also", "load_time"),
    ("cases.0.reload_spread", 0.2),
    ("cases.0.series", [{"profile": "flood"}]),
    ("classes.Attacker", {"src": "198.18.0.0/16"}),
    ("classes.attacker.sources", {"first": "198.18.0.1", "count": 2}),
    ("classes.attacker.stream", "flood"),
    ("classes.attacker.dports", [80]),
    ("classes.attacker.sport", "http"),
    ("traffic.flood.connections", {}),
    ("traffic.flood.profile", None),
    ("traffic.flood.translated", {"to": "198.18.96.0/30", "ports": "all"}),
    ("drawn", {"draw": {"from": 1, "adds_to": ["traffic.flood.tunables.x"]}}),
    ("drawn", {"draw": {"from": 1, "to": 2, "one_of": [1, 2], "adds_to": ["traffic.flood.tunables.x"]}}),
    ("drawn", {"draw": {"of": "teacher", "from": 1, "to": 2, "adds_to": ["traffic.flood.tunables.x"]}}),
    ("exercises.0.predict", 5),
    ("exercises.0.checks.0.metric", "jitter"),
    ("exercises.0.checks.0.kind", "fuzzy"),
    ("exercises.0.checks.0.between", [1]),
    ("exercises.0.checks.0.between", None),
    ("exercises.0.rules", ["ethtool"]),
    ("needs", {"systems": []}),
    ("needs", {"kernel": "6.1"}),
    ("sweeps.0.values", {"from": 16, "to": 64, "factor": 1}),
    ("sweeps.0.values", {"from": 16, "to": 64, "step": 16, "factor": 2}),
    ("sweeps.0.varies", "weather"),
]


@pytest.mark.parametrize(("place", "value"), ALSO_WRONG, ids=lambda value: str(value)[:40])
def test_schema_and_reader_refuse_the_same(place: str, value: Any, tmp_path: Path) -> None:
    data = json.loads(written({"put": {place: value}}))
    assert faults("lab", data)
    with pytest.raises(BadInput):
        lab_in(data, "lab.yml")


FORMS = [
    ("exercises.0.checks.0", "all-delivered"),
    ("exercises.0.checks.0", {"use": "none-delivered", "class": "attacker"}),
    ("exercises.0.predict", {"question": "How many?", "metric": "capacity"}),
    ("cases.0.trials", {"count": 7, "settle": 0.1}),
    ("cases.0.trials", 7),
    ("sweeps.0.values", [16, 64]),
    ("sweeps.0.values", {"from": 16, "to": 64, "step": 48}),
]


@pytest.mark.parametrize(("place", "value"), FORMS, ids=str)
def test_short_forms_fit(place: str, value: Any) -> None:
    assert faults("lab", json.loads(written({"put": {place: value}}))) == []


OTHERS: list[tuple[str, Any, bool]] = [
    ("course", {"labs": {"lab03-ipset": {"deadline": datetime.fromisoformat("2027-01-15T18:00:00+01:00")}}}, True),
    ("course", {"partial": 0.5, "late": {"per_day": 0.1}, "labs": {"lab03-ipset": {"exercises": {"ex1": 2}}}}, True),
    ("course", {"partial": 2}, False),
    ("course", {"secret": "short"}, False),
    ("course", {"labs": {"lab03-ipset": {"weights": 1}}}, False),
    ("host", HOST, True),
    ("host", {"sriov": {"gen-dut": {"ends": {"router": "0000:01:00.1"}}}}, False),
    ("host", {"macvtap": {"gen-dut": {"nic": "eth 0"}}}, False),
    ("hints", {"ex1-block": []}, False),
    ("variants", {"wrong": {"x": {"fails": ["capacity"]}}}, False),
    ("answers", {"questions": []}, False),
    ("answers", {"questions": [QUESTION | {"answer": {"derive": "cost", "case": "drop"}}]}, True),
    ("answers", {"questions": [QUESTION | {"answer": {"derive": "sum"}}]}, False),
    ("ranges", {"starts": {"ex1": "capacity"}}, False),
    ("ranges", {"virtual": {"kernel": "6.1", "source": "x", "metrics": {"capacity": {"medians": {"a": 1}}}}}, False),
    ("topology", {"nodes": {}}, False),
]


def test_a_row_of_published_ratios() -> None:
    assert faults("published", [{"source": "S1", "case": "raw-drop", "ratio": 0.5}]) == []
    assert faults("published", [{"case": "raw-drop"}])
    assert faults("published", {"source": "S1"})
    assert faults("published", [{"source": "S1", "sweep": "rules"}])


@pytest.mark.parametrize(("name", "data", "fits"), OTHERS, ids=lambda value: str(value)[:40])
def test_the_other_files(name: str, data: Any, fits: bool, tmp_path: Path) -> None:
    assert (faults(name, data) == []) is fits
    try:
        validated(data, f"{name}.yml", MODELS[name], REGISTRIES)
    except BadInput:
        assert not fits
    else:
        assert fits


def test_a_field_says_what_it_is() -> None:
    lab = schema_of("lab")
    assert lab["properties"]["minutes"]["description"] == "time that a student needs"
    assert "rulesets/<ruleset>" in lab["$defs"]["Case"]["properties"]["ruleset"]["description"]
    assert schema_of("course")["properties"]["points"]["description"].startswith("of a lab in which everything passed")


def test_each_modeline_leads_to_a_schema() -> None:
    found = [
        (path, *re.findall(r"^# yaml-language-server: \$schema=(\S+)$", path.read_text(), re.MULTILINE))
        for path in sorted((ROOT / "labs" / "_template").rglob("*.yml"))
    ]
    assert len(found) == 4
    for path, schema in found:
        assert (path.parent / schema).resolve() == ROOT / "schemas" / f"{path.stem}.schema.json"


def test_a_new_lab_is_the_template_under_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fwlab = door(monkeypatch, capsys)
    shutil.copytree(ROOT / "labs" / "_template", tmp_path / "labs" / "_template")
    shutil.copy(ROOT / "topology.yml", tmp_path)
    monkeypatch.chdir(tmp_path)
    said = "written: labs/lab42-queues\nnext: edit labs/lab42-queues/lab.yml, then `fwlab list lab42-queues`\n"
    assert fwlab("author", "new-lab", "lab42-queues") == (0, said, "")
    assert lab_ids(Project(tmp_path)) == ["lab42-queues"]
    assert fwlab("list", "lab42-queues")[0] == 0
    path = tmp_path / "labs" / "lab42-queues" / "lab.yml"
    assert faults("lab", read_yaml_file(path, path.name)) == []
    assert "has this number" in fwlab("author", "new-lab", "lab42-other")[2]
    assert "is no name of a lab" in fwlab("author", "new-lab", "queues")[2]
    shutil.rmtree(tmp_path / "labs" / "_template")
    assert "has no labs/_template" in fwlab("author", "new-lab", "lab43-other")[2]


def test_the_schemas_are_written_where_one_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fwlab = door(monkeypatch, capsys)
    code, said, _ = fwlab("author", "schemas", str(tmp_path))
    assert (code, said.count("written: ")) == (0, len(MODELS))
