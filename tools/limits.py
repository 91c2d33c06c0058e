# SPDX-License-Identifier: GPL-2.0-or-later
"""The limits that the code applies, as tables for the pages.

They are read from the modules that apply them, so a page cannot name another number than the one in force.
"""

from fwlab.dut.agent_protocol import POLICY
from fwlab.generator.frame_table import MAX_FRAMES
from fwlab.generator.tcp_config import SYSCTLS
from fwlab.generator.tcp_endpoints import RTO_MIN_BACKGROUND_S, RTO_MIN_S
from fwlab.generator.trex.astf import MAX_OPEN
from fwlab.judge import conduct, verdicts
from fwlab.judge.clocks import MAX_INTERVAL, MAX_SPREAD
from fwlab.judge.statistics import CONFIDENCE, min_values
from fwlab.measure.calibration import MAX_DAYS
from fwlab.measure.session import EXERCISE_S, TRIALS_IF_APART
from fwlab.metrics import (
    call_stacks,
    capacity,
    connection_rate,
    delivery,
    latency,
    offered_load,
    plays,
    state_table,
    survival,
    throughput,
)
from fwlab.model.declared_traffic import Connections
from fwlab.rulesets import files
from fwlab.rulesets.kinds import limits as ruleset_limits
from fwlab.testbed.kinds.virtual import CLOSED_LOOP, OPEN_LOOP
from fwlab.traffic.frame_loop import TABLE_FRAMES
from tools.markdown import block, table

#: One row of a table of limits: what is limited, and the limit with its unit.
Row = tuple[str, str]


def limits(topic: str) -> str:
    """The limits of one topic as a table. Raises KeyError for an unknown topic."""
    rows = {
        "trials": _trials,
        "delivery": _delivery,
        "load dependence": _load_dependence,
        "connections": _connections,
        "states": _states,
        "survival": _survival,
        "throughput": _throughput,
        "real testbed": _real_testbed,
        "profile": _profile,
        "traffic": _traffic,
        "submissions": _submissions,
    }[topic]()
    return block(table(("limit", "value:"), rows))


def _trials() -> list[Row]:
    return [
        ("Throttle levels: the DUT's share of real time", _list([_percent(level.share) for level in OPEN_LOOP])),
        ("CPU slice at each throttled level", _list([_ms(level.run_s) for level in OPEN_LOOP[1:]])),
        ("Idle time in a trial, at most", _percent(capacity.MAX_IDLE)),
        ("CPU time for other work in a trial, at most", _percent(capacity.MAX_OTHER)),
        ("The same, for kernel threads that take an equal share of every trial", _percent(POLICY["max_own_share"])),
        ("Unsaturated trials before the next level, per trial wanted", f"more than {capacity.IDLE_AT_A_LEVEL}"),
        ("Packets that the sink may send back", _percent(capacity.MAX_REPLIED)),
        ("Spread that repeats a measurement", _above(capacity.USUAL_SPREAD)),
        ("Spread that makes a verdict inconclusive, unless the interval is short", _above(MAX_SPREAD)),
        ("Trials of the second measurement after such a spread", str(TRIALS_IF_APART)),
        ("Time for one exercise", f"{EXERCISE_S:g} s"),
    ]


def _delivery() -> list[Row]:
    shares = _list([f"1/{round(1 / share)}" for share in delivery.LIGHT])
    return [
        ("Packets played before the flood, and again after it", _number(delivery.FIRST_PACKETS)),
        ("Light loads tried, as shares of the rate that the DUT carried", shares),
        ("Packets lost between DUT and sink, at most", _number(plays.STRAY)),
    ]


def _load_dependence() -> list[Row]:
    stray = f"{conduct.STRAY} packets and {_percent(conduct.STRAY_SHARE)} of the class"
    both = f"{_percent(conduct.SYSTEMATIC)} and {conduct.DEVIATIONS:g} standard deviations"
    state = f"{_percent(conduct.SYSTEMATIC_OF_STATE)} and as many"
    return [
        ("Difference between flood and light load, at most", both),
        ("The same in an exercise about connection tracking", state),
        ("Packets that may pass in the flood of a class that is blocked at a light load", stray),
        ("Packets that the sink may miss in the flood, where it counts", _percent(conduct.MISSED)),
    ]


def _connections() -> list[Row]:
    return [
        ("Concurrent connections, unless `lab.yml` says otherwise", str(Connections().concurrent)),
        ("Throttle levels: the DUT's share of real time", _list([_percent(level.share) for level in CLOSED_LOOP])),
        ("CPU slice", _ms(CLOSED_LOOP[0].run_s)),
        ("Packets in a trial on both links, at least", _number(connection_rate.MIN_PACKETS)),
        ("Idle time in a trial, at most", _percent(connection_rate.MAX_IDLE_LOOP)),
        ("CPU time for other work in a trial, at most", _percent(connection_rate.MAX_OTHER_LOOP)),
        ("Difference between the clients' count and the DUT's, at most", _percent(connection_rate.MAX_APART)),
        ("Retransmitted segments per connection, wrk", f"at most {_percent(connection_rate.MAX_RETRANSMITTED['wrk'])}"),
        (
            "Retransmitted segments per connection, TRex",
            f"at most {_percent(connection_rate.MAX_RETRANSMITTED['trex'])}",
        ),
        ("Concurrent connections of TRex on the virtual testbed, at most", str(MAX_OPEN)),
        ("Minimum retransmission timeout, of SYNs, too (wrk)", f"{RTO_MIN_S:g} s"),
        ("Minimum retransmission timeout with background traffic (wrk)", f"{RTO_MIN_BACKGROUND_S:g} s"),
    ]


def _states() -> list[Row]:
    return [
        ("Load, as a share of the rate that the DUT carried", _percent(state_table.LOADS[0])),
        ("Packets lost before the DUT that cause another play", _above(state_table.PLAYED_AGAIN)),
        ("Plays after the first, at most", str(len(state_table.LOADS) - 1)),
        ("Packets still missing that make the count doubtful", _above(state_table.MAX_LOST)),
    ]


def _survival() -> list[Row]:
    return [
        ("Packets of the class in a trial, at least", str(survival.IN_A_TRIAL)),
        ("Length of a trial for that, at most", f"{survival.MAX_TRIAL_S:g} s of the DUT's clock"),
        ("On the host's clock: length of the play that counts a class, receive rings, at least", str(survival.RINGS)),
        ("Packets of the class in it", f"{survival.MIN_OF_CLASS} to {survival.MAX_OF_CLASS}"),
        ("Standard deviation that ends it", f"{survival.CHANCE:g}"),
        ("Its duration, at most", f"{survival.MAX_S:g} s"),
        ("Share that the sink must count of what the DUT sent", f"{_percent(survival.KEPT_UP)}"),
        ("Packets of the class that the DUT must take", f"at least {survival.MIN_TAKEN}"),
    ]


def _throughput() -> list[Row]:
    loads = _list([f"{share * 100:.0f} %" for share in throughput.CURVE_SHARES])
    host, own = offered_load.BY_HOST_CLOCK, offered_load.BY_DUT_CLOCK
    return [
        ("Loss in a trial, at most: NDR and PDR", f"{_percent(offered_load.NDR)} and {_percent(offered_load.PDR)}"),
        ("Distance of the two bounds, at most", f"{_percent(own.width)}; on the host's clock {_percent(host.width)}"),
        ("Duration of a trial", f"{own.trial_s:g} s of the reference CPU; on the host's clock {host.trial_s:g} s"),
        (
            "Trials that decide about a load, all together",
            f"{own.decided_s:g} s; on the host's clock {host.decided_s:g} s",
        ),
        ("Share of them that may lose more", _percent(offered_load.MAY_EXCEED)),
        ("Highest load, as a share of what the DUT processes", f"{offered_load.OF_PROCESSED:.0%}"),
        ("The same on the host's clock, of what the generator sends flat out", _percent(offered_load.OF_CEILING)),
        ("Lowest load", f"{throughput.MIN_PPS:g} pps"),
        ("Time for a search", f"{offered_load.BUDGET_S:g} s"),
        ("Trials flat out", str(offered_load.FLAT_OUT_TRIALS)),
        ("Their duration", f"{own.flat_out_s:g} s of the reference CPU; on the host's clock {host.flat_out_s:g} s"),
        ("Loads of the frame loss curve after that", loads),
        ("Trials without loss that end the curve", str(throughput.WITHOUT_LOSS)),
        ("Probes of latency at each load, and time between two", f"{latency.PROBES}, {latency.INTERVAL_S * 1e3:g} ms"),
    ]


def _real_testbed() -> list[Row]:
    return [
        ("Rounds of a case and its baseline, at least", str(min_values())),
        ("Probability with which the interval holds the median", f"at least {_percent(CONFIDENCE)}"),
        ("Length of the interval, as a share of the median, at most", _percent(MAX_INTERVAL)),
        ("Share of the generator's ceiling above which a figure is inconclusive", _percent(verdicts.NEAR_CEILING)),
        ("Age of a calibration, at most", f"{MAX_DAYS} days"),
    ]


def _profile() -> list[Row]:
    rates = call_stacks.RATES
    return [
        ("Sampling rates at once", str(len(rates))),
        ("Lowest and highest rate (all are primes)", f"{min(rates)} and {max(rates)} per second"),
        ("Duration, by the DUT's clock", f"{call_stacks.SECONDS:g} s"),
    ]


def _traffic() -> list[Row]:
    low, high = SYSCTLS["generator"]["net.ipv4.ip_local_port_range"].split()
    return [
        ("Frames in a table", _number(TABLE_FRAMES)),
        ("Frames in a table for a case with `state_packets`", _number(MAX_FRAMES)),
        ("Source ports of TCP clients", f"{low} to {high}"),
        ("Minimum retransmission timeout", f"{RTO_MIN_S:g} s; {RTO_MIN_BACKGROUND_S:g} s with background traffic"),
        ("Load of a run with `also: [delivered]`", f"{_percent(connection_rate.LIGHT)} of the flat-out rate"),
    ]


def _submissions() -> list[Row]:
    return [
        ("Files in an exercise", str(files.MAX_FILES)),
        ("Size of a file", _mib(files.MAX_FILE_BYTES)),
        ("Size of all files of an exercise", _mib(files.MAX_SUM_BYTES)),
        ("Memory of a set, hash or queue", _mib(ruleset_limits.MAX_BYTES)),
        ("Entries of a set", _number(ruleset_limits.MAX_ENTRIES)),
        ("Packets in a queue", _number(ruleset_limits.MAX_QUEUED)),
        ("Rules that one packet may traverse", _number(ruleset_limits.MAX_RULES)),
        ("Time for one exercise", f"{EXERCISE_S:g} s"),
    ]


def _percent(share: float) -> str:
    return f"{share * 100:g} %"


def _above(share: float) -> str:
    return f"above {_percent(share)}"


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:g} ms"


def _mib(size: int) -> str:
    return f"{size >> 20} MiB"


def _number(value: int) -> str:
    return f"{value:,}".replace(",", " ")


def _list(values: list[str]) -> str:
    return ", ".join(values)
