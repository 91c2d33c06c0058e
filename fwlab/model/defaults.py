# SPDX-License-Identifier: GPL-2.0-or-later
"""What a lab says once for all its cases, sweeps, exercises and checks."""

from fwlab.model.declared import Strict
from fwlab.model.kernel import KernelSeries


class Defaults(Strict):
    """What cases, sweeps, exercises and checks have where they say nothing else.

    kernel   series of the DUT's kernel on which the limits of checks were measured
    source   raw results behind the limits of capacity, connections and load_time. The name of a .json file alone means
             results/<lab>/<name>. All other checks have the lab's README.md as their source
    traffic  traffic of cases and sweeps, except those that measure load_time alone
    load_dependent, stateful  of exercises
    """

    kernel: KernelSeries | None = None
    source: list[str] = []
    traffic: str | None = None
    load_dependent: bool = False
    stateful: bool = False
