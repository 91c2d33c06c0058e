# SPDX-License-Identifier: GPL-2.0-or-later
"""The agent of a FreeBSD DUT: how it loads a pf.conf and takes it away, and how it talks with the host."""

import json
from pathlib import Path
from typing import Any

import pytest

from fwlab.dut.conversation import AgentConversation
from fwlab.dut.freebsd.client import FreeBsdDut, agent_program
from fwlab.model.errors import CannotMeasure, Refused
from fwlab.model.ruleset import RulesetFile
from tests.fakes.fake_freebsd import lua, output, process, recorded, session
from tests.fakes.programs import needs

pytestmark = needs("lua5.4")

FILE = "/var/run/fwlab-pf.conf"
LOAD = f"/usr/sbin/rtprio -t /sbin/pfctl -f {FILE}"
CLOCK = "kern.timecounter.tc.HPET"
READ = f"/sbin/sysctl -b {CLOCK}.counter kern.proc.all {CLOCK}.counter"
IFCONFIG = recorded("ifconfig.txt")
#: What pfctl shows, by its words, on a DUT without a ruleset.
EMPTY = dict.fromkeys(("nat", "rules", "Tables", "states", "memory", "timeouts"), "")


def look(ran_us: int, idle_us: int, ticks: int) -> dict[str, str]:
    """One snapshot without links: the clock and the processes."""
    table = process(0, "kernel", ran_us, parent=0, kernel=True) + process(11, "idle", idle_us, parent=0, kernel=True)
    clock = [(ticks + more).to_bytes(4, "little") for more in (0, 500)]
    return {"hex": (clock[0] + table + clock[1]).hex()}


def system(**commands: Any) -> dict[str, Any]:
    """A DUT on which every command succeeds; `commands` gives other answers by the end of the command."""
    answers: dict[str, Any] = {
        "/sbin/ifconfig -a": output(IFCONFIG),
        "/sbin/ifconfig -l -u": output("vtnet0 vtnet1 vtnet2 lo0\n"),
        "/sbin/sysctl -n kern.timecounter.hardware": output("HPET\n"),
        f"/sbin/sysctl -n {CLOCK}.frequency": output("100000000\n"),
        f"/sbin/sysctl -n {CLOCK}.mask": output("4294967295\n"),
        # 20 ms between two snapshots are their own; the ruleset takes 30 ms more, 10 of them idle.
        READ: [*[look(0, 0, 0)] * 5, look(0, 0, 2_000_000), look(0, 10_000, 7_000_000)],
        "/sbin/sysctl net.inet.ip.forwarding net.inet6.ip6.forwarding net.inet.ip.redirect": output("1\n"),
        LOAD: output(""),
        "/sbin/pfctl -e": output("pf enabled\n"),
        "/sbin/pfctl -d": output("pf disabled\n"),
        "/sbin/pfctl -a * -F all": output(""),
        "/sbin/pfctl -F all": output(""),
        "/sbin/pfctl -s info": output("Status: Disabled for 0 days 00:00:01           Debug: Urgent\n"),
        "/bin/kill 4711": output(""),
        "/sbin/pfctl -v -s Anchors": output(""),
        **{f"/sbin/pfctl -s {words}": output(shown) for words, shown in EMPTY.items()},
        **commands,
    }
    return {"pid": 99, "commands": answers}


def pf(text: str, **fields: Any) -> dict[str, Any]:
    return {"op": "load", "number": 1, "files": [{"name": "pf.conf", "kind": "pf", "text": text}], **fields}


def runs(done: list[str], word: str) -> list[str]:
    return [line.removeprefix("run ").removeprefix("/sbin/") for line in done if word in line and "-s " not in line]


def test_the_program_is_one_text_whose_errors_name_the_module() -> None:
    assert lua('print(pcall(require("json").decode, "[1"))').startswith("false\tjson.lua:")
    assert b"\r" not in agent_program()


def test_a_ruleset_is_loaded_then_switched_on(tmp_path: Path) -> None:
    told = session(tmp_path, system(), [pf("block all\n")])
    assert told.answers == [{"op": "load", "number": 1, "seconds": [[0.02]]}]
    assert runs(told.done, "pfctl")[3:5] == [LOAD, "pfctl -e"]
    assert f"write {FILE} set skip on vtnet2|block all|" in told.done


def test_the_management_port_is_the_one_that_ssh_comes_in_by() -> None:
    code = """
    local Agent = require("agent")
    local system = { output = function() return [[%s]] end }
    print(Agent.management(system, "10.0.2.2 5000 198.18.0.1 22"), Agent.management(system, nil))
    """
    assert lua(code % IFCONFIG).split() == ["vtnet0", "vtnet2"]


SYNTAX = "pf.conf:2: syntax error\npf.conf:3: macro 'outside' not defined\npf.conf:3: syntax error"
NO_MEMORY = "pfctl: DIOCADDRULE: Cannot allocate memory"
CRASHED = "crashed (signal 11) without a message; it gives no line: remove statements until it loads"


@pytest.mark.parametrize(
    ("printed", "status", "words"),
    [
        (recorded("pfctl-syntax-error.txt"), 1, f"said (exit 1): {SYNTAX}"),  # by the lines of the user's file
        (
            f"No ALTQ support in kernel\nALTQ related functions disabled\n{NO_MEMORY}\n",
            1,
            f"said (exit 1): {NO_MEMORY}",
        ),
        ("", -11, CRASHED),
    ],
    ids=["syntax", "the kernel refuses", "a signal ends pfctl"],
)
def test_a_refusal_has_pfctls_words_and_is_undone(tmp_path: Path, printed: str, status: int, words: str) -> None:
    told = session(tmp_path, system(**{LOAD: output(printed, status)}), [pf("a\nb\n")])
    assert told.answers[0]["refused"] == f"pf.conf: pfctl -f {words}"
    assert runs(told.done, "pfctl -e") == []
    assert runs(told.done, "pfctl")[-3:] == ["pfctl -d", "pfctl -F all", "pfctl -a * -F all"]


def test_a_signal_that_ends_a_program_is_a_negative_status() -> None:
    code = """
    local system = require("system").new()
    for _, line in ipairs({ "exit 3", "kill -SEGV $$", "exit 0" }) do
      print(select(2, system:run("/bin/sh", "-c", line)))
    end
    """
    assert lua(code).split() == ["3", "-11", "0"]


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        (
            {"files": [{"name": "a.nft", "kind": "nft", "text": ""}]},
            "a.nft: this DUT has no tool for such a file (nft)",
        ),
        ({"each": True}, "pf.conf: such a file can only be loaded whole"),
    ],
)
def test_what_this_dut_cannot_load(tmp_path: Path, request_: dict[str, Any], said: str) -> None:
    assert session(tmp_path, system(), [pf("pass\n", **request_)]).answers[0]["refused"] == said


def test_loading_again_begins_with_nothing_loaded(tmp_path: Path) -> None:
    told = session(tmp_path, system(), [pf("pass\n", times=2)])
    done = runs(told.done, "pfctl")
    flushed = ["pfctl -d", "pfctl -F all", "pfctl -a * -F all"]
    loaded = [LOAD, "pfctl -e"]
    assert done[: 2 * 5] == [*flushed, *loaded] * 2
    assert len(told.answers[0]["seconds"]) == 2


def test_a_ruleset_is_undone_when_the_host_goes_without_a_reset(tmp_path: Path) -> None:
    assert runs(session(tmp_path, system(), [pf("pass\n")]).done, "pfctl")[-1] == "pfctl -a * -F all"
    reset = session(tmp_path, system(), [pf("pass\n"), {"op": "reset"}])
    assert runs(reset.done, "pfctl").count("pfctl -F all") == 3  # before loading, by the reset, for the record


def test_a_ruleset_that_cuts_the_host_off_is_undone_by_a_process_of_its_own(tmp_path: Path) -> None:
    words = [pf("block\n"), {"op": "confirm", "again": True}, {"op": "confirm"}, {"op": "confirm"}]
    good = session(tmp_path, system(), words)
    assert [answer.get("reached") for answer in good.answers] == [None, True, True, True]
    assert [line for line in good.done if line.startswith("background")] == [
        f"background /bin/sleep 15; : > /var/run/fwlab-cut-off; /usr/libexec/flua {tmp_path / 'agent.lua'} undo"
    ] * 2, "one after the load, one after the host's first word"
    assert good.done.count("run /bin/kill 4711") == 2

    cut_off = {**system(), "cut_off": True}
    told = session(tmp_path, cut_off, words)
    assert [answer.get("reached") for answer in told.answers] == [None, False, False, True], "it is reported once"


def test_what_differs_from_the_start_state_is_named(tmp_path: Path) -> None:
    limits = [*output("states        hard limit   100000\n"), *output("states        hard limit      500\n")]
    told = session(tmp_path, system(**{"/sbin/pfctl -s memory": limits}), [{"op": "facts"}, {"op": "reset"}])
    assert told.answers[1]["differences"] == [
        "memory + states        hard limit      500",
        "memory - states        hard limit   100000",
    ]
    assert told.answers[1]["stuck_modules"] == []


def test_an_anchor_that_is_empty_is_no_difference(tmp_path: Path) -> None:
    """pf frees it some seconds later."""
    commands = {
        "/sbin/pfctl -v -s Anchors": [*output(""), *output(recorded("pfctl-anchors.txt"))],
        "/sbin/pfctl -a outer -s rules": output(""),
        "/sbin/pfctl -a outer/inner -s rules": [*output(""), *output("block drop all\n")],
    }
    told = session(tmp_path, system(**commands), [{"op": "facts"}, {"op": "reset"}, {"op": "reset"}])
    assert [answer.get("differences") for answer in told.answers[1:]] == [[], ["Anchors + outer/inner: block drop all"]]


def test_an_unknown_operation_and_a_broken_tool_are_reported(tmp_path: Path) -> None:
    told = session(tmp_path, system(), [{"op": "dance"}, {"op": "drain", "devices": ["vtnet7"]}])
    assert told.answers[0]["unknown"]
    assert "the test did not expect" in told.answers[1]["failed"]


# ---- JSON -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        {"a": [1, -2, 2**40, 0.5, 1e-7], "b": {"c": [], "d": ""}, "e": True, "f": False},
        ['"quoted" \\ back\\\\slash \\n new\nline\ttab \x01 \x7f', "é € 😀 \\u0041 \\😀 \ud7ff"],
        [{"deep": [[[["x"]]]]}, "[1, {not: json}]", '\\"', "\\\\", "ends with a backslash\\"],
    ],
)
def test_json_survives(value: Any) -> None:
    code = 'local json = require("json")\nio.write(json.encode(json.decode([====[%s]====])))'
    for text in (json.dumps(value), json.dumps(value, ensure_ascii=False, indent=1)):
        assert json.loads(lua(code % text)) == value


def test_json_ends_where_it_should() -> None:
    for text in ('{"a" 1}', "[1 2]", '"open', "[1] 2", "nul", "{1: 2}"):
        assert lua(f'print((pcall(require("json").decode, [==[{text}]==])))').split() == ["false"]


def test_bytes_that_are_no_text_do_not_break_an_answer() -> None:
    assert lua('io.write(require("json").encode("a\\xff\\xc3b"))') == '"a??b"'


# ---- the host's client ----------------------------------------------------------------------------------------


def client(monkeypatch: pytest.MonkeyPatch, *answers: dict[str, Any]) -> tuple[FreeBsdDut, list[dict[str, Any]]]:
    """A client whose agent answers so, and what it is asked."""
    asked, left = list[dict[str, Any]](), list(answers)

    def ask(_self: AgentConversation, op: str, _answer: type, timeout: float, **fields: Any) -> dict[str, Any]:
        asked.append({"op": op, **fields})
        return left.pop(0)

    monkeypatch.setattr(AgentConversation, "ask", ask)
    return FreeBsdDut(None, ["vtnet0", "vtnet1"]), asked  # type: ignore[arg-type]


def test_a_ruleset_travels_as_text(monkeypatch: pytest.MonkeyPatch) -> None:
    dut, asked = client(monkeypatch, {"seconds": [[0.5]]}, {"reached": True}, {"reached": True})
    seconds = dut.load([RulesetFile("pf.conf", "pf", "pass\n")])
    assert asked[0]["files"] == [{"name": "pf.conf", "kind": "pf", "text": "pass\n"}]
    assert seconds == [[0.5]]
    dut, _ = client(monkeypatch, {"refused": "pf.conf: pfctl -f said (exit 1): x"})
    with pytest.raises(Refused, match="pfctl -f said"):
        dut.load([])


def test_a_reader_of_packets_on_a_link_is_named_with_freebsds_own_tool(monkeypatch: pytest.MonkeyPatch) -> None:
    dut, _ = client(monkeypatch, {"facts": {"packet_sockets": 1}})
    with pytest.raises(CannotMeasure) as caught:
        dut.facts()
    assert caught.value.hint == "on the DUT: `netstat -B` names it; or `vagrant reload LAB`"
