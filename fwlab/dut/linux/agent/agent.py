# SPDX-License-Identifier: GPL-2.0-or-later
"""The agent's operations: what the host can ask for. Their answers are those of fwlab.dut.agent_protocol."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import time
import zlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

from fwlab.dut.linux.agent import blackhole, connection_table, trials
from fwlab.dut.linux.agent.counters import Counters
from fwlab.dut.linux.agent.counts import Count
from fwlab.dut.linux.agent.idle_loop import IdleLoop
from fwlab.dut.linux.agent.kernel import Kernel
from fwlab.dut.linux.agent.marks import marks
from fwlab.dut.linux.agent.perf_samples import Perf, names_of
from fwlab.dut.linux.agent.retired import retired
from fwlab.dut.linux.agent.rulesets import Rulesets, quick_addresses
from fwlab.dut.linux.agent.start_state import StartState
from fwlab.model.registry import Registry, discover
from fwlab.rulesets.kind import Refusal, RulesetKind
from fwlab.rulesets.kinds.nic import models_there

if TYPE_CHECKING:  # it stays on the host
    from fwlab.dut import agent_protocol as answers

#: Console log level. So low that no kernel message goes to the serial line: a flooded DUT would spend minutes there.
SILENT = "0"

Request = dict[str, Any]
COUNTS: Registry[type[Count]] = discover("count", "fwlab.dut.linux.agent.counts", "COUNT", None, Count)


class Agent:
    """Answers the requests of one session. Each public method that takes a request is an operation, by its name;
    what one metric alone counts is one of `counts`.

    unconfirmed  the host has to speak next, soon: it may have been cut off by what was just loaded
    cut_off      it did not, so the ruleset was undone; the host learns of it when it confirms
    """

    def __init__(self, kernel: Kernel, kinds: Mapping[str, RulesetKind], start: StartState | None = None) -> None:
        self._kernel = kernel
        self._rulesets = Rulesets(kernel, kinds)
        self._start = start or StartState(kernel)
        self._counts = [count(kernel) for count in COUNTS.values()]
        self._perf: Perf | None = None
        self._idle_loop: IdleLoop | None = None
        self.unconfirmed = False
        self.cut_off = False

    def operations(self) -> dict[str, Callable[[Request], Any]]:
        """The operations by name."""
        own = {
            operation.__name__: operation
            for operation in (
                *(self.facts, self.reset, self.load, self.confirm, self.unload),
                *(self.entries, self.states, self.forget_states, self.count_flows, self.flows),
                *(self.blackhole, self.remove_blackhole, self.counters, self.drain, self.measure),
                *(self.never_idle, self.idle_again),
                *(self.prepare_stacks, self.record_stacks, self.read_stacks, self.functions),
            )
        }
        return own | {count.name: count.answer for count in self._counts}

    def holds_a_ruleset(self) -> bool:
        """Whether this session has loaded anything that a reset must undo."""
        return bool(self._rulesets.own)

    # ---- the DUT ----------------------------------------------------------------------------------------------

    def facts(self, _request: Request) -> answers.Facts:
        """What this DUT is. The first call after a boot records the start state."""
        self._kernel.write("/proc/sys/kernel/printk", SILENT)
        self._rulesets.prepare()
        self._start.recorded()
        clocksource = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
        try:
            image = json.loads(self._kernel.read("/etc/fwlab/image.json"))
        except (OSError, ValueError):
            image = {}
        return {
            "facts": {
                "kernel": os.uname().release,
                "cmdline": self._kernel.read("/proc/cmdline").strip(),
                "clocksource": self._kernel.read(clocksource).strip(),
                "cpus": os.cpu_count() or 1,
                "nics": models_there(self._kernel),
                "image": image,
                "packet_sockets": len(self._kernel.read("/proc/net/packet").splitlines()) - 1,
            }
        }

    def states(self, _request: Request) -> answers.States:
        """The connection table, as `Dut.states` returns it."""
        return {"states": connection_table.states(self._kernel)}

    def forget_states(self, _request: Request) -> answers.Forgotten:
        """Empty the connection table. Its module stays."""
        return {"emptied": connection_table.forget(self._kernel)}

    def count_flows(self, _request: Request) -> answers.Forgotten:
        """Empty the connection table, and let each entry that comes count its packets."""
        counting = connection_table.count_packets(self._kernel)
        return {"emptied": counting and connection_table.forget(self._kernel)}

    def flows(self, _request: Request) -> answers.Flows:
        """The connection table's entries, as the kernel lists them."""
        text = connection_table.flows(self._kernel).encode()
        return {"packed": base64.b64encode(zlib.compress(text, 6)).decode()}

    # ---- rulesets ---------------------------------------------------------------------------------------------

    def reset(self, request: Request) -> answers.Reset:
        """Restore the start state. Returns the modules that could not be unloaded, and other differences.

        Modules matter: an empty table of iptables is still a hook that every packet visits, and connections are
        tracked until their module goes. With `next_tables`, the tables that will be loaded next, modules that do
        neither may stay: unloading and loading them again takes longer than many a measurement.
        """
        loaded = self.holds_a_ruleset()
        self._rulesets.undo()
        stuck: list[str] = []
        if "next_tables" not in request or not self._costs_nothing(set(request["next_tables"])):
            stuck = self._start.unload_modules(self._rulesets.release)
        differences = self._start.restore(sysctls_changed=self._rulesets.changed_sysctls(), loaded=loaded)
        return {"stuck_modules": stuck, "differences": differences}

    def _costs_nothing(self, next_tables: set[str]) -> bool:
        """Whether the modules that are loaded now cost a packet nothing that the next tables do not."""
        tracks = any(name == "nf_conntrack" or name.startswith("act_") for name in self._kernel.modules())
        return not tracks and self._rulesets.hooks() <= next_tables

    def load(self, request: Request) -> answers.Loaded:
        """Load rulesets. On a refusal the DUT is back in its start state, and the tool's message is returned."""
        each, times, timed = request.get("each", False), request.get("times", 1), request.get("timed", True)
        try:
            with contextlib.nullcontext() if timed else quick_addresses():
                seconds = self._rulesets.load(request["files"], each=each, times=times)
        except (Refusal, OSError, ValueError, MemoryError) as error:
            self.reset({})
            return {"refused": str(error) if isinstance(error, Refusal) else f"{type(error).__name__}: {error}"}
        self.unconfirmed = True
        return {"seconds": seconds}

    def confirm(self, request: Request) -> answers.Confirmed:
        """The host asks twice after every load, first with `again`: it can still reach us, and it hears our answers.

        reached  whether it always could. If not, the ruleset was undone.
        """
        reached = not self.cut_off
        self.unconfirmed = request.get("again", False)
        if not self.unconfirmed:
            self.cut_off = False
        return {"reached": reached}

    def unload(self, _request: Request) -> answers.Done:
        """Take the rulesets away. Modules stay, and empty tables with them; a reset is still due."""
        self._rulesets.undo()
        return {}

    def entries(self, _request: Request) -> answers.Entries:
        """How many rules and addresses a passing packet can meet, by kind of file."""
        return {"entries": self._rulesets.entries()}

    # ---- packets ----------------------------------------------------------------------------------------------

    def blackhole(self, request: Request) -> answers.Blackhole:
        """Drop whatever leaves by `device`. `added`: False if a queue of the ruleset is there already."""
        added = blackhole.add(self._kernel, request["device"])
        if added:
            self._rulesets.own.add("tc")  # so that it is removed however this session ends
        return {"added": added}

    def remove_blackhole(self, request: Request) -> answers.Done:
        """Let packets leave by `device` again."""
        blackhole.remove(self._kernel, request["device"])
        return {}

    def counters(self, request: Request) -> answers.Counters:
        """The packet counters of these devices, since boot."""
        return {"counters": Counters(request["devices"]).read()}

    def drain(self, request: Request) -> answers.Counters:
        """Wait until the first device has received nothing for `quiet_s` seconds, at most `patience_s` seconds.

        Returns the packet counters, and how many packets the kernel's own sending queues have dropped, since boot.
        """
        devices, counters = request["devices"], Counters(request["devices"])
        counters.drain(devices[0], request["quiet_s"], request["patience_s"])
        return {"counters": counters.read(), "queue_drops": blackhole.dropped(self._kernel, devices)}

    def never_idle(self, _request: Request) -> answers.Done:
        """Keep the CPU from sleeping until `idle_again`."""
        self._idle_loop = self._idle_loop or IdleLoop()
        return {}

    def idle_again(self, _request: Request) -> answers.Done:
        """Let the CPU sleep again."""
        if self._idle_loop is not None:
            self._idle_loop.stop()
            self._idle_loop = None
        return {}

    def measure(self, request: Request) -> answers.Trials:
        """Wait for packets on the first device, then count trials. Answers as `trials.measure` does.

        With `marked`, each trial is marked for a model of a core. While the CPU is kept from sleeping, the loop that
        does it knows how long nothing else used it.
        """
        device, loop = request["devices"][0], self._idle_loop
        with trials.ahead_of_packets(), retired() as instructions, marks(request.get("marked", False)) as marked:
            counters = Counters(request["devices"])
            counters.wait_for_packets(device, request["begun"], request["patience_s"])
            time.sleep(request["settle_s"])
            terms = cast("answers.Terms", request)
            idle_of = None if loop is None else lambda: [loop.idle_ns()]
            return trials.measure(counters, instructions, device, terms, marks=marked, idle_of=idle_of)

    def functions(self, request: Request) -> answers.Functions:
        """The names of the kernel's functions that these addresses lie in; the addresses are in order."""
        return {"functions": names_of(request["addresses"])}

    # ---- the profiler -----------------------------------------------------------------------------------------

    def prepare_stacks(self, request: Request) -> answers.Done:
        """Start perf, so that it runs before the packets come."""
        if self._perf is not None:  # of a recording that failed
            self._perf.process.kill()
        self._perf = Perf(request["rates"])
        self._perf.control("disable")  # its acknowledgement shows that it listens
        return {}

    def record_stacks(self, request: Request) -> answers.Recorded:
        """Wait for packets on the first device, then sample for `seconds`. Returns counters and times."""
        if self._perf is None:
            raise Refusal("perf was not started")
        with trials.ahead_of_packets():
            counters, device = Counters(request["devices"]), request["devices"][0]
            timing = {name: request[name] for name in ("seconds", "settle_s", "begun", "patience_s")}
            return {"recorded": self._perf.record(counters, device, **timing)}

    def read_stacks(self, _request: Request) -> answers.Stacks:
        """Samples by call stack. Ends perf."""
        if self._perf is None:
            raise Refusal("perf was not started")
        perf, self._perf = self._perf, None
        return {"stacks": perf.stacks()}
