# SPDX-License-Identifier: GPL-2.0-or-later
"""What a lab needs of its DUT."""

from pydantic import Field

from fwlab.model.declared import Identifier, Strict


class Needs(Strict):
    """What the DUT must have. The grading run checks it on the node.

    systems   what the DUT may run, by the names in topology.yml: the first, unless FWLAB_DUT names another of them
    packages  Debian packages
    modules   kernel modules of Linux that can be loaded
    sysctls   settings of Linux and their values
    """

    systems: list[Identifier] = Field(default=["linux"], min_length=1)
    packages: list[str] = []
    modules: list[str] = []
    sysctls: dict[str, int | str] = {}
