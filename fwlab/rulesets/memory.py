# SPDX-License-Identifier: GPL-2.0-or-later
"""How much of the DUT's memory a ruleset may ask for. A DUT without memory ends its own programs, SSH among them."""

from __future__ import annotations

#: A quarter of the 1024 MiB that the DUT has (topology.yml): its system and the agent need half.
MOST_BYTES = 256 << 20
#: One entry of a set, roughly, with its counters; and one bucket of a hash.
ENTRY, BUCKET = 64, 8
MOST_ENTRIES = MOST_BYTES // ENTRY
#: Packets that a queue may hold: each takes a kibibyte and more.
MOST_QUEUED = 100_000


def number(text: str) -> int | None:
    """A whole number as C's strtoul reads it: decimal, 0x or a leading 0; None for anything else."""
    if len(text) > 25 or not text.isascii():
        return None
    try:
        return int(text, 8) if text.startswith("0") and text.isdigit() else int(text, 0)
    except ValueError:
        return None
