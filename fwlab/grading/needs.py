# SPDX-License-Identifier: GPL-2.0-or-later
"""What the DUT has of what a lab needs, asked in one command: on an emulated DUT, each login takes time."""

import shlex
from collections.abc import Iterable
from dataclasses import dataclass

from testinfra.host import Host

#: A line for each thing that is there: what it is, its name, and the value of a sysctl.
_PACKAGE = "[ \"$(dpkg-query -Wf '${{db:Status-Status}}' {0} 2>/dev/null)\" = installed ] && echo package {0}"
_MODULE = "modinfo {0} >/dev/null 2>&1 && echo module {0}"
_SYSCTL = 'value=$(sysctl -n {0} 2>/dev/null) && echo "sysctl {0} $value"'


@dataclass(frozen=True)
class Present:
    """Which packages and modules are there, and the values of sysctls by name, with single spaces."""

    packages: frozenset[str]
    modules: frozenset[str]
    sysctls: dict[str, str]


def present_on(dut: Host, packages: Iterable[str], modules: Iterable[str], sysctls: Iterable[str]) -> Present:
    """What the DUT has of these. A module may be there without being loaded."""
    wanted = ((_PACKAGE, packages), (_MODULE, modules), (_SYSCTL, sysctls))
    asked = [line.format(shlex.quote(name)) for line, names in wanted for name in names]
    lines = [line.split() for line in dut.run("\n".join([*asked, "true"])).stdout.splitlines()]
    return Present(
        frozenset(name for kind, name, *_ in lines if kind == "package"),
        frozenset(name for kind, name, *_ in lines if kind == "module"),
        {name: " ".join(value) for kind, name, *value in lines if kind == "sysctl"},
    )
