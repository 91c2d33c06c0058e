# SPDX-License-Identifier: GPL-2.0-or-later
"""Settings of the host's CPUs that its clock's figures depend on."""

from fwlab.model.declared import Frozen


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
