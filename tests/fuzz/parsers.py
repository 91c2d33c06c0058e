# SPDX-License-Identifier: GPL-2.0-or-later
"""The parsers under test: the valid inputs of each, how they are mutated, and how the parser is called."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any

import yaml
from rich.console import Console

from fwlab.checkout.project import Project
from fwlab.checkout.raw_results import raw_results, read_document
from fwlab.checkout.yaml_files import yaml_in
from fwlab.measure.labs import lab_in, load_lab
from fwlab.measure.saved_runs import run_in
from fwlab.model.lab import Lab
from fwlab.report.model import build_model
from fwlab.report.renderers.json_output import check_document, run_document
from fwlab.report.renderers.terminal import show
from fwlab.rulesets.files import ruleset_file
from fwlab.rulesets.registry import KINDS
from fwlab.student.predictions import predictions_in
from fwlab.traffic import expand
from fwlab.traffic.frame_loop import build_table
from tests import ROOT
from tests.corpus import linux_rulesets, pf_rulesets

from .changes import NUMBERS, ODD, changed_data, changed_text, values_in

NAME = "labs/lab98-trouble/lab.yml"


@dataclass(frozen=True)
class Parser:
    """`make` creates an input from a seeded generator; `ask` parses it and names the class of the outcome.

    `ask` raises BadInput if the parser rejects the input.
    """

    make: Callable[[Random], Any]
    ask: Callable[[Any], str]


# ---- rulesets -------------------------------------------------------------------------------------------------

_ENDINGS = [kind.suffix if kind.suffix[0] != "." else f"rules{kind.suffix}" for kind in KINDS.values()]


@cache
def _rulesets() -> dict[str, list[str]]:
    """Valid texts of the labs and of the corpus, by file name."""
    found: dict[str, list[str]] = {name: ["\n"] for name in _ENDINGS}
    files = [(f"{name}.pf.conf", text) for name, text in pf_rulesets().items()]
    files += [item for ruleset in linux_rulesets().values() for item in ruleset.items()]
    paths = sorted(path for folder in ROOT.glob("labs/*/rulesets") for path in folder.rglob("*.*"))
    files += [(path.name.removesuffix(".j2"), path.read_text()) for path in paths if path.stat().st_size < 4000]
    for file, text in files:
        name = "pf.conf" if file.endswith("pf.conf") else f"rules.{file.rpartition('.')[2]}"
        if name in found:
            found[name].append(text)
    return found


@cache
def _words(name: str) -> list[str]:
    texts = _rulesets()[name]
    own = "jump goto include monitor device devices fwd dup size vmap define chain -M --modprobe -j -g -A -N -E"
    own += " --object-pinned hashsize maxelem create add exec bpf obj dev d mirred redirect limit eth2 if4 vtnet2 lo"
    own += " route net.ipv4"
    return sorted({*own.split()} | {word for text in texts for word in re.findall(r"[\w.:/-]+", text)})


def _ruleset(rng: Random) -> tuple[str, str]:
    name = rng.choice(_ENDINGS)
    texts = _rulesets()[name]
    text = changed_text(rng, rng.choice(texts), texts, _words(name))
    return (rng.choice(_ENDINGS) if rng.random() < 0.02 else name), text


def _ask_ruleset(given: tuple[str, str]) -> str:
    return f"accepted {ruleset_file(*given).kind}"


# ---- lab.yml --------------------------------------------------------------------------------------------------


@cache
def _labs() -> list[dict[str, Any]]:
    """Every lab, its lists cut to a few items: all kinds of field, no long list."""
    paths = [ROOT / "tests/data/errors/good.yml", *sorted(ROOT.glob("labs/*/lab.yml"))]
    return [_short(yaml.safe_load(path.read_text())) for path in paths]


def _short(data: Any, most: int = 2) -> Any:
    if isinstance(data, dict):
        return {key: _short(value, most) for key, value in data.items()}
    return [_short(item, most) for item in data[:most]] if isinstance(data, list) else data


@cache
def _lab_values() -> list[Any]:
    return [value for lab in _labs() for value in values_in(lab)]


def _lab(rng: Random) -> Any:
    return changed_data(rng, rng.choice(_labs()), _lab_values())


def _ask_lab(data: Any) -> str:
    lab = lab_in(data, NAME)
    return f"accepted, {len(lab.cases) and 'with'} cases, {'with' if lab.exercises else 'no'} exercises"


@cache
def _lab_texts() -> list[str]:
    return [(ROOT / "tests/data/errors/good.yml").read_text(), (ROOT / "labs/_template/lab.yml").read_text()]


def _lab_text(rng: Random) -> bytes:
    words = ["&a", "*a", "<<:", "!!int", "!!timestamp", "!!binary", "2001-99-99", ".nan", "? ", "|-", "--- ", "%YAML"]
    text = changed_text(rng, rng.choice(_lab_texts()), _lab_texts(), words)
    data = text.encode("utf-8", "surrogatepass")
    return data[: rng.randrange(len(data) + 1)] + b"\xff" if rng.random() < 0.02 else data


def _ask_lab_text(data: bytes) -> str:
    return _ask_lab(yaml_in(data, NAME, f"fix {NAME}"))


# ---- streams --------------------------------------------------------------------------------------------------


@cache
def _profiles() -> list[list[dict[str, Any]]]:
    found = []
    for path in sorted((ROOT / "tests/data/trex-vectors").glob("*.json")):
        form = json.loads(path.read_text())
        found.append(form["streams"] if isinstance(form, dict) else form)
    return [streams for streams in found if len(json.dumps(streams)) < 20_000]


@cache
def _stream_values() -> list[Any]:
    return [value for streams in _profiles() for value in values_in(streams)]


def _streams(rng: Random) -> tuple[Any, int]:
    data = changed_data(rng, rng.choice(_profiles()), _stream_values())
    return data, rng.choice((1, 2, 7, 33))


def _ask_streams(given: tuple[Any, int]) -> str:
    """Expand the streams; for some of them, also build the frame table of an engine."""
    streams, limit = given
    frames = expand(streams, limit=limit)
    if limit == 7:
        build_table(streams, macs=(bytes(6), bytes(6)), max_frames=64)
    return "accepted, with frames" if len(frames) else "accepted, without frames"


# ---- results --------------------------------------------------------------------------------------------------


@cache
def _measured() -> list[tuple[Lab, dict[str, Any]]]:
    """Published runs, cut to two cases and two exercises, each with its lab."""
    project, found = Project(ROOT), []
    for name in ("lab01-forwarding", "lab02-conntrack", "lab05-drop-early"):
        lab = load_lab(project, name)
        for path in raw_results(project, f"{name}/published"):
            run = _short(json.loads(read_document(path)))
            run["cases"][0]["stacks"] = {}
            if exercises := raw_results(project, f"{name}/*-exercises"):
                run["exercises"] = _short(json.loads(read_document(exercises[-1]))).get("exercises", [])
            found.append((lab, run))
    return found


@cache
def _run_values() -> list[Any]:
    return [value for _, run in _measured() for value in values_in(run)]


def _run(rng: Random) -> tuple[Lab, str, bool]:
    lab, run = rng.choice(_measured())
    changed = run if rng.random() < 0.1 else changed_data(rng, run, _run_values())
    text = json.dumps(changed)
    if changed is run:
        text = changed_text(rng, text, [text], [*NUMBERS, *ODD])
    return lab, text, rng.random() < 0.02


def _ask_run(given: tuple[Lab, str, bool]) -> str:
    lab, text, shown = given
    run = run_in(text.encode("utf-8", "surrogatepass"), "run.json", "fwlab run LAB")
    documents = run_document(build_model(lab, run)), check_document(build_model(lab, run))
    json.dumps(documents, allow_nan=False).encode()
    if shown:
        show(build_model(lab, run), Console(file=io.StringIO(), width=120))
    return f"accepted, judged {documents[0]['verdict']}"


# ---- predictions ----------------------------------------------------------------------------------------------

_PREDICTIONS = [
    *("ex1-one-host: 250000.0\n", "ex1-one-host: 1e5\nex2-thousand-rules: 48000\nex3-ipset: 0\n", "# none\n", ""),
]


def _predictions(rng: Random) -> bytes:
    words = ["ex1-one-host", ":", "- ", "? ", "!!float", "!!int", "&a", "*a", "<<", "2001-01-01", ".nan", ".inf", "~"]
    return changed_text(rng, rng.choice(_PREDICTIONS), _PREDICTIONS, words).encode("utf-8", "surrogatepass")


def _ask_predictions(data: bytes) -> str:
    found = predictions_in(yaml_in(data, "work/predictions.yml", "fix it"), "lab98-trouble")
    return f"accepted, {'some' if found else 'none'}"


PARSERS = {
    "rulesets": Parser(_ruleset, _ask_ruleset),
    "lab": Parser(_lab, _ask_lab),
    "lab-text": Parser(_lab_text, _ask_lab_text),
    "streams": Parser(_streams, _ask_streams),
    "results": Parser(_run, _ask_run),
    "predictions": Parser(_predictions, _ask_predictions),
}
