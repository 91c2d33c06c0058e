# SPDX-License-Identifier: GPL-2.0-or-later
"""Take a ruleset of a plug-in's kind through fwlab and print the outcome as JSON.

Arguments: the folder of a submission; a working folder; the path of the kind's tool.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from fwlab.dut.linux.client import LinuxDut
from fwlab.grading.grader import absent_from
from fwlab.model.errors import BadInput, Refused
from fwlab.rulesets.files import ruleset_file, student_ruleset
from fwlab.rulesets.registry import KINDS

submission, work, tool = map(Path, sys.argv[1:])
AGENT = Path(__file__).with_name("agent_on_no_dut.py")


class LocalSsh:
    """Accepts the agent as SSH would, and starts it on this machine."""

    def run(self, _command: str, *, data: bytes, timeout: float) -> str:
        (work / "agent").mkdir()
        subprocess.run(["tar", "-xzC", work / "agent"], input=data, check=True)
        return ""

    def open(self, _command: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-I", "-S", AGENT, work / "agent", tool], stdin=-1, stdout=-1, stderr=-1
        )


def host_run(command: str, *_: str) -> SimpleNamespace:
    """Replaces Testinfra's host.run."""
    done = subprocess.run([tool, *command.split()[1:]], capture_output=True, text=True, check=False)
    return SimpleNamespace(rc=done.returncode, stdout=done.stdout, stderr=done.stderr)


found: dict[str, Any] = {"order": list(KINDS), "refused": []}
files = student_ruleset(submission)
found["files"] = [(file.name, file.kind) for file in files]
try:
    ruleset_file("bad.greylist", "198.18.1.1\n$(reboot)\n")
except BadInput as error:
    found["refused"].append(error.message)
host = SimpleNamespace(run=host_run)
ours = [file for file in files if file.kind == "greylist"]
found["absent before"] = absent_from(host, ours)
with LinuxDut(LocalSsh(), ["eth0", "eth1"]) as dut:  # type: ignore[arg-type]
    found["loaded"] = len(dut.load(files)[0])
    found["absent"] = absent_from(host, ours)
    found["entries"] = dut.entries()
    found["left"] = dut.reset(next_ruleset=files)
    found["entries after"] = dut.entries()
    try:
        dut.load([*ours, ruleset_file("broken.greylist", "203.0.113.1\n")])
    except Refused as refusal:
        found["refused"].append(refusal.message)
    found["entries after a refusal"] = dut.entries()
    dut.load(ours)  # and is left behind
print(json.dumps(found))
