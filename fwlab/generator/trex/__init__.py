# SPDX-License-Identifier: GPL-2.0-or-later
"""The engine `trex`: TRex's server on the generator, controlled by JSON-RPC through an SSH tunnel."""

from fwlab.generator.trex.engine import ENGINE

__all__ = ["ENGINE"]
