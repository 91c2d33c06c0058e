# SPDX-License-Identifier: GPL-2.0-or-later
"""Trials under overload on a FreeBSD DUT: what is counted, in CPU time, and which trials are valid."""

from __future__ import annotations

import gzip
import re
import struct
from pathlib import Path
from typing import Any

import pytest

from fwlab.dut.agent_protocol import POLICY
from fwlab.dut.conversation import AgentConversation
from fwlab.dut.freebsd.client import FreeBsdDut
from tests.fakes.fake_freebsd import RECORDED, Told, lua, output, process, recorded, session
from tests.fakes.programs import needs

pytestmark = needs("lua5.4")

CLOCK = "kern.timecounter.tc.HPET"
AGENT = 99
READ = (
    "/sbin/sysctl -b kern.timecounter.tc.HPET.counter dev.vtnet.0.rxq0.iqdrops dev.vtnet.0.rxq0.ibytes "
    "dev.vtnet.0.rxq0.ipackets dev.vtnet.0.txq0.opackets kern.proc.all kern.timecounter.tc.HPET.counter"
)
PROGRAM = "/var/run/fwlab-rtprio-thread"
WANTED = {
    "op": "measure",
    "devices": ["vtnet0"],
    "windows": 2,
    "window_s": 0.1,
    "packets": 640,
    "idle_share": 0.0005,
    "other_share": 0.005,
    "max_unsaturated": 2,
    "settle_s": 0.02,
    "begun": 64,
    "patience_s": 5,
    **POLICY,
}


class Machine:
    """A DUT at one moment after the other."""

    def __init__(self) -> None:
        self.at = dict.fromkeys(("ticks", "packets", "kernel", "intr", "idle", "pf purge", "cron", "agent"), 0)
        self.looks: list[dict[str, str]] = []
        self.host = True
        self.ended = 0

    def after(self, took: int = 500, **passed: int) -> Machine:
        """One snapshot more, this much later: microseconds of the clock and of processes, and packets.

        took  ticks from the beginning of the reading to its end
        """
        for name, more in passed.items():
            self.at[name.replace("_", " ")] += more
        self.at["ticks"] += 100 * sum(v for name, v in passed.items() if name not in ("packets", "ended"))
        at = self.at
        counters = [0, at["packets"] * 60, at["packets"], at["packets"] // 2]
        table = [
            process(0, "kernel", 599, thread="thread taskq", parent=0, kernel=True),
            process(0, "kernel", at["kernel"], thread="vtnet0 rxq 0", number=100029, parent=0, kernel=True),
            process(11, "idle", at["idle"], parent=0, kernel=True),
            process(12, "intr", at["intr"], thread="irq27: virtio_pci1", number=100027, parent=0, kernel=True),
            process(12, "intr", 5, thread="swi1: pf send", parent=0, kernel=True),
            process(15, "pf purge", at["pf purge"], parent=0, kernel=True),
            process(1, "init", 4, children=at["cron"]),
            process(AGENT, "flua", at["agent"] // 2, parent=98, group=90, children=at["agent"] // 2),
            process(98, "sh", 3, parent=90, group=90),
            process(150 + len(self.looks), "sysctl", 7, parent=AGENT, group=90),
            *([process(97, "cat", 3, parent=90, group=90)] if self.host else []),
        ]
        ticks = [((at["ticks"] + more) % 2**32).to_bytes(4, "little") for more in (0, took)]
        read = ticks[0] + b"".join(n.to_bytes(8, "little") for n in counters) + b"".join(table) + ticks[1]
        self.looks.append({"hex": read.hex()})
        return self

    def measured(self, folder: Path, **fields: Any) -> dict[str, Any]:
        return self.told(folder, **fields).answers[0]

    def told(self, folder: Path, **fields: Any) -> Told:
        commands = {
            "/sbin/ifconfig -a": output(""),
            "/sbin/sysctl -n kern.timecounter.hardware": output("HPET\n"),
            f"/sbin/sysctl -n {CLOCK}.frequency": output("100000000\n"),
            f"/sbin/sysctl -n {CLOCK}.mask": output("4294967295\n"),
            "/sbin/sysctl -N dev.vtnet.0": output(recorded("sysctl-vtnet-names.txt")),
            "/sbin/sysctl -n dev.vtnet.0.%parent": output("virtio_pci1\n"),
            f"/bin/chmod 700 {PROGRAM}": output(""),
            PROGRAM: output("", fields.pop("lowering", 0)),
            # Three readings tell how long one takes, and one names the threads.
            READ: [*self.looks[:1] * 4, *self.looks],
        }
        spec = {"pid": AGENT, "commands": commands, **fields.pop("spec", {})}
        return session(folder, spec, [{**WANTED, **fields}])


def flooded() -> Machine:
    """A DUT at which packets have begun to arrive."""
    return Machine().after().after(kernel=1000, packets=100)


def test_a_trial_is_the_cpu_time_of_all_but_the_agent(tmp_path: Path) -> None:
    machine = flooded()
    for _ in range(2):
        machine.after(kernel=5_000, packets=50).after(kernel=100_000, intr=40, agent=9_000, packets=3000)
    told = machine.measured(tmp_path)
    assert [len(told[kind]) for kind in ("valid", "unsaturated", "perturbed")] == [2, 0, 0]
    trial = told["valid"][0]
    assert (trial["duration_ns"], trial["idle_ns"], trial["other_ns"]) == (100_040_000, 0, 0)
    assert trial["clock_ns"] == 109_040_000
    assert trial["counts"] == {
        "vtnet0.rx_packets": 3000,
        "vtnet0.rx_bytes": 180_000,
        "vtnet0.rx_dropped": 0,
        "vtnet0.tx_packets": 1500,
    }


def test_a_trial_with_idle_time_is_unsaturated(tmp_path: Path) -> None:
    """51 µs of idle time are too much in 100 ms, 49 are not: the ticks of kern.cp_time are 7.9 ms apart."""
    machine = flooded()
    for idle in (51, 49, 0):
        machine.after(kernel=1).after(kernel=100_000, idle=idle, agent=9_000, packets=3000)
    told = machine.measured(tmp_path)
    assert [trial["idle_ns"] for trial in told["unsaturated"]] == [51_000]
    assert [trial["idle_ns"] for trial in told["valid"]] == [49_000, 0]
    assert told["valid"][0]["duration_ns"] == 100_049_000


def test_a_trial_in_which_something_else_ran_is_perturbed(tmp_path: Path) -> None:
    machine = flooded()
    machine.after().after(kernel=90_000, cron=10_000, packets=3000)
    machine.after().after(kernel=99_000, pf_purge=1_000, packets=3000)
    for _ in range(2):
        machine.after().after(kernel=100_000, agent=9_000, packets=3000)
    told = machine.measured(tmp_path)
    assert [trial["other_ns"] for trial in told["perturbed"]] == [10_000_000, 1_000_000]
    assert told["cpu_ns"] == {"init": 10_000_000, "[pf purge]": 1_000_000}
    assert len(told["valid"]) == 2


def test_a_trial_goes_on_until_there_are_enough_packets_but_not_for_ever(tmp_path: Path) -> None:
    machine = flooded().after(kernel=1)
    machine.after(kernel=100_000, packets=600).after(kernel=30_000, packets=30).after(kernel=30_000, packets=30)
    told = machine.after(kernel=1).after(kernel=2_000_001, packets=5).measured(tmp_path)
    assert [trial["counts"]["vtnet0.rx_packets"] for trial in told["valid"]] == [660, 5]


def test_a_dut_that_is_idle_most_of_the_time_waits_for_no_more_packets(tmp_path: Path) -> None:
    machine = flooded()
    for idle in (60_000, 60_000, 40_000):
        machine.after(kernel=1).after(kernel=100_000 - idle, idle=idle, packets=5)
    told = machine.after(kernel=50_000, packets=700).measured(tmp_path)
    assert [trial["counts"]["vtnet0.rx_packets"] for trial in told["unsaturated"]] == [5, 5, 705]


def test_no_packets_are_reported(tmp_path: Path) -> None:
    machine = Machine().after().after(kernel=4_000_000).after(kernel=2_000_000)
    assert machine.measured(tmp_path)["failed"] == "no packet arrived at vtnet0 within 5 s"


def test_a_measurement_ends_when_the_host_is_gone(tmp_path: Path) -> None:
    machine = flooded().after(kernel=1)
    machine.host = False
    machine.after(kernel=100_000, packets=3000)
    assert machine.measured(tmp_path)["failed"] == "the host is gone"


@pytest.mark.parametrize(
    ("first", "last", "seconds", "ns"),
    [
        (0, 10_000_000, 0, 100_000_000),
        (2**32 - 1_000_000, 9_000_000, 0, 100_000_000),
        (0, 10_000_000, 43, 43_049_672_960),  # around once: 2^32 ticks of 10 ns
        (0, 10_000_000, 42, 43_049_672_960),
        (5, 5, 86, 85_899_345_920),
    ],
)
def test_a_clock_that_begins_anew(first: int, last: int, seconds: int, ns: int) -> None:
    code = f"""
    local Snapshots = require("snapshot")
    local clock = setmetatable({{ mask = 4294967295, frequency = 100000000 }}, Snapshots)
    print(clock:between({{ ticks = {first}, seconds = 7 }}, {{ ticks = {last}, seconds = {7 + seconds} }}))
    """
    assert int(lua(code)) == ns


def test_a_reading_that_was_interrupted_is_taken_again(tmp_path: Path) -> None:
    """Packets that are handled between the counters and the times would be counted, and their time would not."""
    machine = flooded()
    for _ in range(2):
        machine.after(kernel=5_000, packets=50).after(kernel=100_000, packets=3000)
    machine.looks.insert(3, machine.after(took=11_500_000, kernel=115_000, packets=9000).looks.pop())
    told = machine.measured(tmp_path)
    assert [trial["counts"]["vtnet0.rx_packets"] for trial in told["valid"]] == [3000, 3000]


def test_the_threads_that_handle_packets_give_way_once(tmp_path: Path) -> None:
    machine = flooded()
    for _ in range(2):
        machine.after(kernel=5_000, packets=50).after(kernel=100_000, packets=3000)
    done = machine.told(tmp_path).done
    assert done.count(f"run {PROGRAM}") == 2  # of vtnet0: its interrupt and its receive queue
    told = flooded().measured(tmp_path, lowering=3)
    assert re.fullmatch(r"the priority of the thread .* cannot be lowered \(error 3 \)", told["failed"])


def test_a_recorded_half_second(tmp_path: Path) -> None:
    """Some 4500 packets a second, all blocked. Their 29 ms are those of one interrupt thread; the rest is idle."""
    looks = [gzip.decompress((RECORDED / f"snapshot-{number}.gz").read_bytes()) for number in (1, 2)]
    code = f"""
    local Snapshots = require("snapshot")
    local function unhex(text) return (text:gsub("%x%x", function(byte) return string.char(tonumber(byte, 16)) end)) end
    local first = Snapshots.processes(unhex("{looks[0].hex()}"), 37)
    local last = Snapshots.processes(unhex("{looks[1].hex()}"), 37)
    local system = {{ output = function() return "virtio_pci1\\n" end }}
    local threads = require("priority").threads(system, last, {{ "vtnet0" }})
    local names = {{}}
    for name, number in pairs(threads) do names[#names + 1] = name .. "=" .. number end
    table.sort(names)
    print(table.concat(names, ", "))
    local used = require("cpu_time").between({{ processes = first }}, {{ processes = last }}, 2756, threads)
    print(used.served, used.idle, used.other, used.programs)
    """
    threads, times = lua(code).splitlines()
    assert threads == (
        "irq26: virtio_pci1=100026, irq27: virtio_pci1=100027, irq28: virtio_pci1=100028, "
        "vtnet0 rxq 0=100029, vtnet0 txq 0=100030"
    )
    assert times.split() == ["29307000", "472709000", "2359000", "0"]
    packets = [struct.unpack_from("<Q", look, 20)[0] for look in looks]
    assert packets[1] - packets[0] == 2240


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    machine = Machine().after()
    assert machine.measured(tmp_path, devices=["em0"])["failed"] == (
        "em0: no such link, or its driver does not count packets"
    )
    machine.looks = [{"hex": machine.looks[0]["hex"][:-2]}]
    assert "kern.proc.all has another form" in machine.measured(tmp_path)["failed"]


def test_the_host_gets_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    trial = {"duration_ns": 100_040_000, "clock_ns": 1, "idle_ns": 40_000, "other_ns": 0}
    counts = {"vtnet0.rx_packets": 3000, "vtnet1.rx_packets": 1, "vtnet1.tx_packets": 2999}
    answer = {"valid": [{**trial, "counts": counts}], "unsaturated": [], "perturbed": [], "cpu_ns": {}}
    monkeypatch.setattr(AgentConversation, "receive", lambda *_: answer)
    dut = FreeBsdDut(None, ["vtnet0", "vtnet1"])  # type: ignore[arg-type]
    (got,) = dut.collect(timeout=1).valid
    assert (got.processed, got.forwarded, got.duration_s, got.busy_s) == (3000, 2999, 0.10004, 0.1)
    assert dut.collect_by_link(timeout=1).valid[0].packets == [3000, 1]
