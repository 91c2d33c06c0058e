# SPDX-License-Identifier: GPL-2.0-or-later
"""What a lab needs of its DUT, and of those who do it."""

from collections.abc import Container, Mapping

from pydantic import Field

from fwlab.model.declared import Identifier, Strict


class Needs(Strict):
    """What the DUT must have, which the grading run checks on the node; and which labs come first.

    labs      labs whose figures or ideas this one uses; the course map shows them
    systems   what the DUT may run, by the names in topology.yml: the first, unless FWLAB_DUT names another of them
    packages  Debian packages
    modules   kernel modules of Linux that can be loaded
    sysctls   settings of Linux and their values
    nics      models of NIC that the DUT has on each link beside the usual one, by QEMU's names. Only socket links have
              them. What a kernel has no driver for is left out
    """

    labs: list[Identifier] = []
    systems: list[Identifier] = Field(default=["linux"], min_length=1)
    packages: list[str] = []
    modules: list[str] = []
    sysctls: dict[str, int | str] = {}
    nics: list[Identifier] = []


def refuse_unknown_nics(said: Mapping[str, str | None], nics: Container[str]) -> None:
    """`said`: by the id of a case, a sweep or an exercise, the NIC that it names. Raises ValueError."""
    for name, nic in said.items():
        if nic is not None and nic not in nics:
            raise ValueError(f"{name}: {nic} is none of needs.nics")
