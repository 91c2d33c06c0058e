# SPDX-License-Identifier: GPL-2.0-or-later
"""Counters at both ends: at the sink, and at the generator for classes that the DUT sends back by its first link."""

from collections.abc import Mapping

from fwlab.generator.sink import Sink
from fwlab.host.ssh import Ssh
from fwlab.model.declared_traffic import Connections, TrafficClass
from fwlab.traffic.classes import OTHER, Flow


def returning(classes: Mapping[str, TrafficClass]) -> bool:
    """Whether any of the classes is counted at the generator."""
    return any(c.at == "generator" for c in classes.values())


class BothEnds(Sink):
    """A sink whose counts include those of the generator, while a class is counted there."""

    def __init__(self, sink: Ssh, device: str, generator: Ssh, generator_device: str) -> None:
        super().__init__(sink, device)
        self._returning = False
        # Nothing is dropped there: a table that an ended session leaves behind must not keep the generator from TCP.
        self._generator = Sink(generator, generator_device, verdict="accept")

    def set_flows(self, flows: dict[str, list[Flow]]) -> None:
        """Set the flows of the classes that are declared by a stream."""
        super().set_flows(flows)
        self._generator.set_flows(flows)

    def load_counters(
        self, classes: dict[str, TrafficClass], connections: Connections | None = None, *, echo: bool = False
    ) -> None:
        """Count from now on, each class where it is declared to be counted."""
        super().load_counters(_at("sink", classes), connections, echo=echo)
        self._returning = returning(classes)
        if self._returning:
            self._generator.load_counters(_at("generator", classes))

    def put_back(self) -> None:
        """Forget at both ends what they have learnt from frames."""
        super().put_back()
        self._generator.put_back()

    def counts(self) -> dict[str, int]:
        """Packets that have arrived since `load_counters`, by class, at either end."""
        here = super().counts()
        if not self._returning:
            return here
        there = self._generator.counts()
        return {**here, **there, OTHER: here[OTHER] + there[OTHER]}

    def count_returned(self, classes: dict[str, TrafficClass]) -> None:
        """Count from now on at the generator, whatever class is declared to be counted there."""
        self._generator.load_counters(classes)

    def returned(self) -> dict[str, int]:
        """Packets that have come back to the generator since `count_returned`, by class."""
        return self._generator.settled_counts()


def _at(end: str, classes: Mapping[str, TrafficClass]) -> dict[str, TrafficClass]:
    return {name: c for name, c in classes.items() if c.at == end}
