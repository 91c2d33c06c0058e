# SPDX-License-Identifier: GPL-2.0-or-later
"""Numbers inside a page's sentences. Each is followed by a comment that names the function that computes it:

    The second rule costs 349<!-- = each("ports-iptables-1500", "ports-iptables-0", 100) --> instructions.

The functions are the methods of Numbers, and for guides/own.md those of OwnPrices. The number keeps its decimal places.
"""

import math
import re
from pathlib import Path

from fwlab_coresim.functions import function_costs

from fwlab.checkout.project import find_project
from fwlab.judge.statistics import Figure, figure
from fwlab.measure.saved_runs import load_run
from fwlab.metrics.registry import METRICS
from fwlab.model.benchmarks import TrialResult
from fwlab.model.errors import BadInput
from fwlab.model.results import Measured, Run
from fwlab.report.model import build_model
from tools.calls import call, methods
from tools.core_ratios import modelled_cases
from tools.figures import Median, medians, profiled, published_runs
from tools.own_prices import OwnPrices

_NUMBER = re.compile(r"(?P<number>\d+(?:\.(?P<decimals>\d+))?)(?P<comment><!-- = (?P<call>[^\n]+?) -->)")
#: The page whose numbers come from results/own.
OWN = "own.md"
#: What a wrong call raises.
_FAULTS = (ArithmeticError, LookupError, StopIteration, TypeError, ValueError)


def with_numbers(text: str, page: Path) -> str:
    """The page with these numbers renewed. Raises BadInput, naming the call, if one cannot be computed."""
    if not _NUMBER.search(text):
        return text
    functions = methods(OwnPrices() if page.name == OWN else Numbers(str(page)))

    def computed(found: re.Match[str]) -> str:
        try:
            value = call(found["call"], functions)
        except _FAULTS as error:
            message = f"{page.name}: {found['call']}: {error}"
            raise BadInput(message, f"correct the comment in {page.name}") from error
        return f"{value:.{len(found['decimals'] or '')}f}{found['comment']}"

    return _NUMBER.sub(computed, text)


class Numbers:
    """From the published runs of the lab whose page it is. Cases, sweeps and crossovers are named by their ids.

    `less` is the case whose cost is subtracted, `base` the one that a figure is divided by. A cost is in instructions
    per packet or connection, which are nanoseconds of the reference CPU.
    """

    def __init__(self, page: str) -> None:
        self._lab, self._runs = published_runs(page)
        self._page = page

    def median(self, case: str) -> float:
        """In the unit of the case's metric: pps, connections per second, a share, bytes, seconds."""
        return self._of("")(case)

    def milliseconds(self, case: str) -> float:
        """Of a load time or an update."""
        return 1e3 * self.median(case)

    def kpps(self, case: str) -> float:
        """Thousand packets per second."""
        return self.median(case) / 1e3

    def frmol(self, case: str) -> float:
        """Thousand packets per second that are forwarded at the maximum offered load."""
        return self._of("frmol")(case) / 1e3

    def forwarded_at(self, case: str, times: float) -> float:
        """Thousand packets per second that are forwarded when this multiple of FRMOL is offered."""
        trial = self._offered(case, times)
        return trial.arrived / trial.duration_s / 1e3

    def busy_at(self, case: str, times: float) -> float:
        """Per cent of the time that the DUT is busy when this multiple of FRMOL is offered."""
        share = self._offered(case, times).busy_share
        if share is None:
            raise ValueError(f"{case}: the run does not record how busy the DUT was")
        return 100 * share

    def mbit(self, case: str, size: int) -> float:
        """Mbit/s, for frames of `size` bytes."""
        return self.kpps(case) * size * 8 / 1000

    def percent(self, case: str) -> float:
        """A share in per cent."""
        return 100 * self.median(case)

    def tenths(self, case: str) -> float:
        """A share in tenths: how many of ten places are reached."""
        return 10 * self.median(case)

    def forwarded(self, case: str) -> float:
        """Per cent of the packets that the case's trials processed."""
        trials = self._measured(case).trials
        return 100.0 * sum(trial.forwarded for trial in trials) / sum(trial.processed for trial in trials)

    def cost(self, case: str) -> float:
        """Instructions."""
        median = self.median(case)
        return median if METRICS[self._lab.cases[case].metric].unit == "instructions" else 1e9 / median

    def thousands(self, case: str) -> float:
        """The cost in thousand instructions."""
        return self.cost(case) / 1000

    def more(self, case: str, less: str) -> float:
        """What a case costs more than another."""
        return self.cost(case) - self.cost(less)

    def thousands_more(self, case: str, less: str) -> float:
        """The same in thousand instructions."""
        return self.more(case, less) / 1000

    def each(self, case: str, less: str, count: int) -> float:
        """What each of the `count` rules, entries or bytes costs by which the cases differ."""
        return self.more(case, less) / count

    def percent_more_cycles(self, core: str, case: str, base: str) -> float:
        """By how many per cent it takes more cycles of a modelled core."""
        cases = modelled_cases(find_project(), self._lab.id)[core]
        return 100 * (cases[case].cycles / cases[base].cycles - 1)

    def executed(self, result: str, case: str, function: str) -> float:
        """Instructions per packet in this function of the kernel, by a profile on a modelled core in results/LAB."""
        run = self._result(result)
        costs = function_costs(next(one for one in run.cases if one.id == case), run.testbed)
        return next(one.instructions for one in costs if one.name == function)

    def percent_each(self, case: str, less: str, count: int, base: str) -> float:
        """The same in per cent of what `base` costs."""
        return 100 * self.each(case, less, count) / self.cost(base)

    def percent_dearer(self, case: str, base: str) -> float:
        """By how many per cent it costs more."""
        return 100 * self.more(case, base) / self.cost(base)

    def times(self, case: str, less: str, other: str, other_less: str) -> float:
        """What one thing costs, as a multiple of what another costs."""
        return self.more(case, less) / self.more(other, other_less)

    def break_even(self, case: str, less: str, longer: str, shorter: str, count: int) -> float:
        """How many rules cost what `case` costs more than `less`; `longer` has `count` rules more than `shorter`."""
        return self.more(case, less) / self.each(longer, shorter, count)

    def budget(self, case: str, attack: float) -> float:
        """What a packet of the attack may cost if it is to fill the DUT at this multiple of the case's capacity."""
        return self.cost(case) / attack

    def attacked(self, case: str, alone: str, drop: str) -> float:
        """Per cent of its time that the DUT spends on the packets of an attack alongside connections.

        Those are the packets that it received beyond what a connection has `alone`; each costs what `drop` costs.
        """
        both = (self._measured(one).tcp for one in (case, alone))
        with_attack, without = (sum(t.packets for t in tcp) / sum(t.completed for t in tcp) for tcp in both)
        return 100 * self.median(case) * (with_attack - without) * self.cost(drop) / 1e9

    def withstands(self, case: str, drop: str, stream: float) -> float:
        """Computed: the attack that leaves time for a stream; both are multiples of the case's capacity."""
        return (1 - stream) * self.cost(case) / self.cost(drop)

    def rate(self, case: str, *classes: str) -> float:
        """Packets of these classes, or all, that a play of the case offers in a second of the DUT's clock."""
        play = self._measured(case).paced[0]
        if not classes:
            return play.load
        seconds = sum(trial.duration_s for trial in play.trials)
        return sum(trial.offered[name] for trial in play.trials for name in classes) / seconds

    def own_pass(self, case: str, own: str, forged: str, sources: int, tokens: float) -> float:
        """Computed: per cent of the sources' own packets that pass a token bucket of this rate for each source.

        Packets forged in their names come at equal distances and take tokens, too.
        """
        if self.rate(case, own, forged) <= tokens * sources:
            return 100
        return 100 * tokens * sources / (2 * self.rate(case, forged))

    def forged_pass(self, case: str, own: str, forged: str, sources: int, tokens: float) -> float:
        """The same of the forged packets: they take the tokens that are left."""
        if self.rate(case, own, forged) <= tokens * sources:
            return 100
        taken = self.own_pass(case, own, forged, sources, tokens) / 100 * self.rate(case, own)
        return 100 * (tokens * sources - taken) / self.rate(case, forged)

    def tokens_pass(self, case: str, name: str, tokens: float) -> float:
        """Computed: per cent of the packets of a class that this many tokens a second let pass."""
        return min(100.0, 100 * tokens / self.rate(case, name))

    def connection(self, new: str, known: str, known_tcp: str, tracked: str, routing: str, packets: int) -> float:
        """Thousand instructions of conntrack for a TCP connection: an entry, and a lookup for each further packet."""
        lookup = self.more(tracked, routing) + self.more(known_tcp, known)
        return (self.more(new, known) + (packets - 1) * lookup) / 1000

    def break_even_merged(self, case: str, less: str, lab: str, longer: str, shorter: str, count: int) -> float:
        """`break_even` if fifteen packets of sixteen are spared the rules, which two cases of another lab price."""
        return self.more(case, less) / (15 / 16 * self.each_in(lab, longer, shorter, count))

    def more_in(self, lab: str, case: str, less: str) -> float:
        """The same in another lab."""
        return self._other(lab).more(case, less)

    def each_in(self, lab: str, case: str, less: str, count: int) -> float:
        """What each of the `count` rules or entries costs by which two cases of another lab differ."""
        return self._other(lab).each(case, less, count)

    def break_even_in(self, lab: str, case: str, less: str, longer: str, shorter: str, count: int) -> float:
        """`break_even` by the figures of another lab."""
        return self._other(lab).break_even(case, less, longer, shorter, count)

    def cost_in(self, lab: str, case: str) -> float:
        """What a case of another lab costs."""
        return self._other(lab).cost(case)

    def graded(self, result: str, ruleset: str) -> float:
        """Thousand packets per second of an exercise's ruleset, EXERCISE/start for example, in results/LAB/RESULT."""
        return self._figure(*self._graded(result, ruleset)).median / 1e3

    def graded_connections(self, result: str, ruleset: str) -> float:
        """Connections per second of an exercise's ruleset. As `graded`."""
        run, measured = self._graded(result, ruleset)
        return self._figure(run, measured, "connections").median

    def graded_each(self, result: str, ruleset: str, base: str, count: int) -> float:
        """What each of the `count` rules costs by which two rulesets of exercises differ. As `graded`."""
        return (1e6 / self.graded(result, ruleset) - 1e6 / self.graded(result, base)) / count

    def held(self, result: str, ruleset: str) -> float:
        """Tracked connections after the exercise's traffic. As `graded`."""
        states = self._graded(result, ruleset)[1].states
        if states is None:
            raise ValueError(f"no table of connections was counted with {ruleset}")
        return states.held

    def admitted(self, result: str, ruleset: str, name: str) -> float:
        """Per cent of the packets of this class that arrived while the table was filled. As `graded`."""
        filled = self._graded(result, ruleset)[1].filled
        if filled is None:
            raise ValueError(f"no packets of classes were counted with {ruleset}")
        return 100 * filled.arrived[name] / filled.offered[name]

    def graded_percent(self, result: str, ruleset: str) -> float:
        """Per cent of the packets of an exercise's ruleset that pass. As `graded`."""
        run, measured = self._graded(result, ruleset)
        return 100 * self._figure(run, measured, "passed").median

    def other_packets(self, result: str, ruleset: str, base: str, share: float) -> float:
        """What the other packets of an exercise cost, if this share costs what `base` costs. As `graded`."""
        return (1e6 / self.graded(result, ruleset) - share * self.cost(base)) / (1 - share)

    def kpps_in(self, result: str, case: str) -> float:
        """Thousand packets per second of a case in results/LAB/RESULT."""
        run = self._result(result)
        return self._figure(run, next(one for one in run.cases if one.id == case)).median / 1e3

    def median_in(self, result: str, case: str) -> float:
        """The figure of a case in results/LAB/RESULT, in the unit of the metric that it was measured for."""
        run = self._result(result)
        measured = next(one for one in run.cases if one.id == case)
        return self._figure(run, measured, measured.metric).median

    def percent_off(self, result: str, nic: str) -> float:
        """By how many per cent capacities over this NIC in results/LAB/RESULT differ from the published, at most."""
        run = self._result(result)
        cases = [one for one in run.cases if (self._lab.cases[one.id].nic or "virtio") == nic]
        off = (self._figure(run, one).median / self.median(one.id) - 1 for one in cases)
        return 100 * max(map(abs, off))

    def percent_apart(self, result: str, case: str) -> float:
        """The spread of this case's trials in results/LAB/RESULT, in per cent."""
        run = self._result(result)
        return 100 * self._figure(run, next(one for one in run.cases if one.id == case)).spread

    def mixed(self, case: str, other: str, percent: float) -> float:
        """Computed thousand packets per second if this percentage of the packets cost what `other` costs."""
        return 1e6 / (self.cost(case) + percent / 100 * self.more(other, case))

    def sampled(self, case: str, *functions: str) -> float:
        """Per cent of the samples of `fwlab profile` that are in one of these functions, or below one."""
        stacks = profiled(self._lab.id, case)[1].stacks
        inside = sum(count for stack, count in stacks.items() if set(functions) & set(stack.split(";")))
        return 100 * inside / sum(stacks.values())

    def taken(self, case: str, *functions: str) -> float:
        """Instructions that a packet takes in these functions and below them, by the same samples."""
        return self.sampled(case, *functions) * self.cost(case) / 100

    def newcomers(self, entries: int, buckets: int) -> float:
        """Computed per cent of the newcomers that find an entry to replace in a full table of conntrack."""
        return 100 * (1 - math.exp(-16 * entries / buckets))

    def minutes(self, system: str = "linux") -> float:
        """How long the published cases of a system took to measure, with machines that were up."""
        runs = [run for run in self._runs if run.dut.system == system]
        return sum(measured.wall_s for run in runs for measured in run.cases) / 60

    def lowest(self, sweep: str) -> float:
        """Cost of a sweep's cheapest case."""
        return min(self._costs(sweep))

    def highest(self, sweep: str) -> float:
        """Cost of its most expensive case."""
        return max(self._costs(sweep))

    def ratio(self, case: str, base: str) -> float:
        """Of the medians."""
        return self.median(case) / self.median(base)

    def percent_of(self, case: str, base: str) -> float:
        """The ratio in per cent."""
        return 100 * self.ratio(case, base)

    def percent_more(self, case: str, base: str) -> float:
        """By how many per cent the median is higher."""
        return 100 * (self.ratio(case, base) - 1)

    def percent_less(self, case: str, base: str) -> float:
        """By how many per cent it is lower."""
        return 100 * (1 - self.ratio(case, base))

    def percent_below(self, case: str, base: str, published: float) -> float:
        """By how many per cent the ratio is lower than a published one."""
        return 100 * (1 - self.ratio(case, base) / published)

    def memory_each(self, case: str, count: int) -> float:
        """Bytes of kernel memory for each of `count` rules or entries."""
        return self.median(case) / count

    def memory_more_each(self, case: str, less: str, count: int) -> float:
        """The same for the entries by which two cases differ."""
        return (self.median(case) - self.median(less)) / count

    def state_bytes(self, case: str) -> float:
        """Bytes of kernel memory for each tracked connection."""
        return self._of("state_bytes")(case)

    def load_ratio(self, case: str, base: str) -> float:
        """How many times as long it takes to load the ruleset."""
        load = self._of("load_time")
        return load(case) / load(base)

    def load_each(self, case: str, count: int) -> float:
        """Milliseconds of load time for each of `count` commands."""
        return 1e3 * self._of("load_time")(case) / count

    def crossover(self, crossover: str) -> float:
        """The parameter at which the faster sweep overtakes the slower one."""
        model = build_model(self._lab, self._runs[0], self._runs[1:])
        return next(found.value for found in model.crossovers if found.id == crossover) or math.nan

    def _measured(self, case: str) -> Measured:
        return next(found for run in self._runs if (found := run.case(case)))

    def _offered(self, case: str, times: float) -> TrialResult:
        """The trial of the frame loss curve with this multiple of FRMOL. Raises StopIteration if there is none."""
        found = self._measured(case)
        offered = 1e3 * self.frmol(case) * times
        curve = found.benchmarks.curve if found.benchmarks else ()
        return next(one for one in curve if math.isclose(one.intended_load or 0, offered, rel_tol=0.01))

    def _result(self, result: str) -> Run:
        return load_run(find_project().root / "results" / self._lab.id / result, self._lab.id)

    def _graded(self, result: str, ruleset: str) -> tuple[Run, Measured]:
        run = self._result(result)
        return run, next(one for one in run.exercises if one.ruleset == ruleset)

    def _figure(self, run: Run, measured: Measured, metric: str = "capacity") -> Figure:
        found = figure(measured, METRICS[metric], run.testbed)
        if found is None:
            raise ValueError(f"no {metric} of {measured.id}")
        return found

    def _other(self, lab: str) -> "Numbers":
        return Numbers(str(Path(self._page).resolve().parent.parent / lab / "README.md"))

    def _of(self, metric: str) -> Median:
        return medians(self._page, self._lab, self._runs, metric)

    def _costs(self, sweep: str) -> list[float]:
        cases = {found.id: found.cases() for found in self._lab.sweeps}[sweep]
        return [self.cost(case.id) for case in cases]
