# SPDX-License-Identifier: GPL-2.0-or-later
"""The connection table: its entries, and the memory that it takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fwlab.dut.linux.agent import netlink
from fwlab.dut.linux.agent.counts.memory import PAGE, caches
from fwlab.dut.linux.agent.kernel import Kernel

if TYPE_CHECKING:  # it stays on the host
    from fwlab.dut.agent_protocol import TableStates

#: Bytes of one bucket of the hash table: a pointer.
BUCKET = 8


def states(kernel: Kernel) -> TableStates:
    """The table, empty if it is not there. Sizes are in bytes."""
    if "nf_conntrack" not in kernel.modules():
        return {"held": 0, "most": 0, "buckets": 0, "object_bytes": 0, "slab_bytes": 0, "bucket_bytes": 0}
    held, most, buckets = (
        int(kernel.read(f"/proc/sys/net/netfilter/nf_conntrack_{file}")) for file in ("count", "max", "buckets")
    )
    object_bytes, slab_bytes = slabs(kernel.read("/proc/slabinfo"), "nf_conntrack")
    return {
        "held": held,
        "most": most,
        "buckets": buckets,
        "object_bytes": object_bytes,
        "slab_bytes": slab_bytes,
        "bucket_bytes": -(-buckets * BUCKET // PAGE) * PAGE,
    }


def slabs(slabinfo: str, name: str) -> tuple[int, int]:
    """Bytes of one object of this cache, and of all its slabs."""
    found = (cache for cache in caches(slabinfo) if cache.name == name)
    return next(((cache.object_bytes, cache.slab_bytes) for cache in found), (0, 0))


def count_packets(kernel: Kernel) -> bool:
    """Let each new entry count its packets. False if there is no table. Raises OSError."""
    if "nf_conntrack" not in kernel.modules():
        return False
    kernel.write("/proc/sys/net/netfilter/nf_conntrack_acct", "1")
    return True


def flows(kernel: Kernel) -> str:
    """The entries as the kernel lists them; empty if there is no table. Raises OSError."""
    return kernel.read("/proc/net/nf_conntrack") if "nf_conntrack" in kernel.modules() else ""


def forget(kernel: Kernel) -> bool:
    """Delete all entries. False if there is no table. Raises OSError."""
    if "nf_conntrack" not in kernel.modules():
        return False
    with netlink.opened() as opened:
        netlink.forget_connections(opened)
    return True
