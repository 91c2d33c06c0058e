# SPDX-License-Identifier: GPL-2.0-or-later
"""Choose the testbed: the one that the machines were made for, else the same on every host."""

import os
from dataclasses import dataclass

from fwlab.host.kvm_probe import kvm_works
from fwlab.model.errors import BadInput, CannotMeasure
from fwlab.model.results import Accelerator, TestbedFacts
from fwlab.testbed.machine_record import Made
from fwlab.testbed.testbeds import TESTBEDS, TestbedKind, default_testbed, unknown


@dataclass(frozen=True)
class TestbedRequest:
    """The testbed that was asked for; "auto" if none was. `grading`: $FWLAB_TESTBED does not count either.

    It is settled once the machines are known, because trying KVM takes time.
    """

    __test__ = False  # not a test case, in spite of its name

    name: str = "auto"
    grading: bool = False

    def __post_init__(self) -> None:
        if self.name != "auto" and self.name not in TESTBEDS:
            raise BadInput(f"unknown testbed {self.name}", f"use auto, {' or '.join(sorted(TESTBEDS, reverse=True))}")


@dataclass(frozen=True)
class Testbed:
    """The chosen testbed, its accelerator, and why. `forced`: the user named it."""

    __test__ = False

    kind: TestbedKind
    accelerator: Accelerator
    forced: bool
    why: str

    @property
    def name(self) -> str:
        """Name of the testbed."""
        return self.kind.name

    @property
    def throttled(self) -> bool:
        """Whether the DUT is throttled while it is measured."""
        return len(self.kind.throttle) > 1

    def environment(self) -> dict[str, str]:
        """What the plan of the machines reads."""
        return {"FWLAB_TESTBED": self.name, "FWLAB_ACCEL": self.accelerator}

    def facts(self, made: Made, engine: str) -> TestbedFacts:
        """What goes into the results: the machines as they are, not as they were asked for."""
        kind = made.kind
        return TestbedFacts(
            name=kind.name,
            accelerator=made.accelerator,
            clock=kind.clock,
            ns_per_instruction=made.ns_per_instruction,
            forced=self.forced,
            link=made.link,
            boxes=made.boxes,
            engine=engine,
            note=kind.note(made.accelerator),
            ranges=kind.ranges(made.accelerator),
        )


def choose(request: TestbedRequest) -> Testbed:
    """The testbed for new machines: the one asked for, also by $FWLAB_TESTBED, else the default one. Raises BadInput.

    KVM is tried only for a testbed that can use it.
    """
    asked = request.name
    if asked == "auto" and not request.grading:
        asked = os.environ.get("FWLAB_TESTBED") or "auto"
    if asked == "auto":
        kind = default_testbed()
        return Testbed(kind, kind.accelerator(kvm_works)[0], False, "the same figures on every host")
    if asked not in TESTBEDS:
        raise unknown(asked)
    kind = TESTBEDS[asked]
    accelerator, why = kind.accelerator(kvm_works)
    return Testbed(kind, accelerator, True, f"asked for; {why}" if why else "asked for")


def settle(request: TestbedRequest, made: Made | None, lab_id: str) -> Testbed:
    """The testbed of the machines that exist, if it is the one that was asked for; without machines, `choose`.

    Raises CannotMeasure if the machines were made for another testbed.
    """
    if made is None:
        return choose(request)
    forced = request.name != "auto"
    wanted = TESTBEDS[request.name] if forced else default_testbed() if request.grading else made.kind
    if wanted is not made.kind:
        asked = f"you asked for {wanted.name}" if forced else f"grading measures on the {wanted.name} one"
        raise CannotMeasure(
            f"the machines of {lab_id} were made for the {made.testbed} testbed; {asked}",
            f"vagrant destroy -f {lab_id}, then the same command again (or add --testbed {made.testbed})",
        )
    return Testbed(made.kind, made.accelerator, forced, f"the machines of {lab_id} were made for it")
