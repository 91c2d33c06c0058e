# SPDX-License-Identifier: GPL-2.0-or-later
"""The connection table: its entries, and the memory that it takes."""

from fwlab.dut.linux.agent.kernel import Kernel
from fwlab.dut.linux.agent.slabinfo import PAGE, caches

#: Bytes of one bucket of the hash table: a pointer.
BUCKET = 8
_FILES = {"held": "count", "most": "max", "buckets": "buckets"}


def states(kernel: Kernel) -> dict[str, int]:
    """The fields of model.trial.States, without `played`. Sizes are in bytes."""
    found = dict.fromkeys(("held", "most", "buckets", "object_bytes", "slab_bytes", "bucket_bytes"), 0)
    if "nf_conntrack" not in kernel.modules():
        return found
    for name, file in _FILES.items():
        found[name] = int(kernel.read(f"/proc/sys/net/netfilter/nf_conntrack_{file}"))
    found["bucket_bytes"] = -(-found["buckets"] * BUCKET // PAGE) * PAGE
    found["object_bytes"], found["slab_bytes"] = slabs(kernel.read("/proc/slabinfo"), "nf_conntrack")
    return found


def slabs(slabinfo: str, name: str) -> tuple[int, int]:
    """Bytes of one object of this cache, and of all its slabs."""
    found = (cache for cache in caches(slabinfo) if cache.name == name)
    return next(((cache.object_bytes, cache.slab_bytes) for cache in found), (0, 0))
