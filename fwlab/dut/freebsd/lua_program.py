# SPDX-License-Identifier: GPL-2.0-or-later
"""Packs the agent's Lua modules into one program for flua, the Lua of FreeBSD's base system."""

from __future__ import annotations

from importlib import resources

AGENT = "fwlab.dut.freebsd.agent"
MAIN = "main"


def agent_program() -> bytes:
    """Every module under its name, then the main one. Errors name the module and its line."""
    texts = {
        item.name.removesuffix(".lua"): item.read_text(encoding="utf-8")
        for item in sorted(resources.files(AGENT).iterdir(), key=lambda item: item.name)
        if item.name.endswith(".lua")
    }
    parts = [f'package.preload["{name}"] = {_chunk(name, text)}\n' for name, text in texts.items() if name != MAIN]
    return "".join([*parts, f"{_chunk(MAIN, texts[MAIN])}(...)\n"]).encode()


def _chunk(name: str, text: str) -> str:
    """The module's text as a function. A newline after the opening bracket is no part of a Lua string."""
    if "]==]" in text:
        raise ValueError(f"{name}.lua contains ]==], which ends the string that it is packed in")
    return f'assert(load([==[\n{text}]==], "@{name}.lua"))'
