# SPDX-License-Identifier: GPL-2.0-or-later
"""A session whose DUT is modelled on a reference core."""

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import replace

from fwlab.dut.protocol import CoreModel
from fwlab.measure.context import RunContext
from fwlab.metrics import load_time
from fwlab.metrics.measurement_spec import MeasurementSpec
from fwlab.metrics.model_cycles import METRIC
from fwlab.model.errors import CannotMeasure
from fwlab.model.events import Listener, StepStarted
from fwlab.testbed.core_model.attached import attached
from fwlab.testbed.machines import Machines


@contextlib.contextmanager
def modelled(context: RunContext, machines: Machines, tell: Listener) -> Iterator[CoreModel | None]:
    """The model of the context's core, attached to the DUT; None if it asks for none. Raises CannotMeasure."""
    if not context.core:
        yield None
        return
    if machines.testbed.kind.clock != "instructions":
        raise CannotMeasure("a core is modelled on the virtual testbed only", "the same command with --testbed virtual")
    topology, number = context.topology, context.machines_lab.number
    tell(StepStarted(f"attaching a model of {context.core} to the DUT"))
    forwarded = topology.ports.address, topology.ssh_port(number, "dut")
    with attached(context.project, machines, forwarded, topology.cores[context.core]) as counters:
        yield counters


#: A core that was just attached has empty caches: its first trials miss more than the later ones. So traffic is played
#: for this time before them (s of the DUT's clock). A packet of 3000 instructions comes 20 000 times in it.
WARM_S = 0.25


def modelled_specs(context: RunContext, specs: Iterable[MeasurementSpec]) -> list[MeasurementSpec]:
    """The same, with the model's cycles beside their own metrics where traffic is played and a core is modelled.

    Trials begin later then, where they would not have warmed the caches. Times of loading are not measured beside them:
    they are those of a run without the model, and rulesets would be loaded several times for them.
    """
    return [_modelled(spec) if context.core and spec.traffic is not None else spec for spec in specs]


def _modelled(spec: MeasurementSpec) -> MeasurementSpec:
    warm = spec.trial.changed({"settle": max(WARM_S, spec.trial.settle)})
    main, *also = spec.metrics
    others = [name for name in also if name != load_time.METRIC.name]
    return replace(spec, metrics=[main, *others, METRIC.name], trial=warm)
