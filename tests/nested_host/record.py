# SPDX-License-Identifier: GPL-2.0-or-later
"""What a run on the emulated host did: a log with the time of each line, and one JSON document of its steps."""

from __future__ import annotations

import json
import shutil
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from fwlab.checkout.atomic_write import write_atomically

#: Stands in every document, because figures of an emulated host look like those of a slow one.
MARK = "emulated host: shows that the real testbed works, not how fast it is"


@dataclass(frozen=True)
class Step:
    """One step. `says`: what was found; `ok`: whether that is what was wanted."""

    name: str
    command: str
    seconds: float
    ok: bool
    says: str


@dataclass
class Record:
    """The steps so far. Every line goes to `log`, and shortened to the terminal.

    note      what the document says about itself
    runs      raw results of the measurements, by kind of link
    complete  whether the run came to its end: an interrupted one is no success
    """

    log: Path
    note: str = MARK
    facts: dict[str, Any] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    runs: dict[str, Any] = field(default_factory=dict)
    complete: bool = False
    began: float = field(default_factory=time.monotonic)

    def tell(self, line: str) -> None:
        """One line of a command's output."""
        text = f"{time.monotonic() - self.began:8.1f}  {line}"
        with self.log.open("a") as file:
            file.write(f"{text}\n")
        sys.stderr.write(f"{text[:160]}\n")
        sys.stderr.flush()

    def add(self, step: Step) -> None:
        """Note a step that ended."""
        self.steps.append(step)
        self.tell(f"{'ok    ' if step.ok else 'FAILED'} {step.name} ({step.seconds:.0f} s): {step.says}")

    @property
    def ok(self) -> bool:
        """Whether the run came to its end, and all steps did what they should."""
        return self.complete and all(step.ok for step in self.steps)

    def document(self) -> dict[str, Any]:
        """Everything, as results/ keeps it."""
        return {
            "note": self.note,
            "complete": self.complete,
            "ok": self.ok,
            "wall_s": round(time.monotonic() - self.began),
            "host": self.facts,
            "steps": [asdict(step) for step in self.steps],
        }

    def write(self, path: Path) -> None:
        """Write the document, the log, and the raw results of each link as PATH-LINK.json."""
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps(self.document(), indent=1) + "\n")
        shutil.copyfile(self.log, path.with_suffix(".log"))
        for link, run in self.runs.items():
            write_atomically(path.with_name(f"{path.stem}-{link}.json"), json.dumps(run, indent=1) + "\n")
