# SPDX-License-Identifier: GPL-2.0-or-later
"""Results of a run: counts and conditions, complete enough to judge it again years later."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal

from pydantic import SerializerFunctionWrapHandler, model_serializer, model_validator

from fwlab.model.benchmarks import Benchmarks
from fwlab.model.cpu_settings import CpuSettings
from fwlab.model.declared import Frozen
from fwlab.model.metric import MetricName
from fwlab.model.paced import PacedPlay
from fwlab.model.trial import Clients, Counts, Delivery, States, TcpTrial, Trial

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
    ranges  the absolute ranges that apply; results from before this field say it by name and accelerator
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

    @model_validator(mode="before")
    @classmethod
    def _ranges_of_older_results(cls, data: object) -> object:
        if not isinstance(data, dict) or "ranges" in data:
            return data
        real = "host_class" if data.get("accelerator") == "kvm" else "none"
        return {**data, "ranges": "portable" if data.get("name") == "virtual" else real}


class DutFacts(Frozen):
    """The DUT of a run: kernel release, command line, clock source, its image's manifest, its system, its CPUs,
    and the models of NIC that it has beside the usual one, as far as its kernel drives them."""

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


class Measured(Frozen):
    """The result of one case or exercise: every trial, every loading, every count. It never changes.

    deliveries  what became of counted packets at a light load: a few before the flood, the same after it, and more
    flood     what became of the packets that the DUT received during the flood of `trials`
    filled    what became of the packets that filled the table of connections; written only if that was asked for
    returned  what the DUT sent back by its first link (`sent_on`), at a light load
    lost      why the DUT stopped answering while this ruleset was loaded, for each attempt
    tcp       trials with TCP connections; `clients` is what the clients counted, run by run
    tracked   the class that survival is about; `offered` the load, as a multiple of the baseline's capacity
    stacks    samples of the DUT under load by call stack, outermost function first, joined by semicolons
    functions  what a model of a core counted in these trials, by function; written only if it was asked for
    loads     seconds of busy DUT time, for each time that the whole ruleset was loaded
    disturbed_trials  trials left out because something else than packets ran on the DUT
    disturbed_by  what that was: by program or [kernel thread], its share of the CPU time that packets did not take
    idle_trials  trials left out because the DUT was idle at times
    slowed    the throttle level of the trials (0: none)
    measured_again  why an earlier measurement was discarded; empty if there was none
    beside    a case that was measured in turns with this one, round by round; written only if there is one
    paced     plays at a load that the DUT's own clock paced; written only if there are any
    benchmarks  trials at offered loads; written only if there are any
    extra     values of metrics that have no field of their own, by the metric's name; written only if there are any
    unsaturated  why the DUT was not saturated, where only figures that need it are in doubt; written only if it was not
    remarks   what to say of a student's ruleset beside the verdict; written only if there is anything
    problems  why a figure cannot be trusted; any makes the verdict inconclusive, unless the ruleset is to blame
    suspects  those of the problems that a ruleset may cause; written only if there are any
    fine_without  it was in doubt twice, and in between nothing was without the ruleset; written only if so
    """

    id: str
    title: str
    ruleset: str
    ruleset_hash: str
    parameters: dict[str, int | float | str] = {}
    traffic: str | None = None
    metric: MetricName = "capacity"
    also: list[MetricName] = []
    trials: list[Trial] = []
    loads: list[float] = []
    deliveries: list[Delivery] = []
    flood: Delivery | None = None
    filled: Delivery | None = None
    returned: list[Delivery] = []
    survivals: list[Delivery] = []
    tracked: str | None = None
    tcp: list[TcpTrial] = []
    clients: list[Clients] = []
    states: States | None = None
    stacks: dict[str, int] = {}
    functions: dict[str, Counts] = {}
    entries: int | None = None
    offered: float | None = None
    generator_sent: int | None = None
    generator_pps: float | None = None
    idle_trials: int = 0
    disturbed_trials: int = 0
    disturbed_by: dict[str, float] = {}
    slowed: int = 0
    wall_s: float = 0.0
    measured_again: list[str] = []
    unsaturated: list[str] = []
    remarks: list[str] = []
    problems: list[str] = []
    suspects: list[str] = []
    fine_without: bool = False
    refused: str | None = None
    lost: list[str] = []
    beside: Measured | None = None
    paced: list[PacedPlay] = []
    benchmarks: Benchmarks | None = None
    extra: dict[str, list[float]] = {}

    @model_serializer(mode="wrap")
    def _without_what_is_rare(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        data: dict[str, Any] = handler(self)
        rare = {"beside", "benchmarks", "extra", "filled", "functions", "paced", "remarks", "unsaturated"}
        for name in (*rare, "fine_without", "suspects"):
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
        return self.plus(
            trials=later.trials,
            paced=later.paced,
            tcp=later.tcp,
            clients=later.clients,
            idle_trials=self.idle_trials + later.idle_trials,
            disturbed_trials=self.disturbed_trials + later.disturbed_trials,
            disturbed_by=later.disturbed_by,
            slowed=max(self.slowed, later.slowed),
            wall_s=round(self.wall_s + later.wall_s, 1),
            unsaturated=[reason for reason in later.unsaturated if reason not in self.unsaturated],
            problems=[problem for problem in later.problems if problem not in self.problems],
            suspects=[suspect for suspect in later.suspects if suspect not in self.suspects],
            refused=later.refused,
            lost=later.lost,
        )

    def hindered(self, problems: Sequence[str]) -> Measured:
        """This result and these problems, which a ruleset may cause."""
        return self.plus(problems=problems, suspects=problems)

    def plus(self, **found: Any) -> Measured:
        """This result and these fields: lists and mappings are extended, other values replaced, None left out."""
        update: dict[str, Any] = {}
        for name, new in found.items():
            before = getattr(self, name)
            if isinstance(before, list) and new is not None:
                update[name] = [*before, *new]
            elif isinstance(before, dict) and new is not None:
                update[name] = {**before, **new}
            elif new is not None:
                update[name] = new
        return self.model_copy(update=update)


class Run(Frozen, frozen=False):
    """One session with one lab."""

    format: Literal["fwlab-run/1"] = FORMAT
    lab: str
    started: str
    commit: str
    fwlab: str
    seed: int
    host: HostFacts
    testbed: TestbedFacts
    dut: DutFacts
    cases: list[Measured] = []
    exercises: list[Measured] = []
    predictions: dict[str, float] = {}

    def case(self, case_id: str) -> Measured | None:
        """The result of this case; None if the run has none."""
        return next((c for c in self.cases if c.id == case_id), None)
