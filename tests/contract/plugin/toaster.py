# SPDX-License-Identifier: GPL-2.0-or-later
"""A DUT operating system from outside fwlab. It runs nowhere: every answer is made up from what was loaded."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, Self

from fwlab.dut.protocol import Collected, Dut, DutSystem, Window
from fwlab.host.ssh import Ssh
from fwlab.model.errors import Refused
from fwlab.model.ruleset import RulesetFile
from fwlab.model.trial import Trial

#: Packets per busy second without rules, and how many fewer with each line.
PPS, PER_LINE = 100_000, 1_000
#: Seconds that a line takes to load.
LOADING_S = 0.5


class Toaster:
    """Forwards packets; each line of a ruleset makes it slower."""

    def __init__(self, devices: list[str]) -> None:
        self.devices = devices
        self.lines = 0
        self.windows = 0
        self.done: list[str] = []

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.reset()
        self.close()

    def open(self) -> None:
        self.done.append("open")

    def close(self) -> None:
        self.done.append("close")

    def abandon(self) -> None:
        self.close()

    def within(self, seconds: float) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    def facts(self) -> dict[str, Any]:
        return {"kernel": "toast 1.0", "cmdline": "", "clocksource": "crumbs", "image": {}, "packet_sockets": 0}

    def reset(self, next_ruleset: list[RulesetFile] | None = None) -> list[str]:
        self.lines = 0
        self.done.append("reset")
        return []

    def load(
        self, files: list[RulesetFile], *, each: bool = False, times: int = 1, timed: bool = True
    ) -> list[list[float]]:
        if any("burn" in file.text for file in files):
            raise Refused("toaster: no burning", "use less heat")
        self.lines = sum(file.text.count("\n") for file in files)
        loaded = [LOADING_S * file.text.count("\n") for file in files]
        return [loaded] * times

    def entries(self) -> int:
        return self.lines

    def states(self) -> dict[str, int]:
        return dict.fromkeys(("held", "most", "buckets", "object_bytes", "slab_bytes", "bucket_bytes"), 0)

    @contextlib.contextmanager
    def blackhole(self) -> Iterator[None]:
        yield

    def counters(self) -> dict[str, int]:
        return {f"{device}.{counter}": 0 for device in self.devices for counter in ("rx_packets", "tx_packets")}

    def received(self) -> list[tuple[int, int]]:
        return [(0, 0) for _ in self.devices]

    def drain(self) -> None:
        pass

    def arm(self, **trials: Any) -> None:
        self.windows = trials["windows"]

    def collect(self, timeout: float) -> Collected[Trial]:
        pps = PPS - PER_LINE * self.lines
        return Collected([Trial(duration_s=1, busy_s=1, processed=pps)] * self.windows, [], [], {})

    def collect_by_link(self, timeout: float) -> Collected[Window]:
        return Collected([], [], [], {})

    def prepare_stacks(self, rates: Sequence[int]) -> None:
        pass

    def arm_stacks(self, *, seconds: float) -> None:
        pass

    def collect_stacks(self, timeout: float) -> int:
        return 0

    def read_stacks(self) -> dict[str, int]:
        return {}


class ToasterSystem:
    name = "toaster"
    forwarding = "toaster.forwards"

    def connect(self, ssh: Ssh, devices: list[str]) -> Dut:
        return Toaster(devices)


SYSTEM: DutSystem = ToasterSystem()
