# SPDX-License-Identifier: GPL-2.0-or-later
"""TRex on the generator, controlled by the labs' own client."""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Iterator
from typing import Any, Self

from engine.benchmark.machine import Bench
from fwlab.generator.trex.engine import Port
from fwlab.generator.trex.server import Server
from fwlab.model.topology import Topology


class Trex:
    """TRex as a player. Its server runs within the context."""

    name = "trex"

    def __init__(self, bench: Bench, topology: Topology) -> None:
        self._ends = topology.links["generator-dut"].ends
        device = self._ends["generator"].dev
        self._server = Server(bench.ssh, topology, device, small=True)
        self._made = (bench.ssh, device)
        self._port: Port | None = None

    def __enter__(self) -> Self:
        self._server.start()
        self._port = Port(self._server, *self._made)
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop()

    @contextlib.contextmanager
    def playing(self, size: int) -> Iterator[None]:
        """Send one frame of `size` bytes, flat out."""
        assert self._port is not None  # noqa: S101 - set by __enter__
        self._port.load([{"stream_id": 1, "stream": self._stream(size)}])
        self._port.start(None)
        try:
            yield
        finally:
            self._port.stop()

    def _stream(self, size: int) -> dict[str, Any]:
        head = bytes.fromhex((self._ends["dut"].mac + self._ends["generator"].mac).replace(":", "") + "0800")
        ipv4 = bytes.fromhex("450000000000000040110000c6120005c6130005")
        packet = (head + ipv4).ljust(size, b"\0")
        return {
            "flags": 0,
            "action_count": 0,
            "enabled": True,
            "self_start": True,
            "isg": 0.0,
            "core_id": -1,
            "next_stream_id": -1,
            "stream_id": 1,
            "random_seed": 0,
            "mode": {"type": "continuous", "rate": {"type": "pps", "value": 1}},
            "packet": {"binary": base64.b64encode(packet).decode(), "meta": ""},
            "vm": {"instructions": []},
            "flow_stats": {"enabled": False},
        }
