# SPDX-License-Identifier: GPL-2.0-or-later
"""The agent of a FreeBSD DUT: how it samples call stacks with DTrace."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.fake_freebsd import lua, output, recorded, session
from tests.fakes.programs import needs
from tests.unit.dut.test_freebsd_agent import system

pytestmark = needs("lua5.4")

OUTPUT, MESSAGES = "/var/run/fwlab-stacks", "/var/run/fwlab-stacks.err"
RATES = [211, 227]
START = {"op": "prepare_stacks", "rates": RATES}


def folded(text: str) -> dict[str, int]:
    code = 'print(require("json").encode(require("stacks").fold([==[\n%s]==])))'
    return dict(json.loads(lua(code % text)))


def dut(says: str, alive: int = 0, loaded_before: int = 0, **fields: Any) -> dict[str, Any]:
    """A DUT on which dtrace is process 4711 and writes `says`."""
    commands = {
        "/sbin/kldload sdt": output("", loaded_before),
        "/sbin/kldload profile": output(""),
        "/sbin/kldunload sdt": output(""),
        "/sbin/kldunload profile": [*output("busy", 1), *output("")],
        "/sbin/sysctl kern.dtrace.profile.aframes=0": output(""),
        "/bin/kill -0 4711": output("", alive),
        "/bin/kill -TERM 4711": output(""),
        "/bin/kill -KILL 4711": output(""),
    }
    return {**system(**commands), "written_by_background": {OUTPUT: says}, **fields}


def test_the_timers_own_frames_are_left_out() -> None:
    stacks = folded(recorded("dtrace-stacks.txt"))
    assert stacks["dd;0xffffffff809a703b;amd64_syscall;sys_write;fget_write;fget_unlocked_flags"] == 1
    read = "sys_read;dofileread;devfs_read_f;zero_read;uiomove_faultflag;copyout_nosmap_std"
    assert stacks[f"dd;0xffffffff809a703b;amd64_syscall;{read}"] == 144
    assert not any("profile_fire" in stack or "timercb" in stack for stack in stacks)


@pytest.mark.parametrize(
    ("frames", "stack"),
    [
        (["kernel`f+0x1", "kernel`g+0x2"], "p q;g;f"),  # of a kernel that leaves the timer's frames out
        (["profile.ko`profile_fire+0x1", "kernel`timercb+0x2", "kernel`Xtimerint+0x3"], "p q"),  # in user mode
        (["kernel`f+0x1", "profile.ko`profile_fire+0x1", "kernel`Xtimerint+0x3", "kernel`g+0x2"], "p q;g;f"),
        (["kernel`f+0x1", "profile.ko`profile_fire+0x1", "kernel`g+0x2"], "p q;g;profile_fire;f"),
        (["0x1234", "kernel`g"], "p q;g;[unknown]"),
    ],
)
def test_stacks_of_other_forms(frames: list[str], stack: str) -> None:
    text = "\n".join(["program p q", *frames, "count 3", ""])
    assert folded(text + text) == {stack: 6}, "equal stacks are added"


def test_each_rate_is_a_probe_of_its_own(tmp_path: Path) -> None:
    told = session(tmp_path, dut("ready\n"), [START])
    assert "failed" not in told.answers[0]
    (written,) = [line for line in told.done if line.startswith("write /var/run/fwlab-stacks.d")]
    assert "|profile-211,profile-227 /on/ { @[execname, stack(64)] = count(); }|" in written


def test_samples_are_read_once_dtrace_has_written_them(tmp_path: Path) -> None:
    told = session(tmp_path, dut("ready\n" + recorded("dtrace-stacks.txt")), [START, {"op": "read_stacks"}])
    assert sum(told.answers[1]["stacks"].values()) == 146
    ended = [line for line in told.done if "4711" in line]
    assert ended == ["run /bin/kill -TERM 4711", "run /bin/kill -KILL 4711"]


def test_a_dtrace_that_does_not_run_is_reported_in_its_words(tmp_path: Path) -> None:
    says = {OUTPUT: "", MESSAGES: "dtrace: failed to initialize dtrace: DTrace device not available\n"}
    told = session(tmp_path, dut("", alive=1, written_by_background=says), [START])
    words = "dtrace does not sample: dtrace: failed to initialize dtrace: DTrace device not available"
    assert told.answers[0]["failed"] == words


@pytest.mark.parametrize(
    ("loaded_before", "unloaded"), [(0, ["profile", "profile", "sdt"]), (1, ["profile", "profile"])]
)
def test_dtrace_and_its_modules_go_when_the_host_goes(tmp_path: Path, loaded_before: int, unloaded: list[str]) -> None:
    done = session(tmp_path, dut("ready\n", loaded_before=loaded_before), [START]).done
    assert "run /bin/kill -KILL 4711" in done
    assert [line.split()[-1] for line in done if line.startswith("run /sbin/kldunload")] == unloaded


@pytest.mark.parametrize("operation", ["record_stacks", "read_stacks"])
def test_nothing_is_read_before_dtrace_runs(tmp_path: Path, operation: str) -> None:
    told = session(tmp_path, system(), [{"op": operation, "devices": []}])
    assert told.answers[0]["failed"] == "dtrace was not started"
