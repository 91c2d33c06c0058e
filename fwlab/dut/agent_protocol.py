# SPDX-License-Identifier: GPL-2.0-or-later
"""What a DUT's agent answers, by operation, and the terms on which it measures trials: the same on every system.

The agent for Linux is checked against these types by mypy, and whatever an agent answers by the host, on arrival.
"""

from typing import Any, NotRequired

from typing_extensions import TypedDict  # pydantic validates no other on Python 3.11


class TrialTerms(TypedDict):
    """How trials are measured: what a measurement chooses.

    windows      how many valid trials are wanted
    window_s     minimum length in seconds of the DUT's clock ...
    packets      ... and in packets
    idle_share   a trial with a larger share of idle time is unsaturated
    other_share  a saturated one in which anything but packets used a larger share of the CPU is perturbed
    max_unsaturated  give up after more unsaturated trials than this
    settle_s     seconds of the DUT's clock under load before the first trial
    """

    windows: int
    window_s: float
    packets: int
    idle_share: float
    other_share: float
    max_unsaturated: int
    settle_s: NotRequired[float]


class Terms(TrialTerms):
    """All terms of trials, with the policy that sorts them (linux/agent/trials.py, trials.lua).

    max_length       maximum length of a trial, as a multiple of window_s, however few packets arrive
    max_idle         largest idle share of a trial that goes on after window_s because too few packets have come
    max_perturbed    give up after more perturbed trials than this for each wanted one
    max_busy, max_busy_for_each  give up once programs (not kernel threads) perturbed more trials than the first, and
                 than the second for each valid one: somebody is logged in, and more trials would not help

    A kernel thread that works for the packets, such as one that expires states, perturbs every trial alike. If no trial
    is valid after `own_work_after` perturbed ones for each wanted trial, those count as valid whose share of other work
    is within other_share of the median, provided that they are more than half.
    max_own_share    largest share of the CPU that such work may take. 2.8 % was seen; more is a disturbance, however
                     similar the trials are.
    """

    max_length: int
    max_idle: float
    max_perturbed: int
    max_busy: int
    max_busy_for_each: int
    own_work_after: int
    max_own_share: float


#: What no measurement sets otherwise. An agent is sent this with the rest of the terms, and has no constants.
POLICY = {
    "max_length": 20,
    "max_idle": 0.5,
    "max_perturbed": 5,
    "max_busy": 8,
    "max_busy_for_each": 2,
    "own_work_after": 2,
    "max_own_share": 0.1,
}


class TrialCounts(TypedDict):
    """One trial, as the agent counted it. Times are in nanoseconds.

    duration_ns   of the DUT's clock; on FreeBSD, of the CPU without the agent's share
    idle_ns       of these, how long the CPU was idle; of several CPUs, the busiest
    other_ns      how long anything but packets and the agent ran
    counts        what each counter of each link has counted: {"eth0.rx_packets": ...}
    programs_ns   of other_ns, programs without kernel threads; known of a perturbed trial
    instructions  that all CPUs retired; None without a counter
    number        its place among all trials, from 0; on Linux
    clock_ns      of the DUT's clock, the agent's share included; on FreeBSD
    """

    duration_ns: int
    idle_ns: int
    other_ns: int
    counts: dict[str, int]
    programs_ns: NotRequired[int]
    instructions: NotRequired[int | None]
    number: NotRequired[int]
    clock_ns: NotRequired[int]


class Trials(TypedDict):
    """measure: the trials by kind, as Terms defines them.

    cpu_ns  how long each program and each [kernel thread] ran around the perturbed trials
    """

    valid: list[TrialCounts]
    unsaturated: list[TrialCounts]
    perturbed: list[TrialCounts]
    cpu_ns: dict[str, int]


class SystemFacts(TypedDict):
    """What a DUT is.

    packet_sockets  how many programs read packets from its links
    nics            models that its kernel can drive; FreeBSD names none
    """

    kernel: str
    cmdline: str
    clocksource: str
    cpus: int
    image: dict[str, Any]
    packet_sockets: int
    nics: NotRequired[list[str]]


class Facts(TypedDict):
    """facts. The first call after a boot records the start state."""

    facts: SystemFacts


class Reset(TypedDict):
    """reset: the modules that could not be unloaded, and other differences from the start state, one line each."""

    stuck_modules: list[str]
    differences: list[str]


class Loaded(TypedDict):
    """load: the busy seconds of each file, each time; or the tool's message, and nothing is loaded."""

    seconds: NotRequired[list[list[float]]]
    refused: NotRequired[str]


class Confirmed(TypedDict):
    """confirm: whether the host could always be reached. If not, the ruleset was undone."""

    reached: bool


class Entries(TypedDict):
    """entries: rules and addresses that a passing packet can meet, by kind."""

    entries: dict[str, int]


class TableStates(TypedDict):
    """The connection table: the fields of fwlab.model.trial.States, without `played`."""

    held: int
    most: int
    buckets: int
    object_bytes: int
    slab_bytes: int
    bucket_bytes: int


class States(TypedDict):
    """states."""

    states: TableStates


class Forgotten(TypedDict):
    """forget_states, count_flows: False if there is no table."""

    emptied: bool


class Flows(TypedDict):
    """flows: the text of /proc/net/nf_conntrack, compressed (zlib) and in base64."""

    packed: str


class Blackhole(TypedDict):
    """blackhole: False if a ruleset has a queue there already."""

    added: bool


class Counters(TypedDict):
    """counters, drain: packets and bytes since boot, and packets that Linux's own sending queues have dropped."""

    counters: dict[str, int]
    queue_drops: NotRequired[int]


class Sampled(TypedDict):
    """What passed while the profiler sampled."""

    duration_ns: int
    counts: dict[str, int]


class Recorded(TypedDict):
    """record_stacks."""

    recorded: Sampled


class Stacks(TypedDict):
    """read_stacks: samples by call stack, "program;outermost function;…;innermost function"."""

    stacks: dict[str, int]


class Functions(TypedDict):
    """functions: the function of the kernel that each address lies in."""

    functions: list[str]


class Done(TypedDict):
    """The answer of every other operation."""
