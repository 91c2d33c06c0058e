# SPDX-License-Identifier: GPL-2.0-or-later
"""What is removed of boxes, bases, saved states and volumes, what stays, and what `fwlab doctor` says of them."""

import os
import struct
import time
from pathlib import Path

import pytest

from fwlab.cli import doctor
from fwlab.images import disk_use
from fwlab.images.disk_use import BASE_DISK, UNUSED_S, bytes_of, remove_all_but, remove_old, trim

DAY_S = 24 * 3600
#: Keys of an image's boxes by the days since each was used.
AGES = {"000000000001": 10, "000000000002": 9, "000000000003": 8, "000000000004": 1}


class Host:
    """Folders of the cache, of Vagrant and of libvirt. `asked`: what virsh was called with."""

    def __init__(self, top: Path) -> None:
        self.cache, self.vagrants, self.pool = top / "cache", top / "vagrant/boxes", top / "pool"
        self.asked = top / "asked"
        for folder in (self.cache / "boxes", self.cache / "saved", self.vagrants, self.pool):
            folder.mkdir(parents=True)
        (top / "bin").mkdir()
        (top / "bin/virsh").write_text(f'#!/bin/sh\necho "$LIBVIRT_AUTOSTART $*" >>{self.asked}\n')
        (top / "bin/virsh").chmod(0o755)

    def box(self, image: str, key: str, days: float) -> dict[str, str]:
        made, name = self.cache / f"boxes/{image}-{key}.box", f"fwlab-{image}-{key}"
        (self.vagrants / name / "0/libvirt").mkdir(parents=True)
        for path in (made, made.with_name(f"{made.name}.json"), self.vagrants / name / "0/libvirt/box.img"):
            path.write_text("box")
        for path in (made, self.vagrants / name):
            age(path, days)
        return {"box": name, "path": str(made)}

    def state(self, name: str, days: float) -> None:
        for suffix in (".key", ".lock", ".qcow2.zst", ".qcow2.zst.json"):
            (self.cache / f"saved/{name}{suffix}").write_text("state")
        age(self.cache / f"saved/{name}.qcow2.zst", days)

    def base(self, name: str, days: float) -> None:
        folder = self.cache / "bases" / name
        folder.mkdir(parents=True)
        for file in (BASE_DISK, f"{BASE_DISK}.json", "initrd.img", "vmlinuz"):
            (folder / file).write_text("base")
        age(folder / BASE_DISK, days)

    def kept(self, image: str) -> tuple[list[str], list[str]]:
        """Last digits of the keys in the cache and in Vagrant's folder."""
        cached = [path.name[-5] for path in self.cache.glob(f"boxes/{image}-*.box")]
        return sorted(cached), sorted(path.name[-1] for path in self.vagrants.glob(f"fwlab-{image}-*"))

    @property
    def states(self) -> set[str]:
        return {path.name.partition(".")[0] for path in self.cache.glob("saved/*")}


def age(path: Path, days: float) -> None:
    os.utime(path, (time.time() - days * DAY_S,) * 2)


def layer(below: str) -> bytes:
    """The beginning of a qcow2 disk."""
    return struct.pack(">4sIQI", b"QFI\xfb", 3, 64, len(below)).ljust(64, b"\0") + below.encode()


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    found = Host(tmp_path)
    monkeypatch.setenv("VAGRANT_HOME", str(tmp_path / "vagrant"))
    monkeypatch.setenv("FWLAB_CACHE", str(found.cache))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setattr(disk_use, "machine_disks", lambda: found.pool)
    return found


def test_of_each_image_the_newest_stays_and_one_more_if_it_was_used_lately(host: Host) -> None:
    for key, days in AGES.items():
        host.box("dut-linux", key, days)
    used, *_ = [host.box("sink", key, days) for key, days in AGES.items()]
    (host.vagrants / "somebody-elses").mkdir()
    remove_old(host.cache, {"sink": used})
    assert host.kept("dut-linux") == (["4"], ["4"])
    assert host.kept("sink") == (["1", "4"], ["1", "4"])
    assert not [path for path in host.cache.glob("boxes/*.json") if not path.with_suffix("").exists()]
    age(host.vagrants / "fwlab-sink-000000000004", UNUSED_S / DAY_S + 1)
    remove_old(host.cache, {"sink": used})
    assert host.kept("sink") == (["1", "4"], ["1"])
    assert (host.vagrants / "somebody-elses").is_dir()


@pytest.mark.parametrize(
    ("limit", "bases", "states"),
    [
        (1 << 30, {"sink-1", "sink-2"}, {"dut-1", "dut-2", "sink-1"}),
        (1, set(), {"dut-2", "sink-1"}),
    ],
    ids=["small enough", "too large"],
)
def test_what_is_made_again_in_a_minute_goes_where_the_cache_is_too_large(
    host: Host, limit: int, bases: set[str], states: set[str]
) -> None:
    host.box("sink", "000000000001", 1)
    host.base("sink-1", 2)
    host.base("sink-2", 1)
    for name, days in {"dut-1": 3, "dut-2": 2, "sink-1": 5}.items():
        host.state(name, days)
    trim(host.cache, limit=limit)
    assert {path.parent.name for path in host.cache.glob(f"bases/*/{BASE_DISK}*")} == bases
    assert {path.parent.name for path in host.cache.glob("bases/*/initrd.img")} == bases
    assert len(list(host.cache.glob("bases/*/vmlinuz"))) == 2, "KVM is tried with it"
    assert host.states == states
    assert host.kept("sink") == (["1"], ["1"])


def test_the_oldest_base_goes_first_and_no_more_than_has_to(host: Host) -> None:
    host.base("sink-1", 1)
    host.base("sink-2", 2)
    host.state("dut-1", 2)
    host.state("dut-2", 1)
    trim(host.cache, limit=bytes_of(host.cache) - 1)
    assert [path.parent.name for path in host.cache.glob(f"bases/*/{BASE_DISK}")] == ["sink-1"]
    assert host.states == {"dut-1", "dut-2"}


def test_a_volume_goes_with_its_box_unless_a_disk_stands_on_it(host: Host) -> None:
    host.box("sink", "000000000001", 0)
    names = {key: f"fwlab-sink-00000000000{key}_vagrant_box_image_0_17_box.img" for key in "123"}
    for name in names.values():
        (host.pool / name).write_bytes(layer(""))
    (host.pool / "fwlab-0a-lab03-ipset.img").write_bytes(layer(f"/pool/{names['2']}"))
    (host.pool / "raw.img").write_bytes(b"\0" * 20)
    remove_old(host.cache, {})
    left = {path.name for path in host.pool.iterdir()}
    assert left == {names["1"], names["2"], "fwlab-0a-lab03-ipset.img", "raw.img"}
    assert host.asked.read_text().split()[0] == "0", "a libvirt that does not run is not started"
    assert host.asked.read_text().rstrip().endswith("pool-refresh default")


def test_nothing_is_removed_where_a_disk_cannot_be_read(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    volume = host.pool / "fwlab-sink-1_vagrant_box_image_0_17_box.img"
    for path in (volume, host.pool / "fwlab-0a-lab03-ipset.img"):
        path.write_bytes(layer(""))

    def denied(_: Path) -> str:
        raise PermissionError

    monkeypatch.setattr(disk_use, "_stands_on", denied)
    remove_old(host.cache, {})
    assert volume.exists()


def test_pruning_leaves_what_the_boxes_in_use_need(host: Host) -> None:
    used, *_ = [host.box("sink", key, days) for key, days in AGES.items()]
    host.base("sink-1", 1)
    host.state("dut-1", 2)
    host.state("dut-2", 1)
    (host.cache / "downloads").mkdir()
    remove_all_but(host.cache, {"sink": used})
    assert host.kept("sink") == (["1"], ["1"])
    assert host.states == {"dut-2"}
    assert not list(host.cache.glob(f"bases/*/{BASE_DISK}"))
    assert not (host.cache / "downloads").exists()


@pytest.mark.parametrize("limit", [1 << 30, 1])
def test_doctor_says_what_the_disk_has_and_what_makes_room(
    host: Host, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    monkeypatch.setattr(doctor, "LIMIT", limit)
    host.box("sink", "000000000001", 0)
    (host.cache / "boxes/large").write_bytes(b"x" * (3 << 20))
    found = doctor._disk()
    assert found.ok is (limit > 1)
    assert not found.required
    assert f"{host.cache} takes 3 MiB (boxes 3, saved 0, bases 0), machines and their boxes 0 MiB" in found.says
    assert "packer/build --prune" in found.next


def test_links_holes_and_second_names_take_nothing(tmp_path: Path) -> None:
    once = tmp_path / "a"
    once.write_bytes(b"x" * (1 << 20))
    size = bytes_of(tmp_path)
    (tmp_path / "b").hardlink_to(once)
    (tmp_path / "c").symlink_to(once)
    with (tmp_path / "d").open("wb") as file:
        file.truncate(1 << 30)
    assert 0 <= bytes_of(tmp_path) - size < 1 << 16
