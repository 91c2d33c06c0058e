# SPDX-License-Identifier: GPL-2.0-or-later
"""The start state: what the DUT is like before any ruleset is loaded. Recorded once after each boot."""

import json
import os
import time
from collections.abc import Callable, Iterable
from typing import Any

from fwlab.dut.linux.agent.kernel import Kernel
from fwlab.dut.linux.agent.network import Network, restore_sysctls, sysctls

RECORD = "/run/fwlab-start-state.json"
#: How often modules that cannot be unloaded are tried again.
TRIES = 10
#: Differences that are reported at most.
MAX_DIFFERENCES = 20


class StartState:
    """Compares the DUT with its start state and restores what it can."""

    def __init__(self, kernel: Kernel, record: str = RECORD) -> None:
        self._kernel, self._path = kernel, record
        self._network = Network(kernel)
        self._record: dict[str, Any] = {}
        #: Recorded by this agent, which has restored nothing yet.
        self._new = False

    def recorded(self) -> dict[str, Any]:
        """modules, sysctls, network and killed (processes that the kernel had killed for lack of memory).

        Recorded now if no agent has done so since boot.
        """
        if not self._record:
            try:
                self._record.update(json.loads(self._kernel.read(self._path)))
            except (OSError, ValueError):
                self._record.update(
                    modules=sorted(self._kernel.modules()),
                    sysctls=sysctls(),
                    network=self._network.state(),
                    killed=self._killed(),
                )
                with open(self._path + ".part", "w") as file:
                    json.dump(self._record, file)
                os.replace(self._path + ".part", self._path)
                self._new = True
        return self._record

    def unload_modules(self, release: Callable[[Iterable[str]], None]) -> list[str]:
        """Unload every module that was not there at the start. Returns those that stay.

        release  drops what keeps these modules
        """
        at_start = set(self.recorded()["modules"])
        before: list[str] | None = None
        tries = TRIES
        while True:
            # The kernel lists the youngest first, and a module is younger than those it needs, so one call takes most
            # of them. Some stay for a moment: what is freed once no CPU can see it any more still refers to them.
            extra = [name for name in self._kernel.modules() if name not in at_start]
            if extra == before:
                tries -= 1
                time.sleep(0.02)
            if not extra or not tries:
                return sorted(extra)
            before = extra
            release(extra)
            self._kernel.run("rmmod", *extra)

    def restore(self, *, sysctls_changed: bool, loaded: bool) -> list[str]:
        """Restore the network, and the sysctls if they may have changed. Returns what still differs.

        loaded  whether this agent has loaded a ruleset since the last time
        """
        start = self.recorded()
        left: list[str] = []
        new, self._new = self._new, False
        if sysctls_changed and (loaded or not new):  # there are a thousand of them
            left += [f"sysctl {path[len('/proc/sys/') :]}" for path in restore_sysctls(start["sysctls"])]
        left += self._network.restore(start["network"])
        if self._killed() > start["killed"]:
            left.append("processes killed for want of memory")
        return left[:MAX_DIFFERENCES]

    def _killed(self) -> int:
        lines = self._kernel.read("/proc/vmstat").splitlines()
        return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), 0)
