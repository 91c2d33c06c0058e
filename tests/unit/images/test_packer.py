# SPDX-License-Identifier: GPL-2.0-or-later
"""The image build without a machine: templates, content keys, and a cache that uses only what it verified."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fwlab.images import boxes, programs
from fwlab.images.boxes import IMAGES, BuildError, content_key
from fwlab.images.build import to_first_format
from fwlab.images.programs import Subprocesses
from tests import ROOT
from tests.fakes.image_build import PACKER, SETTINGS, build
from tests.fakes.programs import program


@pytest.mark.parametrize("image", IMAGES)
@pytest.mark.parametrize("kernel", ["", "vmlinuz"])
def test_template_is_valid(tmp_path: Path, image: str, kernel: str) -> None:
    program("packer")
    key, disk = tmp_path / "key", tmp_path / "disk.raw"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    disk.touch()
    given = {"image": image, "kernel": kernel, "ssh_key": key, "base": disk, "work": tmp_path, "provision": PACKER}
    words = [word for name, value in given.items() for word in ("-var", f"{name}={value}")]
    env = {**os.environ, "CHECKPOINT_DISABLE": "1"}
    done = subprocess.run(["packer", "validate", *words, PACKER], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("path", "changed"),
    [
        ("provision/common/60-ssh.sh", {"dut-linux", "generator", "sink"}),
        ("provision/dut-linux/packages.txt", {"dut-linux"}),
        ("provision/dut-freebsd/30-pf.sh", {"dut-freebsd"}),
        ("provision/dut-freebsd/cleanup", {"dut-freebsd"}),
        ("provision/cleanup", {"dut-linux", "generator", "sink"}),
        ("packer/locals.pkr.hcl", {"dut-linux", "generator", "sink", "dut-freebsd"}),
        ("packer/base/dpkg.cfg", {"dut-linux", "generator", "sink"}),
        ("engine/Makefile", {"generator"}),
        ("provision/host/packages.txt", set()),
        ("packer/build", set()),
    ],
)
def test_key_changes_with_the_images_inputs(checkout: Path, path: str, changed: set[str]) -> None:
    settings = {image: SETTINGS | ({"system": "freebsd"} if image == "dut-freebsd" else {}) for image in IMAGES}
    before = {image: content_key(checkout, image, settings[image]) for image in IMAGES}
    (checkout / path).write_text((checkout / path).read_text() + "\n# changed\n")
    after = {image: content_key(checkout, image, settings[image]) for image in IMAGES}
    assert {image for image in IMAGES if before[image] != after[image]} == changed


def test_key_changes_with_the_base_and_with_an_executable_bit(checkout: Path) -> None:
    plain = content_key(checkout, "sink", SETTINGS)
    assert content_key(checkout, "sink", {**SETTINGS, "base_checksum": "sha256:ab"}) != plain
    (checkout / "provision/run").chmod(0o644)
    assert content_key(checkout, "sink", SETTINGS) != plain


def test_key_does_not_depend_on_the_path(checkout: Path) -> None:
    assert content_key(checkout, "sink", SETTINGS) == content_key(ROOT, "sink", SETTINGS)


@pytest.fixture
def box(tmp_path: Path) -> Path:
    """A box in a cache."""
    made = tmp_path / "work.box"
    made.write_bytes(b"box" * 1000)
    path = tmp_path / "boxes" / "sink-0123.box"
    boxes.publish(made, path, {"manifest": {"kernel": "6.1"}})
    return path


def test_complete_box_is_used(box: Path) -> None:
    assert boxes.cached(box)["manifest"] == {"kernel": "6.1"}


@pytest.mark.parametrize("damage", ["cut", "altered", "no record", "bad record", "gone", "empty record"])
def test_damaged_box_is_rejected(box: Path, damage: str) -> None:
    record = boxes.record_path(box)
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
    assert boxes.cached(box) is None


def test_too_little_space_is_reported_with_place_and_size(tmp_path: Path) -> None:
    with pytest.raises(BuildError) as caught:
        boxes.need_room(tmp_path, 1 << 60)
    assert str(tmp_path) in str(caught.value)
    assert f"{(1 << 60) >> 20} MiB" in str(caught.value)
    assert "FWLAB_CACHE" in caught.value.hint


@pytest.mark.parametrize("words", ["No space left on device", "no space left on device"], ids=["libc", "Go"])
def test_full_disk_in_a_program_is_reported(tmp_path: Path, words: str) -> None:
    with pytest.raises(BuildError, match=r"sink: .* is full") as caught:
        Subprocesses().run(["sh", "-c", f"echo write: {words}; exit 1"], tmp_path / "log", "sink")
    assert "FWLAB_CACHE" in caught.value.hint


def test_full_disk_ends_a_program_that_would_wait_forever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As Packer does after QEMU has paused the machine because the disk is full."""
    monkeypatch.setattr(programs, "FULL_BYTES", 1 << 60)
    monkeypatch.setattr(programs, "TIMEOUT_S", 0.1)
    running = Subprocesses()
    # Once with a program that ends on a signal, and once with one that must be killed together with its child.
    for trap in ("", "trap '' INT; "):
        began = time.monotonic()
        with pytest.raises(BuildError, match=f"sink: the disk of {tmp_path} is full") as caught:
            running.run(["sh", "-c", f"{trap}sleep 600 & wait; sleep 600"], tmp_path / "log", "sink")
        assert "FWLAB_CACHE" in caught.value.hint
        assert time.monotonic() - began < 60
        assert not running._running


def test_second_build_of_an_image_waits_and_can_be_stopped(tmp_path: Path) -> None:
    lock, asked = tmp_path / "locks" / "sink", []
    with boxes.locked(lock, lambda: False):
        stop = lambda: asked.append(1) or True  # noqa: E731
        with pytest.raises(BuildError, match="sink"), boxes.locked(lock, stop):
            pytest.fail("two builds held one lock")
    assert asked
    with boxes.locked(lock, lambda: True):
        assert lock.exists()


def test_stopping_ends_the_children_of_children(tmp_path: Path) -> None:
    script = (
        "import pathlib, sys, threading, time\n"
        "from fwlab.images.programs import Subprocesses\n"
        "programs, log = Subprocesses(), pathlib.Path(sys.argv[1]) / 'log'; mark = log.with_name('pid')\n"
        "command = ['sh', '-c', f'sleep 600 & echo $! > {mark}.new; mv {mark}.new {mark}; wait']\n"
        "thread = threading.Thread(target=lambda: programs.run(command, log, 'sleeper'), daemon=True)\n"
        "thread.start()\n"
        "while not mark.exists(): time.sleep(0.01)\n"
        "programs.stop_all(0.5)\n"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", script, tmp_path], check=True, stderr=subprocess.DEVNULL, env=env)
    pid = int((tmp_path / "pid").read_text())
    for _ in range(500):
        state = Path(f"/proc/{pid}/stat")
        if not state.exists() or state.read_text().split(") ")[1][0] == "Z":
            return
        time.sleep(0.01)
    pytest.fail(f"process {pid} outlived its build")


def test_unknown_image_is_refused_by_name(tmp_path: Path) -> None:
    done = build("dut-plan9", FWLAB_CACHE=str(tmp_path))
    assert done.returncode == 2
    assert "dut-plan9" in done.stderr
    assert "dut-linux" in done.stderr
    assert not list(tmp_path.iterdir())


def make_archive(path: Path, disks: dict[str, bytes], metadata: dict) -> None:
    """A box, as Packer makes it."""
    parts = path.with_name("parts-of-it")
    parts.mkdir()
    for name, content in {**disks, "metadata.json": json.dumps(metadata).encode(), "Vagrantfile": b"#\n"}.items():
        (parts / name).write_bytes(content)
    subprocess.run(["tar", "-cf", path, "-C", parts, *sorted(part.name for part in parts.iterdir())], check=True)
    shutil.rmtree(parts)


def parts_of(box: Path) -> dict[str, bytes]:
    out = box.with_name("looked-at")
    out.mkdir()
    subprocess.run(["tar", "-xf", box, "-C", out], check=True)
    return {path.name: path.read_bytes() for path in out.iterdir()}


#: A qcow2 file's header as far as its virtual size, 4 GiB and one sector.
QCOW2 = b"QFI\xfb" + bytes(20) + ((4 << 30) + 512).to_bytes(8, "big") + b"the rest"


def test_box_of_a_newer_packer_is_converted(tmp_path: Path) -> None:
    box = tmp_path / "sink.box"
    disks = [{"format": "qcow2", "path": "box_0.img"}]
    make_archive(box, {"box_0.img": QCOW2}, {"architecture": "amd64", "disks": disks, "provider": "libvirt"})
    to_first_format(box)
    found = parts_of(box)
    assert set(found) == {"box.img", "metadata.json", "Vagrantfile"}
    assert found["box.img"] == QCOW2
    told = json.loads(found["metadata.json"])
    assert told == {"architecture": "amd64", "provider": "libvirt", "format": "qcow2", "virtual_size": 5}


def test_box_of_debians_packer_is_not_changed(tmp_path: Path) -> None:
    box = tmp_path / "sink.box"
    make_archive(box, {"box.img": QCOW2}, {"format": "qcow2", "provider": "libvirt", "virtual_size": 4})
    before = box.read_bytes()
    to_first_format(box)
    assert box.read_bytes() == before


def test_missing_plugins_of_a_newer_packer_are_reported_with_its_message(tmp_path: Path) -> None:
    """Packer prints the message on standard output."""
    programs = tmp_path / "bin"
    programs.mkdir()
    packer = '#!/bin/sh\n[ "$1" = init ] || { echo Packer v1.16.0; exit; }\necho Failed getting qemu; exit 1\n'
    for name, text in {"packer": packer, "qemu-system-x86_64": "#!/bin/sh\n", "qemu-img": "#!/bin/sh\n"}.items():
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    path = f"{programs}:{os.environ['PATH']}"
    done = build("--no-vagrant", "sink", FWLAB_CACHE=str(tmp_path / "cache"), PATH=path)
    assert done.returncode == 1
    assert "Packer's plugins are missing: Failed getting qemu" in done.stderr
    assert f"packer init {PACKER / 'plugins'}" in done.stderr
    assert "packer plugins install --path" in done.stderr
    assert {path.name for path in (tmp_path / "cache").iterdir()} <= {"locks"}
