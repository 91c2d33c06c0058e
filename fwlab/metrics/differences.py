# SPDX-License-Identifier: GPL-2.0-or-later
"""Differences: packets drawn from a ruleset and from the exercise's start, which the two treat differently.

Both are loaded in network namespaces on the DUT, and nothing of them is the DUT's own: so they may be rules of any
firewall, for any interface. fwlab/own/comparing.py says what counts as a difference.
"""

from collections.abc import Sequence

from fwlab.metrics.measurement import MeasurableMetric, MeasurementSpec, MeasuringSession, Phase, Step
from fwlab.model.errors import BadInput, Refused
from fwlab.model.events import ItemPhase
from fwlab.model.metric import Display, TrafficKind
from fwlab.model.results import Clock, Differences, Measured, Values
from fwlab.model.ruleset import RulesetFile
from fwlab.own.bench_client import Bench, loaded, opened
from fwlab.own.comparing import compare
from fwlab.own.layout import layout_of
from fwlab.own.rules import Rules
from fwlab.own.showing import difference_in_words


class CountOfDifferences(MeasurableMetric):
    """Kinds of differences: those about which other rules decide."""

    name = "differences"
    unit = "count"
    position = 66
    display = Display("differences", whole=True)
    traffic = frozenset({"none"})
    apart = True

    def steps(self, spec: MeasurementSpec, played: TrafficKind, clock: Clock) -> Sequence[Step]:
        return [COMPARE]


METRIC = CountOfDifferences()
#: A check says the first; the others are only there in case that one does not show again when it is played alone.
REDUCED = 3


def rules_of(bench: Bench, files: Sequence[RulesetFile]) -> Rules:
    """The rules of these files, loaded on a bench. Raises Refused with the line that a tool refuses, CannotMeasure."""
    try:
        return loaded(bench, files)
    except BadInput as error:
        raise Refused(error.message, error.hint) from error


def _compare(session: MeasuringSession, spec: MeasurementSpec, so_far: Measured) -> Measured:
    nodes = session.nodes
    start = nodes.bench()
    with opened(start, "the start") as old, opened(start, "yours") as new:
        rules = rules_of(old, spec.compared_with), rules_of(new, spec.files)
        layout, seed = layout_of(rules, ()), nodes.store.seed
        found = compare(
            old, new, rules, layout, seed, lambda words: nodes.emit(ItemPhase(spec.id, words)), most=REDUCED
        )
    words = [difference_in_words(one, found) for one in found.differences]
    number = float(len(words) + found.left_out)
    return so_far.plus(Values(extra={METRIC.name: [number]}), Differences(words=words))


COMPARE = Step(Phase.COMPARING, _compare)
