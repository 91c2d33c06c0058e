# SPDX-License-Identifier: GPL-2.0-or-later
"""Results of a run: counts and conditions, complete enough to judge it again years later."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Annotated, Any, ClassVar, Final, Literal, Self, TypeVar

from pydantic import SerializerFunctionWrapHandler, model_serializer, model_validator

from fwlab.model.benchmarks import Benchmarks
from fwlab.model.declared import Frozen
from fwlab.model.metric import MAIN_METRIC, MetricName
from fwlab.model.trial import Clients, Counts, Delivery, PacedPlay, States, TcpTrial, Tracked, Trial


class CpuSettings(Frozen):
    """As a run found them.

    governors    of the CPUs' frequency, each once; empty if the host scales none
    mitigations  by vulnerability, as the kernel says it; those that do not affect the CPU are left out
    smt          on, off, forceoff, notsupported or notimplemented; empty if unknown
    pinning      by node, the CPUs that its virtual CPUs may run on, such as "2" or "0-3"
    """

    governors: list[str] = []
    mitigations: dict[str, str] = {}
    smt: str = ""
    pinning: dict[str, str] = {}


FORMAT: Final = "fwlab-run/1"
Accelerator = Literal["tcg", "kvm"]
#: What the DUT's clock counts.
Clock = Literal["instructions", "host"]
#: Which absolute ranges judge a testbed's figures: those that hold on every host (`virtual` in ranges.yml), those of
#: the host's class (`hosts`), or none, which leaves the ratios.
AbsoluteRanges = Literal["portable", "host_class", "none"]


class HostFacts(Frozen):
    """The machine below the nodes. Nothing that names a person or a place.

    host_class    the class of hosts whose absolute ranges apply
    ceiling_pps   what the generator sends at most on this host, by its calibration
    cpu_settings  where the DUT's clock is the host's
    """

    cpu: str
    cores: int
    memory_mib: int
    os: str
    kernel: str
    qemu: str
    libvirt: str
    load_average: float
    host_class: str | None = None
    ceiling_pps: float | None = None
    cpu_settings: CpuSettings | None = None


class ModelledCore(Frozen, extra="allow"):
    """The core that a run was modelled on. Its parameters are those of whatever modelled it."""

    name: str
    title: str


class TestbedFacts(Frozen):
    """The machines as they were made.

    forced  the user named the testbed
    boxes   by role
    ranges  the absolute ranges that apply
    core    the core that the trials were modelled on; written only if there was one
    """

    __test__ = False  # not a test case, whatever pytest thinks of the name

    name: str
    accelerator: Accelerator
    clock: Clock
    ns_per_instruction: int | None
    forced: bool
    link: str
    engine: str
    boxes: dict[str, str] = {}
    note: str = ""
    ranges: AbsoluteRanges = "none"
    core: ModelledCore | None = None

    @model_serializer(mode="wrap")
    def _without_a_core(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        data: dict[str, Any] = handler(self)
        if self.core is None:
            data.pop("core", None)
        return data


class DutFacts(Frozen):
    """The DUT of a run: kernel release, command line, clock source, its image's manifest, its system, its CPUs,
    and the models of NIC that it has in addition to the usual one, as far as its kernel drives them."""

    kernel: str
    cmdline: str
    clocksource: str
    image: dict[str, Any]
    system: str = "linux"
    cpus: int = 1
    nics: list[str] = []

    @property
    def kernel_configuration(self) -> str:
        """The kernel's configuration if its image names one that is not its makers' (GENERIC), else nothing.

        An official image of FreeBSD has a GENERIC kernel. Any other was built by hand.
        """
        if self.system != "freebsd":
            return ""
        *_, ident = str(self.image.get("kernel_package") or "GENERIC").split()
        return "" if ident == "GENERIC" else ident


class Merge(Enum):
    """How a field of a part takes what a later one found, where its type does not say it."""

    ADD = "add"
    HIGHEST = "highest"
    NEW = "new"


Count = Annotated[int, Merge.ADD]
Highest = Annotated[int, Merge.HIGHEST]
#: Each of them once.
Reasons = Annotated[list[str], Merge.NEW]


class Part(Frozen):
    """What one step of a measurement found.

    Two parts of one type merge field by field: lists and mappings are extended, counts added, other values replaced;
    what the later one does not say, or says None of, stays. A metric with a count of its own declares a part for it:
    a result keeps it under `key`, which is the metric's name.
    """

    key: ClassVar[str] = ""

    def merged(self, later: Part) -> Self:
        """This part and a later one of its type, or of one that it extends."""
        names = [name for name in type(later).model_fields if name in later.model_fields_set]
        return self.model_copy(update={name: self._both(name, getattr(later, name)) for name in names})

    def _both(self, name: str, new: Any) -> Any:
        before, how = getattr(self, name), type(self).model_fields[name].metadata
        if new is None:
            return before
        if Merge.ADD in how:
            return before + new
        if Merge.HIGHEST in how:
            return max(before, new)
        if Merge.NEW in how:
            return list(dict.fromkeys([*before, *new]))
        if isinstance(before, list):
            return [*before, *new]
        return {**before, **new} if isinstance(before, dict) else new


P = TypeVar("P", bound=Part)


class Subject(Frozen):
    """What is measured.

    victim_class  the class that survival is about
    total_load  as a multiple of the baseline's capacity
    """

    id: str
    title: str
    ruleset: str
    ruleset_hash: str
    parameters: dict[str, int | float | str] = {}
    traffic: str | None = None
    metric: MetricName = MAIN_METRIC
    also: list[MetricName] = []
    victim_class: str | None = None
    total_load: float | None = None


class Loading(Part):
    """The ruleset on the DUT.

    loads    seconds of busy DUT time, for each time that the whole ruleset was loaded
    entries  rules that a packet can meet, and addresses in sets and maps
    """

    loads: list[float] = []
    entries: int | None = None


class Overload(Part):
    """Trials in which the DUT had more to do than it can.

    tcp       trials with TCP connections
    flood     what became of the packets that the DUT received during the flood of `trials`
    generator_sent, generator_pps  what the generator sent, and how fast
    idle_trials  trials left out because the DUT was idle at times
    perturbed_trials  trials left out because non-packet work ran on the DUT
    perturbed_by  what that was: by program or [kernel thread], its share of the CPU time that packets did not take
    throttle_level  of the trials (0: none)
    unsaturated  why the DUT was not saturated, where only figures that need it are in doubt; written only if it was not
    """

    trials: list[Trial] = []
    tcp: list[TcpTrial] = []
    flood: Delivery | None = None
    generator_sent: int | None = None
    generator_pps: float | None = None
    idle_trials: Count = 0
    perturbed_trials: Count = 0
    perturbed_by: dict[str, float] = {}
    throttle_level: Highest = 0
    unsaturated: Reasons = []


class Deliveries(Part):
    """What became of counted packets and connections.

    deliveries  at a light load: a few before the flood, the same after it, and more
    filled    of the packets that filled the table of connections; written only if that was asked for
    returned  what the DUT sent back by its first link (`sent_on`), at a light load
    survivals  at the load of the case
    paced     plays at a load that the DUT's own clock paced; written only if there are any
    clients   what the clients counted, run by run
    """

    deliveries: list[Delivery] = []
    filled: Delivery | None = None
    returned: list[Delivery] = []
    survivals: list[Delivery] = []
    paced: list[PacedPlay] = []
    clients: list[Clients] = []


class StateTable(Part):
    """The DUT's connection table, and who is in it."""

    states: States | None = None
    tracked_packets: Tracked | None = None


class Profile(Part):
    """Where the DUT's time goes.

    stacks    samples of the DUT under load by call stack, outermost function first, joined by semicolons
    functions  what a model of a core counted in these trials, by function; written only if it was asked for
    """

    stacks: dict[str, int] = {}
    functions: dict[str, Counts] = {}


class AtLoads(Part):
    """Trials at offered loads; written only if there are any."""

    benchmarks: Benchmarks | None = None


class Values(Part):
    """Values of metrics that have no field of their own, by the metric's name; written only if there are any."""

    extra: dict[str, list[float]] = {}


class Differences(Part):
    """Packets that become something else than with other rules; written only if that was asked for.

    words  of each, on one line: what differs, the conversation, and what decided
    """

    key: ClassVar[str] = "differences"
    words: list[str] = []


class Trouble(Part):
    """What went wrong.

    problems  why a figure cannot be trusted; any makes the verdict inconclusive, unless the ruleset is to blame
    suspects  those of the problems that a ruleset may cause; written only if there are any
    refused   the tool's error text, if it rejected the ruleset
    lost      why the DUT stopped answering while this ruleset was loaded, for each attempt
    """

    problems: Reasons = []
    suspects: Reasons = []
    refused: str | None = None
    lost: list[str] = []


#: What results that were published earlier call fields of today.
FORMER_NAMES = {
    "disturbed_by": "perturbed_by",
    "disturbed_trials": "perturbed_trials",
    "measured_again": "remeasured_because",
    "offered": "total_load",
    "slowed": "throttle_level",
    "tracked": "victim_class",
}


class Measured(Trouble, Values, AtLoads, Profile, StateTable, Deliveries, Overload, Loading, Subject):
    """The result of one case or exercise: every trial, every loading, every count. It never changes.

    wall_s    seconds that it took
    remeasured_because  why an earlier measurement was discarded; empty if there was none
    remarks   what to say of a student's ruleset with the verdict; written only if there is anything
    fine_without  it was in doubt twice, and in between nothing was without the ruleset; written only if so
    interleaved  the case whose trials alternated with this one's; written only if there is one
    counts    parts that metrics declare themselves, by key; written only if there are any
    """

    wall_s: float = 0.0
    remeasured_because: list[str] = []
    remarks: list[str] = []
    fine_without: bool = False
    interleaved: Measured | None = None
    counts: dict[str, dict[str, Any]] = {}

    @model_validator(mode="before")
    @classmethod
    def _with_todays_names(cls, data: Any) -> Any:
        return {FORMER_NAMES.get(name, name): value for name, value in data.items()} if isinstance(data, dict) else data

    @model_serializer(mode="wrap")
    def _without_what_is_rare(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        data: dict[str, Any] = handler(self)
        rare = {"benchmarks", "counts", "extra", "filled", "functions", "paced", "remarks", "unsaturated"}
        for name in (*rare, "fine_without", "interleaved", "suspects"):
            if not getattr(self, name):
                data.pop(name, None)
        return data

    @property
    def metrics(self) -> list[str]:
        """The names of all metrics that it was measured for, the main one first."""
        return [self.metric, *self.also]

    def joined(self, later: Measured) -> Measured:
        """This result with the trials of a later round of the same measurement, and with what went wrong in it.

        The first round alone counts for everything else, such as loads and deliveries.
        """
        trials = Overload(
            trials=later.trials,
            tcp=later.tcp,
            idle_trials=later.idle_trials,
            perturbed_trials=later.perturbed_trials,
            perturbed_by=later.perturbed_by,
            throttle_level=later.throttle_level,
            unsaturated=later.unsaturated,
        )
        trouble = Trouble(problems=later.problems, suspects=later.suspects, refused=later.refused, lost=later.lost)
        joined = self.plus(trials, Deliveries(paced=later.paced, clients=later.clients), trouble)
        return joined.model_copy(update={"wall_s": round(self.wall_s + later.wall_s, 1)})

    def hindered(self, problems: Sequence[str]) -> Measured:
        """This result and these problems, which a ruleset may cause."""
        return self.plus(Trouble(problems=list(problems), suspects=list(problems)))

    def troubled(self, problems: Sequence[str]) -> Measured:
        """This result and these problems."""
        return self.plus(Trouble(problems=list(problems)))

    def plus(self, *found: Part) -> Measured:
        """This result and these parts."""
        result = self
        for part in found:
            if isinstance(result, type(part)):
                result = result.merged(part)
            else:
                before = result.part(type(part))
                whole = part if before is None else before.merged(part)
                counts = {**result.counts, part.key: whole.model_dump(mode="json")}
                result = result.model_copy(update={"counts": counts})
        return result

    def part(self, kind: type[P]) -> P | None:
        """What a metric's own steps found; None if they were not taken."""
        return kind.model_validate(self.counts[kind.key]) if kind.key in self.counts else None


class Conditions(Frozen):
    """Where figures come from.

    commit  of the checkout, 12 digits; with a plus sign if files differed from it, "unknown" outside git
    trees   git's hashes in that commit, by path: of the lab, and of what measures
    boxes   by role, the box of each machine, whose name ends with its key
    """

    started: str
    commit: str
    trees: dict[str, str] = {}
    boxes: dict[str, str] = {}
    fwlab: str
    seed: int
    host: HostFacts
    testbed: TestbedFacts
    dut: DutFacts


class AddedCases(Conditions):
    """Under which conditions cases were measured that joined a published run later."""

    cases: list[str]


class Run(Conditions, frozen=False):
    """One session with one lab.

    added  of a published run: the cases that are from other sessions, the oldest session first
    """

    format: Literal["fwlab-run/1"] = FORMAT
    lab: str
    added: list[AddedCases] = []
    cases: list[Measured] = []
    exercises: list[Measured] = []
    predictions: dict[str, float] = {}

    def case(self, case_id: str) -> Measured | None:
        """The result of this case; None if the run has none."""
        return next((c for c in self.cases if c.id == case_id), None)
