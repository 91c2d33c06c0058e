# SPDX-License-Identifier: GPL-2.0-or-later
"""What this distribution registers in the group `fwlab.core_models`."""

import contextlib
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from fwlab.dut.protocol import CoreModel
from fwlab.measure.core_models import CoreProfile, CoreTable
from fwlab.metrics import load_time
from fwlab.metrics.measurement import MeasurementSpec
from fwlab.model.errors import CannotMeasure
from fwlab.model.metric import refused_by_clock
from fwlab.model.results import Measured, Run, TestbedFacts
from fwlab.testbed.machines import Machines
from fwlab_coresim.attach import attached
from fwlab_coresim.cores import core_of, reference_cores
from fwlab_coresim.figures import HEADS, all_core_figures, caption
from fwlab_coresim.functions import function_costs, weighted
from fwlab_coresim.metric import METRIC

#: A core that was just attached has empty caches: its first trials miss more than the later ones. So traffic is played
#: for this time before them (s of the DUT's clock). A packet of 3000 instructions comes 20 000 times in it.
WARM_S = 0.25


class CoreSim:
    """The cores of cores.yml, modelled by a plugin of the DUT's QEMU."""

    name = "coresim"

    def cores(self) -> dict[str, str]:
        """Their titles by name."""
        return {name: core.title for name, core in reference_cores().items()}

    def facts(self, core: str) -> dict[str, Any]:
        """Every parameter, so that a run can be read when cores.yml has changed."""
        return reference_cores()[core].model_dump()

    def attached(
        self, core: str, machines: Machines, forwarded: tuple[str, int]
    ) -> contextlib.AbstractContextManager[CoreModel]:
        """The DUT with the plugin. Raises CannotMeasure, also for a DUT or a QEMU that cannot have it."""
        if refused_by_clock(METRIC, machines.testbed.kind.clock):
            raise CannotMeasure(
                "a core is modelled on the virtual testbed only", "the same command with --testbed virtual"
            )
        return attached(machines, forwarded, reference_cores()[core])

    def asked(self, spec: MeasurementSpec) -> MeasurementSpec:
        """The model's cycles in addition to the case's own metrics.

        Trials begin later, where they would not have warmed the caches. Loading is not timed then:
        they are those of a run without the model, and rulesets would be loaded several times for them.
        """
        warm = spec.trial.changed({"settle": max(WARM_S, spec.trial.settle)})
        main, *also = spec.metrics
        others = [name for name in also if name != load_time.METRIC.name]
        return replace(spec, metrics=[main, *others, METRIC.name], trial=warm)

    def table(self, run: Run, cases: Iterable[Measured]) -> CoreTable | None:
        """Cycles, what waits, and misses of every case that was modelled."""
        core = core_of(run.testbed)
        if core is None:
            return None
        return CoreTable(HEADS, [(found.case, found.cells()) for found in all_core_figures(cases, run)], caption(core))

    def profile(self, measured: Measured, testbed: TestbedFacts) -> CoreProfile | None:
        """Every function of the kernel, and the stacks of the samples weighted by what their functions wait."""
        core, costs = core_of(testbed), function_costs(measured, testbed)
        if core is None or not costs:
            return None
        return CoreProfile(core.title, costs, weighted(measured.stacks, measured, core, waits=True))


CORESIM = CoreSim()
