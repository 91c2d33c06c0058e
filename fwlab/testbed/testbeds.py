# SPDX-License-Identifier: GPL-2.0-or-later
"""What a testbed is, and the registry of all testbeds. Code asks the testbed and never compares its name.

A testbed is one module in kinds/, which declares its object as TESTBED. Others are entry points of the group
`fwlab.testbeds`.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from fwlab.host.kvm_probe import KvmAnswer
from fwlab.model.errors import BadInput
from fwlab.model.registry import IncompleteKind, Registry, discover
from fwlab.model.results import AbsoluteRanges, Accelerator, Clock
from fwlab.testbed.throttle import Levels


class TestbedKind(Protocol):
    """One testbed, apart from any machines.

    name      what `--testbed` takes
    clock     what the DUT's clock counts: instructions, or the host's time
    throttle  how far the DUT may be throttled without a change in its figures
    default   whether it is taken where none is asked for; true for exactly one, whatever the host has
    savable   whether its machines can continue from a saved state: what they see does not depend on the host
    max_cpus of the DUT
    """

    name: str
    clock: Clock
    throttle: Levels
    default: bool
    savable: bool
    max_cpus: int

    def accelerator(self, kvm: Callable[[], KvmAnswer]) -> tuple[Accelerator, str]:
        """QEMU's accelerator for the DUT, and why (may be empty). Calling `kvm` can take seconds."""

    def dut_accelerator(self, usual: str) -> str:
        """QEMU's accelerator for the DUT where the other machines have the `usual` one."""

    def dut_arguments(self, topology: Mapping[str, Any]) -> list[str]:
        """QEMU's arguments for the DUT. `topology`: topology.yml as plain data."""

    def matches(self, accelerator: Accelerator, icount_shift: int | None) -> bool:
        """Whether a DUT with this accelerator and clock was made for this testbed."""

    def ranges(self, accelerator: Accelerator) -> AbsoluteRanges:
        """Which absolute ranges its figures are judged by."""

    def note(self, accelerator: Accelerator) -> str:
        """What a reader of its figures must know; empty where nothing is unusual."""


def checked(kinds: Registry[TestbedKind]) -> Registry[TestbedKind]:
    """The same kinds. Raises IncompleteKind unless exactly one is the default."""
    default = [kind.name for kind in kinds.values() if kind.default]
    if len(default) != 1:
        raise IncompleteKind(f"one testbed must be the default; these are: {', '.join(default) or 'none'}")
    return kinds


TESTBEDS: Final = checked(discover("testbed", "fwlab.testbed.kinds", "TESTBED", "fwlab.testbeds", TestbedKind))


def default_testbed() -> TestbedKind:
    """The one that is taken where none is asked for: the same on every host, so that figures and marks are."""
    return next(kind for kind in TESTBEDS.values() if kind.default)


def unknown(name: str) -> BadInput:
    """What to raise where $FWLAB_TESTBED is this `name`, and no testbed has it."""
    message = f"FWLAB_TESTBED={name}: unknown testbed; there are: {', '.join(sorted(TESTBEDS))}"
    return BadInput(message, f"export FWLAB_TESTBED={default_testbed().name}")
