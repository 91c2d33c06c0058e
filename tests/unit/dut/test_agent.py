# SPDX-License-Identifier: GPL-2.0-or-later
"""The DUT's agent: how it loads a file, and what a refusal leaves behind.

The kernel is a fake. The agent's zip application is run as on the DUT.
"""

import base64
import json
import os
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import pytest

from fwlab.dut.linux.agent.agent import Agent
from fwlab.dut.linux.client import agent_archive
from fwlab.rulesets.kind import Refusal
from fwlab.rulesets.registry import KINDS
from tests.fakes.fake_kernel import FakeKernel

REFUSING = "line 1: no such set"


class Loading(Agent):
    """Records resets instead of doing them."""

    def __init__(self, kernel: FakeKernel) -> None:
        super().__init__(kernel, KINDS)
        self.resets = 0

    def reset(self, _request: dict[str, Any]) -> dict[str, Any]:
        self.resets += 1
        return {"stuck_modules": [], "differences": []}


@pytest.fixture
def unpacked(tmp_path: Path) -> Path:
    """The agent's folder, as on the DUT."""
    folder = tmp_path / "agent"
    folder.mkdir()
    subprocess.run(["tar", "-xzC", folder], input=agent_archive(), check=True)
    return folder


def test_the_same_agent_makes_the_same_archive() -> None:
    """Its hash says whether the DUT has it already."""
    assert agent_archive() == agent_archive()


def test_it_needs_nothing_but_the_standard_library(unpacked: Path) -> None:
    """The DUT has Python, and only the archive of this project."""
    script = f"import runpy, sys; runpy.run_path({str(unpacked)!r}, run_name='__main__'); print(*sys.modules)"
    argv = [sys.executable, "-I", "-S", "-c", script]
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)
    imported = set(done.stdout.split())
    assert {"fwlab.dut.linux.agent.rpc", "fwlab.rulesets.kinds.nft"} <= imported
    assert not {name.split(".")[0] for name in imported} - set(sys.stdlib_module_names) - {"__main__", "fwlab"}
    own = {name for name in imported if name.startswith("fwlab")}
    travels = ("fwlab.dut.linux.agent", "fwlab.rulesets", "fwlab.model.registry")
    assert {name for name in own if not name.startswith(travels)} == {
        "fwlab",
        "fwlab.dut",
        "fwlab.dut.linux",
        "fwlab.model",
    }


# ---- refusals -------------------------------------------------------------------------------------------------


def packed(text: str, kind: str = "nft") -> dict[str, str]:
    return {"name": f"rules.{kind}", "kind": kind, "packed": base64.b64encode(zlib.compress(text.encode())).decode()}


def test_a_refusal_has_the_tools_message_and_leaves_the_start_state() -> None:
    kernel = FakeKernel()
    kernel.failing = {"ipset restore"}
    agent = Loading(kernel)
    answer = agent.load({"files": [packed("table ip t {}"), packed("add x 1", "ipset")]})
    assert answer == {"refused": "rules.ipset: ipset said (exit 1): line 1: no such set"}
    assert agent.resets == 1
    assert not agent.unconfirmed


@pytest.mark.parametrize("kind", ["pf", "no-such-kind"])
def test_a_file_without_a_tool_on_this_dut_is_refused(kind: str) -> None:
    agent = Loading(FakeKernel())
    answer = agent.load({"files": [packed("pass all", kind)]})
    assert answer == {"refused": f"rules.{kind}: this DUT has no tool for such a file ({kind})"}
    assert agent.resets == 1


def test_loading_again_begins_with_nothing_loaded() -> None:
    kernel = FakeKernel()
    kernel.there = ["nf_tables"]
    agent = Loading(kernel)
    assert agent.load({"files": [packed("table ip t {}")], "times": 3}) == {"seconds": [[1], [1], [1]]}
    assert [line for line in kernel.called if line.startswith("nft")] == [
        *("nft -f -", "nft flush ruleset", "nft -f -", "nft flush ruleset", "nft -f -")
    ]
    assert kernel.fed["nft -f -"] == "table ip t {}"
    assert agent.unconfirmed
    assert agent.holds_a_ruleset()


def test_tools_read_addresses_faster_only_where_the_time_does_not_count() -> None:
    class Noting(FakeKernel):
        def call(self, argv: list[str], text: str | None = None) -> Any:
            seen.append(os.environ.get("RES_OPTIONS"))
            return super().call(argv, text)

    seen: list[str | None] = []
    agent = Loading(Noting())
    agent.load({"files": [packed("create x hash:ip\n", "ipset")]})
    agent.load({"files": [packed("create x hash:ip\n", "ipset")], "timed": False})
    assert seen == [None, "no-reload"]
    assert "RES_OPTIONS" not in os.environ


class Cut(FakeKernel):
    """Replaces the tool by a line of shell."""

    def __init__(self, line: str) -> None:
        super().__init__()
        self.line = line

    def call(self, argv: list[str], text: str | None = None) -> subprocess.CompletedProcess[str]:
        return super(FakeKernel, self).call(["sh", "-c", self.line], text)


@pytest.mark.parametrize(
    ("tool", "words"),
    [
        # ipset truncates long names within a character, which once ended the agent.
        ("printf 'element \\303' >&2; exit 1", "said (exit 1): element \N{REPLACEMENT CHARACTER}"),
        ("printf 'a\\377b'; exit 1", "said (exit 1): a\N{REPLACEMENT CHARACTER}b"),
        ("kill -SEGV $$", "crashed (signal 11) without a message; it gives no line: remove statements until it loads"),
        ("echo x >&2; kill -ABRT $$", "crashed (signal 6), and said: x; it gives no line: remove statements until"),
        ("kill -KILL $$", "crashed (signal 9) without a message; the DUT may lack memory"),
    ],
)
def test_what_a_tool_says_and_how_it_ended(tool: str, words: str) -> None:
    agent = Loading(Cut(tool))
    assert agent.load({"files": [packed("table ip t {}")]})["refused"].startswith(f"rules.nft: nft {words}")
    assert agent.resets == 1


def test_a_tool_that_cannot_be_run_refuses_the_file() -> None:
    class Without(FakeKernel):
        def call(self, argv: list[str], text: str | None = None) -> subprocess.CompletedProcess[str]:
            raise FileNotFoundError(argv[0])

    agent = Loading(Without())
    assert agent.load({"files": [packed("table ip t {}")]})["refused"] == "FileNotFoundError: nft"
    assert agent.resets == 1
    assert Without().run("nft", "flush", "ruleset").returncode == 127, "a reset goes on without it"


def test_a_wrong_request_does_not_end_the_agent(unpacked: Path) -> None:
    asked = [{"op": "no-such"}, {"no": "op"}, {"op": "counters", "devices": ["lo"], "number": 7}]
    lines = "".join(json.dumps(request) + "\n" for request in asked)
    agent = subprocess.Popen([sys.executable, unpacked], stdin=-1, stdout=-1, text=True)
    agent.stdin.write(lines)
    agent.stdin.flush()
    # The conversation stays open until all requests are answered, because its end interrupts an operation.
    first, second, third = (json.loads(agent.stdout.readline()) for _ in asked)
    agent.communicate(timeout=20)
    assert agent.returncode == 0
    assert first == {"op": "no-such", "unknown": True}
    assert second == {"op": None, "failed": "KeyError: 'op'"}
    assert (third["op"], third["number"]) == ("counters", 7)
    assert set(third["counters"]) >= {"lo.rx_packets", "lo.tx_packets", "lo.rx_dropped"}


# ---- settings -------------------------------------------------------------------------------------------------

FORWARD, TTL = "/proc/sys/net/ipv4/ip_forward", "/proc/sys/net/ipv4/ip_default_ttl"


def test_settings_are_restored_to_their_first_values() -> None:
    kernel = FakeKernel()
    kernel.files |= {FORWARD: "1", TTL: "64"}
    loader = KINDS["sysctl"].loader(kernel)
    loader.calls("a.sysctl", "# mine\n; too\n\nnet.ipv4.ip_forward = 1\nnet.no.such.setting=1\n", each=False)
    kernel.files[FORWARD] = "0"
    loader.calls("a.sysctl", "net.ipv4.ip_forward=0\n- net/ipv4/ip_default_ttl = 3\n", each=False)
    loader.undo(True)
    assert kernel.written == {FORWARD: "1", TTL: "64"}
    kernel.written.clear()
    loader.undo(True)
    assert kernel.written == {}


@pytest.mark.parametrize(("key", "error"), [("net.ipv4", IsADirectoryError), ("net.ipv4.route.flush", PermissionError)])
def test_a_setting_that_could_not_be_restored_is_refused(key: str, error: type[OSError]) -> None:
    """A folder, and a write-only setting."""

    class Unreadable(FakeKernel):
        def exists(self, path: str) -> bool:
            return True

        def read(self, path: str) -> str:
            raise error(path)

    with pytest.raises(Refusal, match=rf"x\.sysctl: {key} cannot be read, so it could not be restored"):
        KINDS["sysctl"].loader(Unreadable()).calls("x.sysctl", f"{key}=1\n", each=False)
