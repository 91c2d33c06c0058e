# SPDX-License-Identifier: GPL-2.0-or-later
"""Memory of a ruleset: what the agent counts, and how the metric weighs."""

from types import SimpleNamespace

import pytest

from fwlab.dut.conversation import validated
from fwlab.dut.linux.agent.counts import memory
from fwlab.dut.protocol import UnknownOperation
from fwlab.metrics.measurement import MeasurementSpec, MeasuringSession, Step
from fwlab.metrics.memory import METRIC, WEIGH, Held
from fwlab.metrics.state_table import FILL
from fwlab.model.case import Trials
from fwlab.model.errors import CannotMeasure
from fwlab.model.results import Measured
from fwlab.model.ruleset import RulesetFile
from tests.fakes.factories import testbed
from tests.fakes.fake_kernel import FakeKernel

#: Lines as a kernel of 6.1 prints them.
SLABINFO = """slabinfo - version: 2.1
# name            <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab> : tunables <l> <b> <s> : slabdata
xt_hashlimit        {buckets:5}   1008    120   34    1 : tunables    0    0    0 : slabdata     30     30      0
task_struct            90     99   3072   10    8 : tunables    0    0    0 : slabdata     10     10      0
dentry               4000   4200    192   21    1 : tunables    0    0    0 : slabdata    200    200      0
kmalloc-rcl-64         64     64     64   64    1 : tunables    0    0    0 : slabdata      1      1      0
kmalloc-64            100    128     64   64    1 : tunables    0    0    0 : slabdata      2      2      0
"""
SLABS = (30 + 80 + 200 + 1 + 2) * 4096
VMALLOC = """0x000000001-0x000000002   69632 hashlimit_mt_check_common+0x25e/0x570 [xt_hashlimit] pages=16 vmalloc N0=16
0x000000002-0x000000003   20480 kernel_clone+0x9b/0x3b0 pages=4 vmalloc N0=4
0x000000003-0x000000004   53248 load_module+0x9a/0x3b0 pages=12 vmalloc N0=12
0x000000004-0x000000005    8192 memremap+0x159/0x210 phys=0x00000000000f5000 ioremap
0x000000005-0x000000006   24576 unpurged vm_area
"""


class Dut(FakeKernel):
    """A kernel whose figures are set by the test; each reading takes the next number of buckets."""

    def __init__(self, *buckets: int, large: int = 0) -> None:
        super().__init__()
        self.buckets, self.shrunk = list(buckets), []
        self.files["/proc/vmallocinfo"] = VMALLOC
        slab, percpu = (SLABS + large) // 1024, 8
        self.files["/proc/meminfo"] = f"MemFree: 5 kB\nSlab: {slab} kB\nHugePages_Total: 0\nPercpu: {percpu} kB\n"

    def read(self, path: str) -> str:
        if path == "/proc/slabinfo":
            # Read twice for each reading: for the names, and for the numbers.
            return SLABINFO.format(buckets=self.buckets[0])
        if path == "/proc/vmallocinfo" and len(self.buckets) > 1:
            self.buckets.pop(0)
        return super().read(path)

    def write(self, path: str, text: str) -> None:
        self.shrunk.append(path)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "PAUSE_S", 0)


def test_objects_large_pages_vmalloc_and_per_cpu_memory_are_added() -> None:
    held, settled = memory.KernelMemory(Dut(1000, large=65536)).settled()
    objects = 1000 * 120 + 100 * 64  # none of processes, none that can be dropped
    assert (held, settled) == (objects + 65536 + 16 * 4096 + 8 * 1024, True)
    answer = memory.KernelMemory(Dut(1000, large=65536)).answer({})
    assert validated(answer, Held, "memory") == {"bytes": held, "settled": True}


def test_caches_are_shrunk_before_objects_are_counted() -> None:
    kernel = Dut(1)
    memory.KernelMemory(kernel).settled()
    caches = {"/sys/kernel/slab/xt_hashlimit/shrink", "/sys/kernel/slab/kmalloc-64/shrink"}
    assert set(kernel.shrunk) == {memory.DROP_CACHES, *caches}


def test_a_figure_counts_once_it_repeats() -> None:
    one = memory.KernelMemory(Dut(1)).settled()[0]
    assert memory.KernelMemory(Dut(5, 4, 4, 3, 3, 3)).settled() == (one + 2 * 120, True)
    assert memory.KernelMemory(Dut(*range(1, 100))).settled()[1] is False


class WeighedDut:
    """A kernel of 1000 bytes and a ruleset of `weight`; `noise` is added from reading to reading."""

    def __init__(self, weight: int, noise: int = 0, settled: bool = True) -> None:
        self.weight, self.noise, self.settles = weight, noise, settled
        self.loaded, self.read, self.done = True, 0, []

    def load(self, files: list, *, each: bool) -> None:
        self.done.append("load")
        self.loaded = True

    def unload(self) -> None:
        self.done.append("unload")
        self.loaded = False

    def ask(self, operation: str, answer: type, *, timeout: float) -> Held:
        assert (operation, answer) == (memory.COUNT.name, Held)
        self.read += 1
        self.done.append("read")
        return {"bytes": 1000 + self.noise * self.read + self.loaded * self.weight, "settled": self.settles}


def weigh(dut: WeighedDut, *, text: str = "x", packets: int | None = None) -> Measured:
    files = [RulesetFile("rules.nft", "nft", text)]
    spec = MeasurementSpec("x", "x", "x", files, ["memory"], trial=Trials(count=5), state_packets=packets)
    found = Measured(id="x", title="x", ruleset="x", ruleset_hash="", metric="memory")
    return WEIGH.run(MeasuringSession(SimpleNamespace(dut=dut)), spec, found)


def test_a_ruleset_weighs_what_its_removal_frees() -> None:
    dut = WeighedDut(weight=4096)
    found = weigh(dut)
    assert dut.done == ["read", "unload", "read", *["load", "read", "unload", "read"] * 2]
    assert (METRIC.values(found, testbed()), found.problems) == ([4096] * 3, [])
    assert METRIC.values(weigh(WeighedDut(weight=4096, noise=16)), testbed()) == [4080] * 3


@pytest.mark.parametrize(("text", "packets"), [("x" * (1 << 20), None), ("x", 16384)])
def test_a_large_ruleset_and_filled_tables_are_weighed_once(text: str, packets: int | None) -> None:
    dut = WeighedDut(weight=4096)
    assert METRIC.values(weigh(dut, text=text, packets=packets), testbed()) == [4096]
    assert dut.done == ["read", "unload", "read"]


def test_memory_that_does_not_settle_is_in_doubt() -> None:
    assert weigh(WeighedDut(weight=1, settled=False)).problems


@pytest.mark.parametrize(("packets", "steps"), [(16384, [FILL, WEIGH]), (None, [WEIGH])])
def test_packets_fill_the_tables_first(packets: int | None, steps: list[Step]) -> None:
    spec = MeasurementSpec("x", "x", "x", [], ["memory"], traffic="flood", state_packets=packets)
    assert METRIC.steps(spec, "packets", "instructions") == steps


def test_a_system_whose_agent_does_not_count_it_cannot_measure_it() -> None:
    class Other(WeighedDut):
        def ask(self, operation: str, answer: type, *, timeout: float) -> Held:
            raise UnknownOperation("dut: unknown", "")

    with pytest.raises(CannotMeasure, match="Linux only") as raised:
        weigh(Other(weight=1))
    assert raised.value.hint == "leave the metric `memory` out"
