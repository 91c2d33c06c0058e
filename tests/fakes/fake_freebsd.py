# SPDX-License-Identifier: GPL-2.0-or-later
"""The agent of a FreeBSD DUT on this host: its own program under Lua, with a made-up system below it."""

from __future__ import annotations

import inspect
import json
import struct
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fwlab.dut import agent_protocol
from fwlab.dut.conversation import validated
from fwlab.dut.freebsd.client import agent_program
from fwlab.dut.linux.agent.agent import Agent
from tests import DATA
from tests.fakes.programs import program

HERE = Path(__file__).parent
#: Recorded on a DUT: commands and what they printed.
RECORDED = DATA / "freebsd"
KINFO_BYTES = 1088
P_KPROC = 4

Answer = Mapping[str, Any]


@dataclass(frozen=True)
class Told:
    """Answers of the agent, and what it did on the system meanwhile."""

    answers: list[dict[str, Any]]
    done: list[str]


def answer_type(operation: str) -> type[Any]:
    """The type that the agent on Linux declares for the answer to this operation."""
    declared = inspect.get_annotations(getattr(Agent, operation))["return"]
    found: type[Any] = getattr(agent_protocol, declared.removeprefix("answers."))
    return found


def session(folder: Path, spec: Mapping[str, Any], requests: Iterable[Mapping[str, Any]]) -> Told:
    """Put these requests to the agent. `spec` is what fake_freebsd.lua reads."""
    modules, _, main = agent_program().decode().rpartition("assert(load([==[")
    fake = (HERE / "fake_freebsd.lua").read_text()
    replaced = f'package.preload["system"] = assert(load([==[\n{fake}]==], "@fake_freebsd.lua"))\n'
    (folder / "agent.lua").write_text(f"{modules}{replaced}assert(load([==[{main}")
    (folder / "spec.json").write_text(json.dumps(spec))
    lines = "".join(json.dumps(request) + "\n" for request in requests)
    argv = [program("lua5.4"), str(folder / "agent.lua"), str(folder / "spec.json")]
    done = subprocess.run(argv, input=lines, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    for answer in answers:
        if not answer.keys() & {"failed", "unknown"}:
            validated(answer, answer_type(answer["op"]), answer["op"])
    return Told(answers, done.stderr.splitlines())


def lua(code: str, given: str = "") -> str:
    """What this Lua code prints; the agent's modules can be required."""
    modules = agent_program().decode().rpartition("assert(load([==[")[0]
    done = subprocess.run([program("lua5.4"), "-"], input=f"{modules}\n{code}\n{given}", capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def process(
    pid: int,
    name: str,
    ran: int,
    *,
    thread: str = "",
    number: int = 0,
    parent: int = 1,
    group: int = 1,
    children: int = 0,
    kernel: bool = False,
) -> bytes:
    """One struct kinfo_proc, of one thread; times in microseconds."""
    bytes_ = bytearray(KINFO_BYTES)
    struct.pack_into("<i", bytes_, 0, KINFO_BYTES)
    struct.pack_into("<iii", bytes_, 72, pid, parent, group)
    struct.pack_into("<q", bytes_, 328, ran)
    struct.pack_into("<qqq", bytes_, 352, *divmod(children, 1_000_000), P_KPROC if kernel else 0)
    struct.pack_into("<i", bytes_, 600, number)
    bytes_[394 : 394 + len(thread[:16])] = thread[:16].encode()
    bytes_[502 : 502 + len(thread[16:])] = thread[16:].encode()
    bytes_[447 : 447 + len(name)] = name.encode()
    return bytes(bytes_)


def output(text: str, status: int = 0) -> list[Answer]:
    return [{"output": text, "status": status}]


def recorded(name: str) -> str:
    return (RECORDED / name).read_text()
