# SPDX-License-Identifier: GPL-2.0-or-later
"""The kernel's caches of objects, as /proc/slabinfo lists them (slabinfo(5), version 2.1)."""

from typing import NamedTuple

PAGE = 4096


class Cache(NamedTuple):
    """One cache.

    objects  those in use
    object_bytes, slab_bytes  size of one object, memory of all slabs
    """

    name: str
    objects: int
    object_bytes: int
    slab_bytes: int


def caches(slabinfo: str) -> list[Cache]:
    """All caches in this text."""
    found = []
    for line in slabinfo.splitlines():
        sizes, data, pages = line.partition(" slabdata ")
        if data and not line.startswith("#"):
            name, used, _, object_bytes, _, pages_each = sizes.split()[:6]
            slab_bytes = int(pages.split()[1]) * int(pages_each) * PAGE
            found.append(Cache(name, int(used), int(object_bytes), slab_bytes))
    return found
