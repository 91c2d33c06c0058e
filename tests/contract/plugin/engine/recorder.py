# SPDX-License-Identifier: GPL-2.0-or-later
"""A plug-in with a traffic engine, as a package outside fwlab would define it. See test_engine_plugin.py."""

from __future__ import annotations

import contextlib

from fwlab.generator.protocol import Availability, PlaybackResult


class Recording:
    """Sends nothing, and reports that it sent everything."""

    def __init__(self, calls, load, count):
        self.calls, self.load, self.count = calls, load, count

    def stop(self, timeout=60):
        self.calls.append("stop")
        return PlaybackResult(70, 0.1)

    def wait(self, timeout):
        self.calls.append("wait")
        return PlaybackResult(self.count, self.count / self.load, self.load)

    def abandon(self):
        self.calls.append("abandon")


class RecorderEngine:
    name = "recorder"

    def __init__(self, *, emulated):
        self.calls = [f"made, emulated: {emulated}"]

    def use(self, store, traffic):
        self.calls.append(f"use {traffic}: {len(store.table(traffic).frames)} frames")

    def start(self, *, load=None, count=None):
        self.calls.append(f"start at {load} for {count}")
        return Recording(self.calls, load, count)

    def close(self):
        self.calls.append("close")


class Recorder:
    """Its entry in the registry. It is used only if it is asked for by name."""

    name, position, automatic = "recorder", 0, False

    def availability(self, project):
        return Availability(True, "part of this test")

    def check(self, store, traffic, *, asked):
        store.table(traffic)

    def make(self, ssh, topology, *, emulated):
        return RecorderEngine(emulated=emulated)

    def tcp_endpoints(self, generator, sink, topology, connections, *, emulated):
        return contextlib.nullcontext(f"endpoints on port {connections.port}")


engine = Recorder()
