# SPDX-License-Identifier: GPL-2.0-or-later
"""The real testbed: the DUT runs under KVM by the host's clock, so its figures hold for one class of hosts."""

from collections.abc import Callable

from fwlab.host.kvm_probe import KvmAnswer
from fwlab.model.results import AbsoluteRanges, Accelerator, Clock
from fwlab.testbed.hardware import HostClockDut
from fwlab.testbed.throttle import UNTHROTTLED


class Real(HostClockDut):
    """A DUT on the host's clock, under KVM where that works."""

    name = "real"
    position = 1
    clock: Clock = "host"
    default = False
    throttle = UNTHROTTLED

    def accelerator(self, kvm: Callable[[], KvmAnswer]) -> tuple[Accelerator, str]:
        answer = kvm()
        return "kvm" if answer.works else "tcg", answer.why

    def ranges(self, accelerator: Accelerator) -> AbsoluteRanges:
        return "host_class" if accelerator == "kvm" else "none"

    def note(self, accelerator: Accelerator) -> str:
        if accelerator == "tcg":
            return "emulated by the wall clock: these figures show that the machinery works, and nothing else"
        return ""


TESTBED = Real()
