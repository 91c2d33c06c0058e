# SPDX-License-Identifier: GPL-2.0-or-later
"""A stand-in for the calls of bpf(2): maps as dictionaries, and what is attached to which device."""

from __future__ import annotations

import errno
import os
import socket
import struct

import pytest

from fwlab.rulesets.files import ruleset_file
from fwlab.rulesets.kinds import bpf
from fwlab.rulesets.kinds.xdp_table import XdpTableLoader
from tests.fakes.bpf_machine import Machine, Map
from tests.fakes.fake_kernel import FakeKernel


class FakeBpf:
    """Takes the place of the system call and of close(2)."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.kinds: dict[int, tuple[int, int, int]] = {}
        self.held: dict[int, dict[bytes, bytes]] = {}
        self.code: dict[int, bytes] = {}
        self.names: list[str] = []
        self.attached: dict[int, tuple[int, int]] = {}
        self.closed: list[int] = []
        self.number = 100
        monkeypatch.setattr(bpf, "new_map", self.new_map)
        monkeypatch.setattr(bpf, "fill", self.fill)
        monkeypatch.setattr(bpf, "load_xdp", self.load_xdp)
        monkeypatch.setattr(bpf, "attach_xdp", self.attach_xdp)
        monkeypatch.setattr(socket, "if_nametoindex", lambda name: int(name.removeprefix("eth")))
        monkeypatch.setattr(os, "close", self.closed.append)

    def _new(self) -> int:
        self.number += 1
        return self.number

    def new_map(self, kind: int, key_bytes: int, value_bytes: int, most: int, flags: int) -> int:
        assert value_bytes == 4
        assert flags == {bpf.HASH: bpf.ZERO_SEED, bpf.LPM_TRIE: bpf.NO_PREALLOC, bpf.ARRAY: 0}[kind]
        opened = self._new()
        self.kinds[opened], self.held[opened] = (kind, key_bytes, most), {}
        return opened

    def fill(self, opened: int, keys: bytes, values: bytes, count: int) -> None:
        kind, width, most = self.kinds[opened]
        assert len(keys) == width * count
        assert len(values) == 4 * count
        for place in range(count):
            self.held[opened][keys[width * place :][:width]] = values[4 * place :][:4]
        assert len(self.held[opened]) <= most
        assert kind != bpf.ARRAY or all(int.from_bytes(key, "little") < most for key in self.held[opened])

    def load_xdp(self, code: bytes, name: str) -> int:
        assert len(name) < 16
        opened = self._new()
        self.code[opened] = code
        self.names.append(name)
        return opened

    def attach_xdp(self, loaded: int, device: int) -> int:
        if any(device == other and link not in self.closed for link, (_, other) in self.attached.items()):
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))
        opened = self._new()
        self.attached[opened] = (loaded, device)
        return opened

    def map(self, opened: int) -> Map:
        kind, width, most = self.kinds[opened]
        held = self.held[opened]

        def look(key: bytes) -> bytes | None:
            if kind == bpf.HASH:
                return held.get(key)
            if kind == bpf.ARRAY:
                return held.get(key, bytes(4)) if int.from_bytes(key, "little") < most else None
            address = int.from_bytes(key[4:], "big")
            for length in range(32, -1, -1):
                network = address >> (32 - length) << (32 - length)
                found = held.get(struct.pack("<I", length) + network.to_bytes(4, "big"))
                if found is not None:
                    return found
            return None

        return width, look

    def machine(self, device: int = 0) -> Machine:
        """The program that runs on the device."""
        [loaded] = [loaded for link, (loaded, other) in self.attached.items() if other == device]
        return Machine(self.code[loaded], {opened: self.map(opened) for opened in self.kinds})


def load(text: str) -> XdpTableLoader:
    """Validate a file and load it, as the agent does."""
    ruleset_file("x.xdp-table", text)
    loader = XdpTableLoader(FakeKernel())
    for call in loader.calls("x.xdp-table", text, each=False):
        assert callable(call)
        call()
    return loader
