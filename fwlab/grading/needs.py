# SPDX-License-Identifier: GPL-2.0-or-later
"""What the DUT has of what a lab needs, asked in one command: on an emulated DUT, each login takes time."""

import shlex
from collections.abc import Iterable

from testinfra.host import Host

from fwlab.model.declared import Frozen
from fwlab.model.lab import Needs

#: A line for each thing that is there: what it is, its name, and the value of a sysctl.
_PACKAGE = "[ \"$(dpkg-query -Wf '${{db:Status-Status}}' {0} 2>/dev/null)\" = installed ] && echo package {0}"
_MODULE = "modinfo {0} >/dev/null 2>&1 && echo module {0}"
_SYSCTL = 'value=$(sysctl -n {0} 2>/dev/null) && echo "sysctl {0} $value"'


class Present(Frozen):
    """Which packages and modules are there, and the values of sysctls by name, with single spaces."""

    packages: frozenset[str]
    modules: frozenset[str]
    sysctls: dict[str, str]

    def lacks(self, needs: Needs, forwarding: str) -> str | None:
        """The first thing that the DUT lacks of what a lab needs; None if it has everything.

        forwarding  the sysctl that makes it a router: otherwise no result means anything
        """
        if self.sysctls.get(forwarding) != "1":
            return f"the DUT does not forward: {forwarding} is {self.sysctls.get(forwarding)}"
        for what, wanted, there in (
            ("package", needs.packages, self.packages),
            ("module", needs.modules, self.modules),
        ):
            if missing := [name for name in wanted if name not in there]:
                return f"the DUT lacks the {what} {missing[0]}"
        for name, value in needs.sysctls.items():
            if self.sysctls.get(name) != str(value):
                return f"the DUT has {name} = {self.sysctls.get(name)}, the lab needs {value}"
        return None


def present_on(dut: Host, packages: Iterable[str], modules: Iterable[str], sysctls: Iterable[str]) -> Present:
    """What the DUT has of these. A module may be there without being loaded."""
    wanted = ((_PACKAGE, packages), (_MODULE, modules), (_SYSCTL, sysctls))
    asked = [line.format(shlex.quote(name)) for line, names in wanted for name in names]
    lines = [line.split() for line in dut.run("\n".join([*asked, "true"])).stdout.splitlines()]
    return Present(
        packages=frozenset(name for kind, name, *_ in lines if kind == "package"),
        modules=frozenset(name for kind, name, *_ in lines if kind == "module"),
        sysctls={name: " ".join(value) for kind, name, *value in lines if kind == "sysctl"},
    )
