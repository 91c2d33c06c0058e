# SPDX-License-Identifier: GPL-2.0-or-later
"""Packs the agent for its journey: one zip application that Python runs as it is."""

from __future__ import annotations

import io
import zipfile
from importlib import resources

AGENT = "fwlab.dut.linux.agent"


def agent_parcel() -> bytes:
    """The agent's modules under their own names, and the packages above them empty: nothing else is sent along."""
    packages = AGENT.split(".")
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for depth in range(1, len(packages)):
            archive.writestr("/".join([*packages[:depth], "__init__.py"]), "")
        for item in sorted(resources.files(AGENT).iterdir(), key=lambda item: item.name):
            if item.name.endswith(".py"):
                archive.writestr("/".join([*packages, item.name]), item.read_bytes())
        archive.writestr("__main__.py", f"import {AGENT}.__main__\n")
    return packed.getvalue()
