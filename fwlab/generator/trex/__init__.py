# SPDX-License-Identifier: GPL-2.0-or-later
"""TRex on the generator: its server over SSH, its JSON-RPC through a tunnel, and the engine made of both."""

from fwlab.generator.trex.engine import ENGINE

__all__ = ["ENGINE"]
