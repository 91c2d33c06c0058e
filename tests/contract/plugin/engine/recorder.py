# SPDX-License-Identifier: GPL-2.0-or-later
"""A plug-in with a traffic engine, as a package outside fwlab would define it. See test_engine_plugin.py."""

from __future__ import annotations

import contextlib

from fwlab.generator.protocol import Availability


class Recorder:
    """Its entry in the registry. It is used only if it is asked for by name."""

    name, position, automatic = "recorder", 0, False

    def availability(self, project):
        return Availability(True, "part of this test")

    def check(self, store, traffic, *, asked):
        store.table(traffic)

    def make(self, ssh, topology, *, emulated):
        return f"an engine, emulated: {emulated}"

    def tcp_endpoints(self, generator, sink, topology, connections, *, emulated):
        return contextlib.nullcontext(f"endpoints on port {connections.port}")


engine = Recorder()
