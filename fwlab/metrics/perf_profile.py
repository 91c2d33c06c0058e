# SPDX-License-Identifier: GPL-2.0-or-later
"""Profile: the DUT's call stacks, sampled under the same overload as in the trials of capacity.

A DUT whose clock counts instructions is perfectly regular: every batch of packets takes the same time. A sampler of
one rate can lock onto that rhythm and hit the same few places of each batch. This is no rare accident: a sample takes
DUT time itself, more for a deep stack, so the two pull each other into step, like two pendulum clocks on one wall. At
4999 Hz ip_output got 51 % of the samples of plain forwarding, although the differences between cases give it a third
at most.

So the DUT is sampled at many rates at once, in the same window. The rates have no common divisor, each disturbs the
others, and one that locks on all the same has a small part of the samples. tests/unit/metrics/test_sampling_rates.py
has a model of it.
"""

from fwlab.generator.protocol import traffic_guard
from fwlab.metrics.measurement_spec import MeasurementSpec
from fwlab.metrics.nodes import MeasuringSession
from fwlab.metrics.step import Phase, Step
from fwlab.model.results import Measured, Profile

#: Length of the window (s of the DUT's clock): about 3000 samples, which give a share of a tenth to half a percent.
SECONDS = 0.6
#: Samples per second of the DUT's clock: primes, far enough apart to drift within that time.
RATES = (211, 227, 241, 257, 271, 283, 293, 307, 317, 331, 347, 359, 373, 383, 397, 409)
#: Fewer samples than this are a problem.
FEWEST = 500


def sample(session: MeasuringSession, spec: MeasurementSpec, so_far: Measured) -> Measured:
    """Sample the DUT under overload, at the throttle level of the trials of capacity; nothing without trials."""
    if not so_far.trials:
        return so_far
    nodes = session.nodes
    nodes.dut.prepare_stacks(RATES)
    with nodes.throttle(so_far.slowed):
        nodes.dut.arm_stacks(seconds=SECONDS)
        with traffic_guard(nodes.engine.start()) as playback:
            nodes.dut.collect_stacks(timeout=600)
    playback.stop()
    stacks = nodes.dut.read_stacks()
    seen = sum(stacks.values())
    few = [f"the DUT was sampled {seen} times at work; at least {FEWEST} say something"] if seen < FEWEST else []
    return so_far.plus(Profile(stacks=stacks)).troubled(few)


PROFILE = Step(Phase.PROFILE, sample, despite_problems=False)
