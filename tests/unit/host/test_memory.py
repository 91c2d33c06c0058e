# SPDX-License-Identifier: GPL-2.0-or-later
"""The memory that is left for machines: of the host, or of the control group with the least."""

import json
from pathlib import Path

import pytest

from fwlab.checkout.raw_results import raw_results, read_document
from fwlab.cli import doctor
from fwlab.host import memory
from fwlab.host.memory import Room, memory_left, needed_mib, require_memory
from fwlab.measure.host_room import memory_of_a_set, reject_too_many
from fwlab.model.errors import BadInput, CannotMeasure
from tests.checkout import PROJECT, TOPOLOGY

MIB = 1 << 20
V2, V1 = "sys/fs/cgroup", "sys/fs/cgroup/memory"
NO_LIMIT = "9223372036854771712"


def host(root: Path, cgroup: str, files: dict[str, str]) -> Path:
    """A host with 8000 MiB left."""
    of_process = {"proc/meminfo": f"MemTotal: 1 kB\nMemAvailable:  {8000 << 10} kB\n", "proc/self/cgroup": cgroup}
    for name, text in {**of_process, **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def v2(group: str, limit: str, used: int, cached: int = 0) -> dict[str, str]:
    stat = f"anon 5\ninactive_file {cached}\nactive_file 0\nshmem 77\n"
    return {f"{group}/memory.max": limit, f"{group}/memory.current": str(used), f"{group}/memory.stat": stat}


def v1(group: str, limit: str, used: int, cached: int = 0) -> dict[str, str]:
    stat = f"inactive_file 1\ntotal_inactive_file {cached}\ntotal_active_file 0\n"
    names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "memory.stat")
    return {f"{group}/{name}": text for name, text in zip(names, (limit, str(used), stat), strict=True)}


@pytest.mark.parametrize(
    ("cgroup", "files", "left"),
    [
        ("0::/\n", {}, Room(8000)),
        ("0::/job\n", v2(f"{V2}/job", "max", 5), Room(8000)),
        ("0::/\n", v2(V2, str(2048 * MIB), 100 * MIB), Room(1948, 2048)),
        ("0::/\n", v2(V2, str(2048 * MIB), 1100 * MIB, 1000 * MIB), Room(1948, 2048)),
        ("0::/a/b\n", {**v2(f"{V2}/a/b", "max", 5), **v2(f"{V2}/a", str(900 * MIB), 0)}, Room(900, 900)),
        ("0::/a\n", v2(f"{V2}/a", str(9000 * MIB), 0), Room(8000)),
        ("0::/../other\n", v2(V2, str(700 * MIB), 0), Room(700, 700)),
        ("4:memory:/docker/abc\n0::/\n", v1(V1, str(1024 * MIB), 24 * MIB), Room(1000, 1024)),
        ("4:cpu,memory:/job\n", {**v1(V1, NO_LIMIT, 9), **v1(f"{V1}/job", str(512 * MIB), MIB, MIB)}, Room(512, 512)),
        ("3:cpu:/\n", v1(V1, str(512 * MIB), 0), Room(8000)),
        ("0::/\n", v2(V2, str(10 * MIB), 20 * MIB), Room(0, 10)),
    ],
)
def test_the_tightest_limit_counts(tmp_path: Path, cgroup: str, files: dict[str, str], left: Room) -> None:
    assert memory_left(host(tmp_path, cgroup, files)) == left


def test_a_machine_is_counted_as_its_qemu_was_measured() -> None:
    """One that is larger than those that were measured, such as the generator with TRex, is counted whole."""
    found = [json.loads(read_document(path))["resident_mib"] for path in raw_results(PROJECT, "lab03-ipset/*-waits")]
    most = max(max(resident.values()) for resident in found)
    assert 0.9 * memory.HELD_MIB < most < memory.HELD_MIB
    assert max(node.memory_mib for node in TOPOLOGY.nodes.values()) <= memory.MEASURED_MIB
    assert needed_mib([640, 1024, 384]) == 3 * memory.HELD_MIB + memory.PROGRAMS_MIB
    assert needed_mib([2048]) == 2048 + memory.PROGRAMS_MIB
    assert memory_left().mib > 0


def left(monkeypatch: pytest.MonkeyPatch, room: Room) -> None:
    for module in ("fwlab.host.memory", "fwlab.measure.host_room", "fwlab.cli.doctor"):
        monkeypatch.setattr(f"{module}.memory_left", lambda: room)


@pytest.mark.parametrize(
    ("room", "says", "hint"),
    [
        (Room(900), "900 MiB are available", "vagrant destroy"),
        (Room(900, 1024), "900 MiB of the 1024 that this container or job may use", "--memory=2048m"),
    ],
)
def test_too_little_is_one_sentence_with_a_command(
    monkeypatch: pytest.MonkeyPatch, room: Room, says: str, hint: str
) -> None:
    left(monkeypatch, room)
    with pytest.raises(CannotMeasure, match=r"^3 machines need 1500 MiB of memory; ") as error:
        require_memory([640, 1024, 384])
    assert says in error.value.message
    assert hint in error.value.hint
    finding = doctor._memory(PROJECT)
    assert (finding.ok, finding.next) == (False, room.hint)
    with pytest.raises(BadInput, match=r"1 workers need 1500 MiB of memory; 900"):
        reject_too_many(PROJECT, 1)


def test_enough_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    left(monkeypatch, Room(memory_of_a_set(PROJECT)))
    require_memory([640, 1024, 384])
    assert doctor._memory(PROJECT).ok
