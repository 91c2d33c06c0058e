# SPDX-License-Identifier: GPL-2.0-or-later
"""The image build without a machine: templates, content keys, and a cache that trusts nothing unproved."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKER = ROOT / "packer"
SETTINGS = {"base_url": "", "base_checksum": ""}


def load(name: str) -> ModuleType:
    """A module of packer/, which is a folder of programs and no package."""
    spec = importlib.util.spec_from_file_location(name, PACKER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


box_cache = load("box_cache")
children = load("children")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of what the keys are made from."""
    for name in ("packer", "provision", "engine"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def need_packer() -> None:
    if not shutil.which("packer"):
        if os.environ.get("CI"):
            pytest.fail("packer is missing: run provision/host/install")
        pytest.skip("packer is not installed")


@pytest.mark.parametrize("image", ["dut-linux", "generator", "sink"])
@pytest.mark.parametrize("kernel", ["", "vmlinuz"])
def test_template_is_valid(tmp_path: Path, image: str, kernel: str) -> None:
    need_packer()
    key, disk = tmp_path / "key", tmp_path / "disk.raw"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    disk.touch()
    given = {"image": image, "kernel": kernel, "ssh_key": key, "base": disk, "work": tmp_path, "provision": PACKER}
    words = [word for name, value in given.items() for word in ("-var", f"{name}={value}")]
    env = {**os.environ, "CHECKPOINT_DISABLE": "1"}
    done = subprocess.run(["packer", "validate", *words, PACKER], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("folder", [PACKER, PACKER / "plugins"], ids=["packer", "plugins"])
def test_templates_are_formatted(folder: Path) -> None:
    need_packer()
    done = subprocess.run(["packer", "fmt", "-check", "-diff", folder], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("path", "changed"),
    [
        ("provision/common/60-ssh.sh", {"dut-linux", "generator", "sink"}),
        ("provision/dut-linux/packages.txt", {"dut-linux"}),
        ("provision/cleanup", {"dut-linux", "generator", "sink"}),
        ("packer/locals.pkr.hcl", {"dut-linux", "generator", "sink"}),
        ("packer/base/dpkg.cfg", {"dut-linux", "generator", "sink"}),
        ("engine/Makefile", {"generator"}),
        ("provision/host/packages.txt", set()),
        ("packer/children.py", set()),
    ],
)
def test_key_changes_with_what_goes_into_the_image(checkout: Path, path: str, changed: set[str]) -> None:
    images = {"dut-linux", "generator", "sink"}
    before = {image: box_cache.content_key(checkout, image, SETTINGS) for image in images}
    (checkout / path).write_text((checkout / path).read_text() + "\n# changed\n")
    after = {image: box_cache.content_key(checkout, image, SETTINGS) for image in images}
    assert {image for image in images if before[image] != after[image]} == changed


def test_key_changes_with_the_base_and_with_an_executable_bit(checkout: Path) -> None:
    plain = box_cache.content_key(checkout, "sink", SETTINGS)
    assert box_cache.content_key(checkout, "sink", {**SETTINGS, "base_url": "https://example.org/a"}) != plain
    (checkout / "provision/run").chmod(0o644)
    assert box_cache.content_key(checkout, "sink", SETTINGS) != plain


def test_key_is_the_same_in_another_place(checkout: Path) -> None:
    assert box_cache.content_key(checkout, "sink", SETTINGS) == box_cache.content_key(ROOT, "sink", SETTINGS)


@pytest.fixture
def box(tmp_path: Path) -> Path:
    """A box in a cache."""
    made = tmp_path / "work.box"
    made.write_bytes(b"box" * 1000)
    path = tmp_path / "boxes" / "sink-0123.box"
    box_cache.publish(made, path, {"manifest": {"kernel": "6.1"}})
    return path


def test_whole_box_is_used(box: Path) -> None:
    assert box_cache.cached(box)["manifest"] == {"kernel": "6.1"}


@pytest.mark.parametrize("damage", ["cut", "altered", "no record", "bad record", "gone", "empty record"])
def test_damaged_box_is_rejected(box: Path, damage: str) -> None:
    record = box_cache.record_path(box)
    match damage:
        case "cut":
            box.write_bytes(box.read_bytes()[:-1])
        case "altered":
            box.write_bytes(b"x" + box.read_bytes()[1:])
        case "no record":
            record.unlink()
        case "bad record":
            record.write_text("{")
        case "empty record":
            record.write_text("[]")
        case "gone":
            box.unlink()
    assert box_cache.cached(box) is None


def test_too_little_room_names_the_place_and_the_need(tmp_path: Path) -> None:
    with pytest.raises(box_cache.BuildError) as caught:
        box_cache.need_room(tmp_path, 1 << 60)
    assert str(tmp_path) in str(caught.value)
    assert f"{(1 << 60) >> 20} MiB" in str(caught.value)
    assert "FWLAB_CACHE" in caught.value.hint


def test_full_disk_in_a_program_is_told_as_such(tmp_path: Path) -> None:
    with pytest.raises(box_cache.BuildError, match=r"sink: .* is full") as caught:
        children.run(["sh", "-c", "echo write: No space left on device; exit 1"], tmp_path / "log", "sink")
    assert "FWLAB_CACHE" in caught.value.hint


def test_second_build_of_an_image_waits_and_can_be_stopped(tmp_path: Path) -> None:
    lock, asked = tmp_path / "locks" / "sink", []
    with box_cache.locked(lock, lambda: False):
        stop = lambda: asked.append(1) or True  # noqa: E731
        with pytest.raises(box_cache.BuildError, match="sink"), box_cache.locked(lock, stop):
            pytest.fail("two builds held one lock")
    assert asked
    with box_cache.locked(lock, lambda: True):
        assert lock.exists()


def test_stopping_ends_the_children_of_children(tmp_path: Path) -> None:
    script = (
        "import sys, threading, time; sys.path.insert(0, sys.argv[1])\n"
        "import pathlib, children\n"
        "log = pathlib.Path(sys.argv[2]) / 'log'; mark = log.with_name('pid')\n"
        "command = ['sh', '-c', f'sleep 600 & echo $! > {mark}.new; mv {mark}.new {mark}; wait']\n"
        "thread = threading.Thread(target=lambda: children.run(command, log, 'sleeper'), daemon=True)\n"
        "thread.start()\n"
        "while not mark.exists(): time.sleep(0.01)\n"
        "children.stop_all(0.5)\n"
    )
    subprocess.run([sys.executable, "-c", script, PACKER, tmp_path], check=True, stderr=subprocess.DEVNULL)
    pid = int((tmp_path / "pid").read_text())
    for _ in range(500):
        state = Path(f"/proc/{pid}/stat")
        if not state.exists() or state.read_text().split(") ")[1][0] == "Z":
            return
        time.sleep(0.01)
    pytest.fail(f"process {pid} outlived its build")


def test_unknown_image_is_refused_by_name(tmp_path: Path) -> None:
    env = {**os.environ, "FWLAB_CACHE": str(tmp_path)}
    done = subprocess.run([PACKER / "build", "dut-plan9"], capture_output=True, text=True, env=env)
    assert done.returncode == 2
    assert "dut-plan9" in done.stderr and "dut-linux" in done.stderr
    assert not list(tmp_path.iterdir())


def test_base_address_without_checksum_is_refused(tmp_path: Path) -> None:
    need_packer()
    env = {**os.environ, "FWLAB_CACHE": str(tmp_path), "FWLAB_BASE_URL": "https://example.org/image.qcow2"}
    done = subprocess.run(
        [PACKER / "build", "--no-vagrant", "sink"], capture_output=True, text=True, env=env)
    assert done.returncode == 1
    assert "FWLAB_BASE_CHECKSUM" in done.stderr


def test_accelerator_is_one_of_two_words() -> None:
    if not shutil.which("qemu-system-x86_64"):
        pytest.skip("qemu-system-x86 is not installed")
    done = subprocess.run([PACKER / "accel"], capture_output=True, text=True)
    assert done.stdout.strip() in {"kvm", "tcg"}
