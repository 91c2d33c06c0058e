# SPDX-License-Identifier: GPL-2.0-or-later
"""tuple_flow_var: client addresses and ports.

The address advances with each packet, the port whenever the address wraps around. After `limit_flows` flows both
restart.
"""

from dataclasses import dataclass

import numpy as np

from fwlab.traffic.instructions import TupleVar
from fwlab.traffic.variables import Range, share

_UNLIMITED = 1  # flag: no limit of flows; the port range is ignored after its start
_FIRST_PORT = 1025


@dataclass
class TupleVariable:
    """The address and the port of a tuple_flow_var. `limit`: number of flows, 0 for no limit."""

    ip: Range
    port: Range
    limit: int
    unlimited: bool

    @property
    def before(self) -> dict[str, int]:
        """The values before the first packet: one step before the start."""
        ip, wrapped = self.ip.peek(1, forward=False)
        port, _ = self.port.peek(1, forward=False, carry=wrapped)
        return {"ip": ip, "port": port, "flow_limit": 0}

    def values(self, count: int) -> dict[str, np.ndarray]:
        """The first `count` values of each part: uint64 arrays of shape (count,)."""
        return self._unlimited(count) if self.unlimited else self._limited(count)

    def _limited(self, count: int) -> dict[str, np.ndarray]:
        flow = np.arange(count, dtype=np.int64)
        if self.limit:
            flow %= self.limit
        way = (self.ip.start - self.ip.low) + flow * self.ip.step
        ports = (self.port.start - self.port.low) + flow * self.port.step + way // self.ip.size
        number = flow + 1 if self.limit else np.zeros(count, dtype=np.int64)
        return {
            "ip": (self.ip.low + way % self.ip.size).astype(np.uint64),
            "port": (self.port.low + ports % self.port.size).astype(np.uint64),
            "flow_limit": number.astype(np.uint64),
        }

    def _unlimited(self, count: int) -> dict[str, np.ndarray]:
        first = self.before
        way = (first["ip"] - self.ip.low) + np.arange(1, count + 1, dtype=np.int64)
        ports = first["port"] + way // self.ip.size
        ports = np.where(ports > 0xFFFF, _FIRST_PORT + (ports - 0x10000) % (0x10000 - _FIRST_PORT), ports)
        return {
            "ip": (self.ip.low + way % self.ip.size).astype(np.uint64),
            "port": ports.astype(np.uint64),
            "flow_limit": np.zeros(count, dtype=np.uint64),
        }


def tuple_var(ins: TupleVar, core: int, cores: int) -> TupleVariable:
    """The variable on one core. Each of several cores has its own clients, ports and share of the limit."""
    variable = TupleVariable(
        Range.make(ins.ip_min, ins.ip_max, ins.ip_min, 1),
        Range.make(ins.port_min, ins.port_max, ins.port_min, 1),
        ins.limit_flows,
        bool(ins.flags & _UNLIMITED),
    )
    _for_core(variable, 0, 1)
    if cores > 1:
        _for_core(variable, core, cores)
    return variable


def _for_core(variable: TupleVariable, core: int, cores: int) -> None:
    phase = variable.ip.turns(core)  # read it before the address changes its step
    variable.ip.for_core(core, cores)
    turns = variable.ip.turns()
    variable.port.step = 1
    start = variable.port.peek(phase, forward=True)[0]
    variable.port.for_core(0, turns)
    variable.port.start = start
    if variable.limit:
        variable.limit = share(variable.limit, core, cores)
