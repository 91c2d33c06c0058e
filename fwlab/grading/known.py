# SPDX-License-Identifier: GPL-2.0-or-later
"""What a grading knows of its works: measured in its session, or taken over from another grading."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from fwlab.grading.graded import Work
from fwlab.grading.resume import Earlier
from fwlab.grading.untouched import start_passes, untouched
from fwlab.judge.verdicts import judge_exercise
from fwlab.measure.context import RunContext
from fwlab.metrics.registry import METRICS
from fwlab.model.declared import Value
from fwlab.model.results import Measured, Run
from fwlab.model.verdict import Outcome, Verdict, overall

#: A lab and the name of a work.
Key = tuple[str, str]


@dataclass
class Known:
    """By lab and work.

    lost  why there are no verdicts although it was tried
    held  the DUT was found to hold what the files say
    kept  taken over, and not measured in this session
    """

    verdicts: dict[Key, list[Verdict]] = field(default_factory=dict)
    measured: dict[Key, Measured] = field(default_factory=dict)
    lost: dict[Key, str] = field(default_factory=dict)
    held: set[Key] = field(default_factory=set)
    kept: set[Key] = field(default_factory=set)
    #: By lab and exercise, the checks that the start passes, where that was asked.
    _start_passes: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    #: Whether a student has done anything, where that was asked.
    _untouched: dict[Key, bool] = field(default_factory=dict)
    #: By the name of another grading, its run.
    _runs: dict[str, Run] = field(default_factory=dict)

    def of(self, lab: str, work: Work) -> list[Verdict] | str | None:
        """The verdicts, the reason why there are none, or None if it was not graded yet."""
        key = (lab, work.name)
        return self.verdicts.get(key) or self.lost.get(key)

    def remarks(self, lab: str, work: Work) -> list[str]:
        """What to say of the ruleset beside the verdict."""
        measured = self.measured.get((lab, work.name))
        return [] if measured is None else measured.remarks

    def start_passes(self, context: RunContext) -> dict[str, list[str]]:
        """By exercise, the checks that its start passes."""
        if context.lab.id not in self._start_passes:
            self._start_passes[context.lab.id] = start_passes(context.project, context.lab.whole)
        return self._start_passes[context.lab.id]

    def untouched(self, context: RunContext, work: Work) -> bool:
        """Whether a submission that passes some checks passes them without doing anything."""
        key = (context.lab.id, work.name)
        partly = {verdict.outcome for verdict in self.verdicts.get(key, [])} >= {Outcome.PASS, Outcome.FAIL}
        if not partly or work.handed_in is None:
            return False
        if key not in self._untouched:
            self._untouched[key] = untouched(work.own or context, work.exercise, work.handed_in)
        return self._untouched[key]

    def take_over(
        self,
        context: RunContext,
        works: Iterable[Work],
        run: Run,
        other: tuple[str, Earlier],
        numbers: Callable[[Work], dict[str, Value]],
    ) -> int:
        """Add what another grading decided of these works to what is known and to this session's run; returns how many.

        numbers  those of a student's individual task
        """
        lab, (name, earlier), before = context.lab.id, other, len(self.kept)
        for work in works:
            key = (lab, work.name)
            decided = None if self.of(lab, work) else earlier.decided(work, numbers(work))
            if decided is None:
                continue
            mark, measured = decided
            verdicts = judge_exercise(work.exercise, measured, earlier.run, METRICS)
            # A case that it was compared with may have been measured again since.
            if overall([verdict.outcome for verdict in verdicts]) is mark.outcome:
                measured = measured.model_copy(update={"ruleset": work.ruleset(context)})
                run.exercises.append(measured)
                self.measured[key], self.verdicts[key] = measured, verdicts
                self.kept.add(key)
                if mark.holds:
                    self.held.add(key)
        if len(self.kept) > before:
            self._runs[name] = earlier.run
        return len(self.kept) - before

    def whole(self, run: Run) -> Run:
        """The run with the cases that taken-over results were compared with. Before its end the session must not have
        them: it measures its own for whatever follows."""
        cases = {case.id: case for other in reversed(self._runs.values()) for case in other.cases}
        cases |= {case.id: case for case in run.cases}
        order = dict.fromkeys([*(case.id for case in run.cases), *cases])
        return run.model_copy(update={"cases": [cases[name] for name in order]})
