# SPDX-License-Identifier: GPL-2.0-or-later
"""How much of the DUT's memory a ruleset may use. A DUT that runs out of memory kills its own programs, even SSH."""

#: A quarter of the DUT's 1024 MiB (topology.yml); its system and the agent need half.
MOST_BYTES = 256 << 20
#: Bytes of one entry of a set with its counters, roughly, and of one bucket of a hash table.
ENTRY, BUCKET = 64, 8
MOST_ENTRIES = MOST_BYTES // ENTRY
#: Packets that a queue may hold. Each takes more than 1 KiB.
MOST_QUEUED = 100_000


def number(text: str) -> int | None:
    """A whole number as C's strtoul reads it: decimal, 0x... or octal with a leading 0. None for anything else."""
    if len(text) > 25 or not text.isascii():
        return None
    try:
        return int(text, 8) if text.startswith("0") and text.isdigit() else int(text, 0)
    except ValueError:
        return None
