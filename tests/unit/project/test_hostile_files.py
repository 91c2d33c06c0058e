# SPDX-License-Identifier: GPL-2.0-or-later
"""Hostile and odd files (data/hostile): each is refused at a line (`at`) with a message that has `says` in it.

An item without `says` is odd and harms nobody. The file's content is `text`, `bytes` in hexadecimal, the `size` of a
file of NULs, or a `bomb`: eight chains of ten such rules each, {n} being the chain's number and {m} the next one's. A
text may be in parts, and a part may `repeat`, with {n} and {m} for its number from 0 and from 1. Of lab.yml, `new` is
put in place of `old` in errors/good.yml; of a run, `value` at the `path` of a made-up one.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from fwlab.checkout.project import Project, display_path
from fwlab.checkout.yaml_files import read_yaml_file
from fwlab.measure.labs import lab_in
from fwlab.measure.saved_runs import load_run
from fwlab.model.errors import BadInput
from fwlab.report.model import build_model
from fwlab.report.renderers.json_output import check_document, run_document
from fwlab.rulesets.files import ruleset_file, student_ruleset
from fwlab.student.predictions import predictions_in
from tests import DATA
from tests.fakes import factories

GOOD = (DATA / "errors" / "good.yml").read_text()
Item = dict[str, Any]
QUICK = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def table(name: str) -> list[Item]:
    return yaml.load((DATA / "hostile" / f"{name}.yml").read_text(), QUICK)


RULESETS = [
    {"file": file, **item}
    for path in sorted(DATA.glob("hostile/rulesets-*.yml"))
    for file, items in yaml.load(path.read_text(), QUICK).items()
    for item in items
]
FILES = {"lab": "labs/lab98-trouble/lab.yml", "predictions": "work/predictions.yml", "run": "FOLDER/run.json"}
FAULTS = [(kind, {"file": file, **item}) for kind, file in FILES.items() for item in table(kind)]


def whole(parts: Any) -> Any:
    """Join the parts of a text; other values stay as they are."""
    if not (isinstance(parts, list) and any(isinstance(part, dict) and "repeat" in part for part in parts)):
        return parts
    return "".join(part if isinstance(part, str) else repeated(part["of"], part["repeat"]) for part in parts)


def repeated(text: str, times: int) -> str:
    if "{" not in text:
        return text * times
    return "".join(text.replace("{n}", str(n)).replace("{m}", str(n + 1)) for n in range(times))


def written(path: Path, item: Item, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    if "size" in item:
        with path.open("wb") as file:
            file.truncate(item["size"])
    elif "bytes" in item:
        path.write_bytes(bytes.fromhex(item["bytes"]))
    else:
        path.write_text(text)
    return path


def with_value(data: Any, path: list[Any], value: Any) -> Any:
    if not path:
        return value
    made = dict(data) if isinstance(data, dict) else list(data)
    inner = made.get(path[0]) if isinstance(made, dict) else made[path[0]]
    made[path[0]] = with_value(inner, path[1:], value)
    return made


# ---- readers of each kind -------------------------------------------------------------------------------------


def bomb(rule: str) -> str:
    chains = "".join(f":c{number} - [0:0]\n" for number in range(8))
    rules = "".join(repeated(rule.format(n=number, m=number + 1), 10) for number in range(7))
    return f"*raw\n{chains}-A PREROUTING -j c0\n{rules}-A c7 -j ACCEPT\nCOMMIT\n"


def ruleset(folder: Path, item: Item) -> None:
    if "bomb" in item:
        ruleset_file(item["file"], bomb(item["bomb"]))
    elif "text" in item:
        ruleset_file(item["file"], whole(item["text"]))
    else:
        written(folder / item["file"], item, "")
        student_ruleset(folder)


def lab(folder: Path, item: Item) -> None:
    text = whole(item["text"]) if "text" in item else GOOD
    if "old" in item:
        assert item["old"] in GOOD
        text = GOOD.replace(item["old"], whole(item["new"]), 1)
    path = written(folder / "labs" / "lab98-trouble" / "lab.yml", item, text)
    name = display_path(Project(folder), path)
    lab_in(read_yaml_file(path, name), name)


def predictions(folder: Path, item: Item) -> None:
    path = written(folder / "predictions.yml", item, whole(item.get("text", "")))
    predictions_in(read_yaml_file(path, "work/predictions.yml", "HINT"), "lab98-trouble")


MADE = factories.a_lab(factories.RANGES)
RUN = factories.a_run(
    [factories.measured(MADE, "raw-drop", 300_000, 300_500), factories.measured(MADE, "set-1", 290_000)],
    [factories.attempt(250_000)],
).model_dump_json()


def run(folder: Path, item: Item) -> None:
    """A run that is accepted can also be judged."""
    text = whole(item.get("text", ""))
    if "path" in item:
        text = json.dumps(with_value(json.loads(RUN), item["path"], whole(item["value"])))
    found = load_run(written(folder / "run.json", item, text), "lab99-made-up")
    json.dumps([run_document(build_model(MADE, found)), check_document(build_model(MADE, found))], allow_nan=False)


READERS: dict[str, Callable[[Path, Item], None]] = {"lab": lab, "predictions": predictions, "run": run}


# ---- the tests ------------------------------------------------------------------------------------------------


def check(read: Callable[[Path, Item], None], folder: Path, item: Item) -> None:
    if "says" not in item:
        read(folder, item)
        return
    with pytest.raises(BadInput) as refused:
        read(folder, item)
    message = refused.value.message.replace(str(folder), "FOLDER")
    line = f":{item['at']}" if "at" in item else ""
    assert message.startswith(f"{item['file']}{line}: ")
    assert item["says"] in message
    assert refused.value.hint


@pytest.mark.parametrize("item", RULESETS, ids=lambda item: f"{item['file']} {item['name']}")
def test_file_of_a_submission(tmp_path: Path, item: Item) -> None:
    check(ruleset, tmp_path, item)


@pytest.mark.parametrize(("kind", "item"), FAULTS, ids=lambda value: value if isinstance(value, str) else value["name"])
def test_error_of_a_file(tmp_path: Path, kind: str, item: Item) -> None:
    check(READERS[kind], tmp_path, item)
