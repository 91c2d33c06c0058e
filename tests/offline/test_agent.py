# SPDX-License-Identifier: GPL-2.0-or-later
"""What the DUT's agent decides by itself: how a file is split, what a refusal leaves behind.

What touches the DUT's kernel is replaced here; the parcel that the agent travels in is run as the DUT runs it.
"""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from fwlab.dut.linux.agent import loading, start_state
from fwlab.dut.linux.agent.kernel import Refusal
from fwlab.dut.linux.zipapp import agent_parcel


@pytest.fixture(autouse=True)
def nothing_changed_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    """The agent remembers what it has changed; here it begins anew for every test."""
    monkeypatch.setattr(start_state, "changed_sysctls", {})
    monkeypatch.setattr(start_state, "noted", {})
    monkeypatch.setattr(loading, "cut_off", [])


@pytest.fixture
def parcel(tmp_path: Path) -> Path:
    path = tmp_path / "agent.pyz"
    path.write_bytes(agent_parcel())
    return path


def test_it_needs_nothing_but_the_standard_library(parcel: Path) -> None:
    """The DUT has Python, and nothing of this project but what travels in the parcel."""
    script = f"import runpy, sys; runpy.run_path({str(parcel)!r}, run_name='__main__'); print(*sys.modules)"
    argv = [sys.executable, "-I", "-S", "-c", script]
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)
    imported = set(done.stdout.split())
    assert "fwlab.dut.linux.agent.rpc" in imported
    assert not {name.split(".")[0] for name in imported} - set(sys.stdlib_module_names) - {"__main__", "fwlab"}
    agent = "fwlab.dut.linux.agent"
    assert not {name for name in imported if name.startswith("fwlab") and not f"{name}.".startswith(f"{agent}.")} - {
        "fwlab",
        "fwlab.dut",
        "fwlab.dut.linux",
    }


# ---- loading one by one ---------------------------------------------------------------------------------------


def test_iptables_rules_go_to_the_table_above_them() -> None:
    text = """# blacklist
*raw
:PREROUTING ACCEPT [0:0]
-A PREROUTING -s 198.18.20.66 -j DROP
COMMIT

*filter
-A FORWARD -m comment --comment "two words" -j ACCEPT
COMMIT
"""
    assert list(loading.commands("iptables", text)) == [
        ["iptables-legacy", "-t", "raw", "-A", "PREROUTING", "-s", "198.18.20.66", "-j", "DROP"],
        ["iptables-legacy", "-t", "filter", "-A", "FORWARD", "-m", "comment", "--comment", "two words", "-j", "ACCEPT"],
    ]
    assert [argv[0] for argv in loading.commands("iptables-nft", text)] == ["iptables-nft"] * 2


def test_ipset_lines_are_its_arguments() -> None:
    text = "create blacklist hash:ip maxelem 4\n\n# one\nadd blacklist 198.18.64.1\n"
    assert list(loading.commands("ipset", text)) == [
        ["ipset", "create", "blacklist", "hash:ip", "maxelem", "4"],
        ["ipset", "add", "blacklist", "198.18.64.1"],
    ]


def test_nft_lines_stay_whole() -> None:
    text = "add table ip t\n  add rule ip t c ip saddr 198.18.64.1 drop\n# end\n"
    assert list(loading.commands("nft", text)) == [
        ["nft", "add table ip t"],
        ["nft", "add rule ip t c ip saddr 198.18.64.1 drop"],
    ]


def test_no_line_reaches_a_shell() -> None:
    """What a shell would run is an argument like any other."""
    for kind in ("iptables", "ipset", "nft"):
        (argv,) = loading.commands(kind, "add x; $(reboot) `reboot` | reboot\n")
        assert argv[0] in ("iptables-legacy", "ipset", "nft")
        assert "reboot" in " ".join(argv[1:])


@pytest.mark.parametrize("kind", ["tc", "sysctl", "conf"])
def test_other_files_are_loaded_whole_only(kind: str) -> None:
    with pytest.raises(Refusal, match=f"a .{kind} file can only be loaded whole"):
        list(loading.commands(kind, "qdisc add dev eth0 clsact\n"))


# ---- refusals -------------------------------------------------------------------------------------------------


def packed(text: str, kind: str = "nft") -> dict[str, str]:
    return {"name": f"rules.{kind}", "kind": kind, "packed": base64.b64encode(zlib.compress(text.encode())).decode()}


@pytest.fixture
def on_no_dut(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Nothing is flushed or timed; says what would have been done."""
    done: list[str] = []
    monkeypatch.setattr(start_state, "reset", lambda _request: done.append("reset"))
    monkeypatch.setattr(start_state, "flush", lambda: done.append("flush"))
    monkeypatch.setattr(loading, "busy_clock", iter(range(1000)).__next__)
    monkeypatch.setattr(loading, "TOOLS", {"nft": ["sh", "-c", "cat >/dev/null"], "ipset": ["sh", "-c", REFUSING]})
    return done


REFUSING = "echo 'line 1: no such set' >&2; exit 3"


def test_refusal_is_in_the_tools_own_words_and_leaves_the_start_state(on_no_dut: list[str]) -> None:
    answer = loading.load({"files": [packed("table ip t {}"), packed("add x 1", "ipset")]})
    assert answer == {"refused": "rules.ipset: sh said (exit 3): line 1: no such set"}
    assert on_no_dut == ["reset"]


def test_file_that_this_dut_has_no_tool_for(on_no_dut: list[str]) -> None:
    answer = loading.load({"files": [packed("pass all", "conf")]})
    assert answer == {"refused": "rules.conf: this DUT has no tool for .conf"}
    assert on_no_dut == ["reset"]


def test_loading_again_begins_with_nothing_loaded(on_no_dut: list[str]) -> None:
    answer = loading.load({"files": [packed("table ip t {}")], "times": 3})
    assert answer == {"seconds": [[1], [1], [1]]}
    assert on_no_dut == ["flush", "flush"]


def test_a_host_that_cannot_be_reached_is_told_so_once() -> None:
    loading.cut_off.append(True)
    assert loading.confirm({}) == {"reached": False}
    assert loading.confirm({}) == {"reached": True}


@pytest.mark.parametrize("tool", ["printf 'element \\303' >&2; exit 1", "printf 'a\\377b'; exit 1"])
def test_a_message_that_is_cut_in_the_middle_of_a_letter(
    tool: str, on_no_dut: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """ipset does so with long names; the agent died of it."""
    monkeypatch.setattr(loading, "TOOLS", {"nft": ["sh", "-c", tool]})
    answer = loading.load({"files": [packed("table ip t {}")]})
    assert answer["refused"].startswith("rules.nft: sh said (exit 1): ")
    assert "\N{REPLACEMENT CHARACTER}" in answer["refused"]
    assert on_no_dut == ["reset"]


def test_a_tool_that_cannot_be_run_refuses_the_file(on_no_dut: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "TOOLS", {"nft": ["/no/such/tool"]})
    answer = loading.load({"files": [packed("table ip t {}")]})
    assert answer["refused"].startswith("FileNotFoundError: ")
    assert on_no_dut == ["reset"]


def test_wrong_request_does_not_end_the_agent(parcel: Path) -> None:
    asked = [{"op": "no-such"}, {"no": "op"}, {"op": "sample", "devices": ["lo"]}]
    lines = "".join(json.dumps(request) + "\n" for request in asked)
    agent = subprocess.Popen([sys.executable, parcel], stdin=-1, stdout=-1, text=True)
    agent.stdin.write(lines)
    agent.stdin.flush()
    # The conversation stays open until all is answered: its end breaks off what is being done.
    first, second, third = (json.loads(agent.stdout.readline()) for _ in asked)
    agent.communicate(timeout=20)
    assert agent.returncode == 0
    assert first == {"failed": "KeyError: 'no-such'"}
    assert second == {"failed": "KeyError: 'op'"}
    assert set(third) >= {"lo.rx_packets", "lo.tx_packets", "lo.rx_dropped"}


# ---- settings -------------------------------------------------------------------------------------------------


def test_settings_are_remembered_as_they_were_first(monkeypatch: pytest.MonkeyPatch) -> None:
    forward, ttl = "/proc/sys/net/ipv4/ip_forward", "/proc/sys/net/ipv4/ip_default_ttl"
    before = {path: Path(path).read_text() for path in (forward, ttl)}
    start_state.remember_sysctls("a.sysctl", "# mine\n; too\n\nnet.ipv4.ip_forward = 1\nnet.no.such.setting=1\n")
    start_state.changed_sysctls[forward] = "as it was first"
    start_state.remember_sysctls("a.sysctl", "net.ipv4.ip_forward=0\n- net/ipv4/ip_default_ttl = 3\n")
    assert start_state.changed_sysctls == {forward: "as it was first", ttl: before[ttl]}


@pytest.mark.parametrize("key", ["net.ipv4", "net.ipv4.route.flush"])
def test_a_setting_that_could_not_be_put_back_is_refused(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder, and a setting that can only be written."""

    def read(path: str) -> str:
        raise IsADirectoryError(path) if key == "net.ipv4" else PermissionError(path)

    monkeypatch.setattr(start_state, "read", read)
    monkeypatch.setattr(start_state.os.path, "exists", lambda _path: True)
    with pytest.raises(Refusal, match=f"x.sysctl: {key} cannot be read, so it could not be put back"):
        start_state.remember_sysctls("x.sysctl", f"{key}=1\n")
