# SPDX-License-Identifier: GPL-2.0-or-later
"""The virtual testbed: the DUT's clock counts instructions, so its figures are the same on every host.

QEMU emulates the DUT with -icount: each instruction takes 2**icount_shift ns. The generator need not be faster than
the DUT, because the DUT can be throttled in real time without its own clock noticing.
"""

from collections.abc import Callable

from fwlab.host.kvm_probe import KvmAnswer
from fwlab.model.results import AbsoluteRanges, Accelerator, Clock
from fwlab.testbed.hardware import EmulatedDut
from fwlab.testbed.throttle import Level, Levels

#: For packets at a fixed rate. Level 0 does not throttle. While the vCPU is stopped the NIC goes on filling the receive
#: ring. A full ring of 1024 packets must last for one slice of running: on a fast host a DUT that drops in its driver
#: (XDP) empties it in less than 2 ms. On two cores the generator is often only a little slower than the DUT: level 1.
OPEN_LOOP = (Level(1.0, 0.002), Level(0.6, 0.002), Level(0.3, 0.002), Level(0.12, 0.001), Level(0.05, 0.0005))

#: For TCP connections. Each connection makes progress by one packet between two slices, so the open connections (512)
#: keep the DUT busy only for a short slice. Generator and sink do more work per packet than the DUT, so it is throttled
#: from level 0 on.
CLOSED_LOOP = tuple(Level(share, 0.0005) for share in (0.2, 0.12, 0.08, 0.05, 0.03))


class Virtual(EmulatedDut):
    """An emulated DUT whose clock counts instructions: the same figures on every host."""

    name = "virtual"
    position = 2
    clock: Clock = "instructions"
    default = True
    throttle = Levels(OPEN_LOOP, CLOSED_LOOP)

    def accelerator(self, kvm: Callable[[], KvmAnswer]) -> tuple[Accelerator, str]:
        return "tcg", ""

    def ranges(self, accelerator: Accelerator) -> AbsoluteRanges:
        return "portable"

    def note(self, accelerator: Accelerator) -> str:
        return ""


TESTBED = Virtual()
