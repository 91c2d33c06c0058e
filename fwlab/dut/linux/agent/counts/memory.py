# SPDX-License-Identifier: GPL-2.0-or-later
"""The memory that the kernel holds, apart from what belongs to processes, files and code of modules.

Rulesets, sets and tables are allocated in four ways, and the kernel counts each of them in another place: objects of
caches, pages of what is too large for a cache, vmalloc, and per-CPU memory. Pages of the page cache and of programs
are none of them.
"""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

from fwlab.dut.linux.agent.kernel import Kernel

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


#: Caches of processes and open files (tools, workers of the kernel and udev come and go), and of what the kernel can
#: drop at any time. kmalloc-rcl-* belong to them, too.
ELSEWHERE = frozenset(
    (
        *("task_struct", "signal_cache", "sighand_cache", "files_cache", "fs_cache", "mm_struct", "cred_jar", "pid"),
        *("vm_area_struct", "anon_vma", "anon_vma_chain", "maple_node", "sigqueue", "nsproxy", "perf_event"),
        *("filp", "lsm_file_cache", "lsm_inode_cache", "seq_file", "names_cache", "ep_head", "file_lock_cache"),
        *("pde_opener", "kernfs_node_cache", "kernfs_iattrs_cache", "vmap_area", "kmem_cache", "kmem_cache_node"),
        *("dentry", "inode_cache", "proc_inode_cache", "sock_inode_cache", "shmem_inode_cache", "mqueue_inode_cache"),
        *("ext4_inode_cache", "ext4_extent_status", "bdev_cache", "jbd2_journal_head", "buffer_head", "bio-128"),
        *("radix_tree_node", "skbuff_head_cache", "skbuff_fclone_cache", "TCP", "UDP"),
    )
)
#: Callers of vmalloc: stacks of processes, code of modules, terminals, and the books of per-CPU memory.
NOT_OF_RULESETS = frozenset(
    ("kernel_clone", "copy_process", "dup_task_struct", "load_module", "n_tty_open", "pcpu_create_chunk")
)
#: Seconds between two readings, and how many in a row must be the same.
PAUSE_S, SAME = 0.2, 3
#: Has the kernel free at once what it would free within five seconds (kfree_rcu), along with directory entries that it
#: can read again.
DROP_CACHES = "/proc/sys/vm/drop_caches"
#: Readings after which a figure that still changes is given up.
MAX_READINGS = 40


class KernelMemory:
    """Reads it again and again.

    Opening a file of sysfs or proc takes memory, and a cache that is used meanwhile counts a whole slab too many. So
    these files stay open.
    """

    name = "memory"

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._slabinfo: Callable[[], str] | None = None
        self._shrink: dict[str, Callable[[str], bool]] = {}

    def answer(self, _request: dict[str, Any]) -> dict[str, Any]:
        """Bytes that the kernel holds, for rulesets and for everything else, and whether that has settled."""
        held, settled = self.settled()
        return {"bytes": held, "settled": settled}

    def settled(self) -> tuple[int, bool]:
        """Bytes that the kernel holds, once SAME readings agree; False with the last one if they never do."""
        held, same = -1, 0
        for _ in range(MAX_READINGS):
            before, held = held, self._held()
            same = same + 1 if held == before else 1
            if same == SAME:
                return held, True
        return held, False

    def _held(self) -> int:
        slabinfo = self._slabinfo = self._slabinfo or self._kernel.reader("/proc/slabinfo")
        self._kernel.write(DROP_CACHES, "2")
        # A CPU keeps slabs for itself, and counts all their objects as used until it gives them back.
        for name in (cache.name for cache in caches(slabinfo())):
            if _may_be_of_rulesets(name) and not self._shrink.get(name, _closed)("1"):
                # Its module may have gone and come back, with another file of the same name.
                self._shrink[name] = self._kernel.writer(f"/sys/kernel/slab/{name}/shrink")
                self._shrink[name]("1")
        time.sleep(PAUSE_S)
        found = caches(slabinfo())
        fields = (line.split(":", 1) for line in self._kernel.read("/proc/meminfo").splitlines())
        counts = {name: int(rest.split()[0]) * 1024 for name, rest in fields}
        objects = sum(cache.objects * cache.object_bytes for cache in found if _may_be_of_rulesets(cache.name))
        large = counts["Slab"] - sum(cache.slab_bytes for cache in found)
        return objects + large + vmalloc(self._kernel.read("/proc/vmallocinfo")) + counts["Percpu"]


COUNT = KernelMemory


def _closed(_text: str) -> bool:
    return False


def _may_be_of_rulesets(name: str) -> bool:
    return name not in ELSEWHERE and not name.startswith("kmalloc-rcl")


def vmalloc(vmallocinfo: str) -> int:
    """Bytes of the pages of all areas in this text that may belong to rulesets."""
    total = 0
    for line in vmallocinfo.splitlines():
        words = line.split()
        caller = words[2].partition("+")[0] if len(words) > 2 else ""
        if caller not in NOT_OF_RULESETS:
            total += sum(int(word[len("pages=") :]) * PAGE for word in words if word.startswith("pages="))
    return total
