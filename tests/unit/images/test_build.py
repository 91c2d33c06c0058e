# SPDX-License-Identifier: GPL-2.0-or-later
"""The build of an image without a machine: programs, base, staged files, accelerator, the box's format, the command."""

import json
import os
import platform
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fwlab.checkout.project import Project
from fwlab.dut.freebsd.image import FreebsdImage
from fwlab.host import kvm_probe
from fwlab.host.hardware_probe import probe_hardware
from fwlab.host.kvm_probe import KvmAnswer, other_architecture
from fwlab.images import build, programs
from fwlab.images.__main__ import add_to_vagrant, main
from fwlab.images.boxes import IMAGES, publish
from fwlab.images.build import CLOUD, FULL, Builder
from fwlab.images.disk_use import BASE_DISK
from fwlab.images.programs import PackerTools, Subprocesses
from fwlab.images.sources import CloudImage
from fwlab.measure.provenance import cpu_of_lscpu
from fwlab.model.errors import BadInput, BuildError
from tests import ROOT
from tests.fakes.fake_host import FakeHost
from tests.fakes.programs import program

PACKER = ROOT / "packer"


def builder(cache: Path, root: Path = ROOT, **fields: object) -> Builder:
    return Builder(Project(root), cache, Subprocesses(), print, **fields)


@pytest.mark.parametrize("image", IMAGES)
@pytest.mark.parametrize("kernel", ["", "vmlinuz"])
def test_what_packer_reads_is_valid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, image: str, kernel: str) -> None:
    """In a folder whose name HCL would take for an expression. `validate` takes what `build` takes."""
    program("packer")
    folder = tmp_path / "Ü ${1 + 1} %{x}"
    base = {"base": str(PACKER / "build"), "kernel": kernel, "accelerator": "tcg"}
    monkeypatch.setattr(PackerTools, "require", lambda *_: None)
    monkeypatch.setattr(Builder, "_base_values", lambda *_: base)
    monkeypatch.setattr(Builder, "_staged", lambda *_: PACKER)
    makers = {image: FreebsdImage("/x", "0" * 64)} if image == "dut-freebsd" else {}
    found = builder(tmp_path / "cache", makers=makers)
    command = found.prepare(image, folder)
    assert command[:2] == ["packer", "build"]
    assert (folder / "seed.iso").stat().st_size > 0
    words = [word for word in command[2:] if word != "-color=false"]
    env = {**os.environ, "CHECKPOINT_DISABLE": "1"}
    done = subprocess.run(["packer", "validate", *words], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(("version", "names_plugins"), [("v1.6.6", False), ("v1.7.0", True), ("v1.11.2", True)])
def test_a_packer_with_its_plugins_built_in_does_not_read_their_names(
    folder: Path, tmp_path: Path, version: str, names_plugins: bool
) -> None:
    script(folder, "packer", f"echo Packer {version}")
    found = PackerTools().templates(PACKER, tmp_path)
    assert (found == PACKER) is names_plugins
    assert (found / "plugins.pkr.hcl").exists() is names_plugins
    assert {path.name for path in found.glob("*.pkr.hcl")} >= {"build.pkr.hcl", "sources.pkr.hcl", "variables.pkr.hcl"}


# ---- programs -----------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty PATH, as a folder that programs can be put into."""
    made = tmp_path / "bin"
    made.mkdir()
    monkeypatch.setenv("PATH", str(made))
    return made


def script(folder: Path, name: str, lines: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{lines}\n")
    (folder / name).chmod(0o755)


def complete(folder: Path, packer: str) -> Path:
    """All programs, with this packer, which notes how often it was called in the file that is returned."""
    calls = folder.parent / "calls"
    for name in ("qemu-system-x86_64", "qemu-img", "zstd"):
        script(folder, name, "exit 1")
    script(folder, "packer", f'echo "$*" >> {calls}\n{packer}')
    return calls


@pytest.mark.usefixtures("folder")
def test_a_box_that_is_built_needs_no_program_and_another_one_names_it(tmp_path: Path) -> None:
    found = builder(tmp_path)
    key = found.key("sink")
    (tmp_path / "boxes").mkdir()
    (tmp_path / "made").write_bytes(b"a box")
    publish(tmp_path / "made", tmp_path / f"boxes/sink-{key[:12]}.box", {"key": key, "manifest": {"kernel": "6.1"}})
    assert found.ready_box("sink")["manifest"] == {"kernel": "6.1"}
    with pytest.raises(BuildError, match="packer is missing") as refused:
        builder(tmp_path / "cache").make_box("sink", "0" * 64, tmp_path / "x.box")
    assert "guides/hosts.md" in refused.value.hint
    assert not (tmp_path / "cache").exists()


def test_each_program_is_named(folder: Path) -> None:
    script(folder, "packer", "echo Packer v1.6.6")
    with pytest.raises(BuildError, match="qemu-system-x86_64 is missing") as refused:
        PackerTools().require(PACKER)
    assert refused.value.hint == "run provision/host/install as root"


@pytest.mark.parametrize(("version", "asked"), [("v1.6.6", ["version"]), ("v1.11.2", ["version", "init"])])
def test_a_new_packer_gets_its_plugins_once(folder: Path, version: str, asked: list[str]) -> None:
    calls = complete(folder, f'[ "$1" = init ] || echo "Packer {version}"')
    tools = PackerTools()
    for _ in range(2):
        tools.require(PACKER)
    assert [line.split()[0] for line in calls.read_text().splitlines()] == asked


def test_plugins_that_cannot_be_had_are_an_error_each_time(folder: Path) -> None:
    complete(folder, '[ "$1" = init ] && { echo no route; exit 1; }\necho "Packer v1.11.2"')
    tools = PackerTools()
    for _ in range(2):
        with pytest.raises(BuildError, match="Packer's plugins are missing: no route") as refused:
            tools.require(PACKER)
    assert f"packer init {PACKER}'" in refused.value.hint
    assert "packer plugins install --path" in refused.value.hint


@pytest.mark.parametrize(("machine", "other"), [("x86_64", ""), ("amd64", ""), ("aarch64", "aarch64")])
def test_a_host_of_another_architecture_builds_no_box_and_tries_no_kvm(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, machine: str, other: str
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: machine)
    assert other_architecture() == other
    complete(folder, "echo Packer v1.6.6")
    if not other:
        PackerTools().require(PACKER)
        return
    with pytest.raises(BuildError, match="this host is aarch64 and the boxes are x86_64") as refused:
        PackerTools().require(PACKER)
    assert refused.value.hint.startswith("make boxes IMPORT=")
    monkeypatch.setattr(kvm_probe, "DEVICE", Path("/dev/null"))
    answer = kvm_probe.kvm_works(tmp_path / "vmlinuz", again=True)
    assert (answer.works, answer.why) == (False, "this host is aarch64, where KVM cannot run x86_64 guests")
    host = FakeHost(tmp_path / "host")
    assert probe_hardware(host.devices, host, answer, 8)[0].next.startswith("work on the virtual testbed")


@pytest.mark.parametrize(
    ("said", "cpu"),
    [
        (
            "Architecture:  aarch64\n  CPU op-mode(s):  32-bit\nVendor ID:  ARM\n  Model name:  Neoverse-N1\n",
            "ARM Neoverse-N1 aarch64",
        ),
        ("Architecture:  aarch64\nVendor ID:  Apple\n  Model name:  -\n", "Apple aarch64"),
        ("Architecture: x86_64\nVendor ID: AuthenticAMD\nModel name: AMD EPYC\n", "AuthenticAMD AMD EPYC"),
        ("", ""),
    ],
)
def test_the_cpus_name_where_the_kernel_has_none(said: str, cpu: str) -> None:
    assert cpu_of_lscpu(said) == cpu


@pytest.mark.parametrize("words", ["No space left on device", "no space left on device"], ids=["libc", "Go"])
def test_full_disk_in_a_program_is_reported(tmp_path: Path, words: str) -> None:
    with pytest.raises(BuildError, match=r"sink: .* is full") as caught:
        Subprocesses().run(["sh", "-c", f"echo write: {words}; exit 1"], tmp_path / "log", "sink")
    assert "FWLAB_CACHE" in caught.value.hint


@pytest.mark.parametrize("trap", ["", "trap '' INT; "], ids=["ends on a signal", "must be killed with its child"])
def test_full_disk_ends_a_program_that_would_wait_forever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trap: str
) -> None:
    """As Packer does after QEMU has paused the machine because the disk is full."""
    monkeypatch.setattr(programs, "FULL_BYTES", 1 << 60)
    monkeypatch.setattr(programs, "TIMEOUT_S", 0.1)
    running, began = Subprocesses(), time.monotonic()
    with pytest.raises(BuildError, match=f"sink: the disk of {tmp_path} is full"):
        running.run(["sh", "-c", f"{trap}sleep 600 & wait; sleep 600"], tmp_path / "log", "sink")
    assert time.monotonic() - began < 60
    assert not running._running


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


# ---- bases --------------------------------------------------------------------------------------------------------

needs_zstd = pytest.mark.skipif(shutil.which("zstd") is None, reason="there is no zstd")


@needs_zstd
def test_a_disk_comes_back_as_it_was_and_its_holes_take_no_room(tmp_path: Path) -> None:
    disk, log, size = tmp_path / "disk.raw", tmp_path / "log", 64 << 20
    piece = random.Random(3).randbytes(1 << 20)
    with disk.open("wb") as file:
        for place in (0, size - len(piece)):
            file.seek(place)
            file.write(piece)
    before = disk.read_bytes()
    packed = build.pack_base(Subprocesses(), disk, log, "sink")
    assert not disk.exists()
    assert packed == tmp_path / BASE_DISK
    assert packed.stat().st_size < 1.1 * len(piece)  # the second piece repeats the first, 63 MiB before
    unpacked = build.unpack_base(Subprocesses(), packed, tmp_path / "base.raw", log, "sink")
    assert unpacked.read_bytes() == before
    assert unpacked.stat().st_blocks * 512 < 4 * len(piece)
    packed.write_bytes(b"not zstd")
    with pytest.raises(BuildError, match="sink: unpacking its base"):
        build.unpack_base(Subprocesses(), packed, tmp_path / "base.raw", log, "sink")


def test_bases_share_a_file_that_is_the_same(tmp_path: Path) -> None:
    bases = [tmp_path / "bases" / name for name in ("dut-1", "sink-2", "sink-3")]
    for base, content in zip(bases, (b"kernel 1", b"kernel 1", b"kernel 2"), strict=True):
        made = tmp_path / "vmlinuz"
        made.write_bytes(content)
        base.mkdir(parents=True)
        build.share_file(made, base)
        assert (base / "vmlinuz").read_bytes() == content
        assert not made.exists()
    numbers = [(base / "vmlinuz").stat().st_ino for base in bases]
    assert numbers[0] == numbers[1] != numbers[2]


# ---- staged files and the kernel ----------------------------------------------------------------------------------


def test_images_with_the_full_kernel_are_made_from_a_copy_that_names_its_package(
    checkout: Path, tmp_path: Path
) -> None:
    before = (checkout / "provision/common/packages.txt").read_text()
    copy = build.base_builder(checkout, "sink", tmp_path / "work").parents[2] / "provision"
    (tmp_path / "stage").mkdir()
    staged = builder(tmp_path, checkout, full=True)._staged("sink", tmp_path / "stage", tmp_path / "log")
    for made in (copy, staged):
        packages = (made / "common/packages.txt").read_text().splitlines()
        assert (FULL in packages, CLOUD in packages, len(packages)) == (True, False, len(before.splitlines()))
        assert (made / "common/35-virtual-functions.sh").exists()
        assert (made / "sink/packages.txt").exists()
    (tmp_path / "usual").mkdir()
    usual = builder(tmp_path, checkout)._staged("sink", tmp_path / "usual", tmp_path / "log")
    assert (usual / "common/packages.txt").read_text() == before
    assert not (usual / "common/35-virtual-functions.sh").exists()
    (copy / "common/packages.txt").write_text("linux-image-rt-amd64\n")
    with pytest.raises(BuildError, match="linux-image-cloud-amd64 is not in it"):
        build.put_full_kernel(checkout, copy)


def test_the_engine_is_compiled_once_for_all_images_that_contain_it(checkout: Path, tmp_path: Path) -> None:
    compiler, log = checkout / "packer/base/engine", tmp_path / "log"
    compiler.write_text(f'#!/bin/sh\necho run >> {log}; cat "$(dirname "$0")/../../engine/main.c" > "$1"\n')
    for number, edit in enumerate(("", "", "/* changed */"), 1):
        with (checkout / "engine/main.c").open("a") as file:
            file.write(edit)
        (work := tmp_path / str(number)).mkdir()
        staged = builder(tmp_path, checkout)._staged("generator", work, log)
        assert (staged / "engine/fwlab-replay").read_text() == (checkout / "engine/main.c").read_text()
    assert log.read_text() == "run\n" * 2
    assert len(list((tmp_path / "engines").glob("*[!n]"))) == 1  # and its record


def test_freebsd_gets_its_own_scripts_alone(tmp_path: Path) -> None:
    staged = builder(tmp_path, makers={"dut-freebsd": FreebsdImage("/x", "0" * 64)})._staged(
        "dut-freebsd", tmp_path, tmp_path / "log"
    )
    assert {path.name for path in staged.iterdir()} == {"run", "idempotence_check", "cleanup", "dut-freebsd"}
    assert "cloud-init" not in (staged / "cleanup").read_text()
    assert not (staged / "dut-freebsd/cleanup").exists()


@pytest.mark.parametrize(("value", "wanted"), [("", False), ("cloud", False), ("full", True)])
def test_a_variable_chooses_the_kernel(monkeypatch: pytest.MonkeyPatch, value: str, wanted: bool) -> None:
    monkeypatch.setenv("FWLAB_KERNEL", value)
    assert build.full_kernel_wanted(None) is wanted


@pytest.mark.parametrize(
    ("value", "base", "says"),
    [
        ("rt", None, "FWLAB_KERNEL=rt: must be cloud or full"),
        ("full", CloudImage(None), "a cloud image brings its own kernel"),  # type: ignore[arg-type]
    ],
)
def test_a_wrong_kernel_is_named(
    monkeypatch: pytest.MonkeyPatch, value: str, base: CloudImage | None, says: str
) -> None:
    monkeypatch.setenv("FWLAB_KERNEL", value)
    with pytest.raises(BadInput, match=says):
        build.full_kernel_wanted(base)


# ---- accelerator, and the box's format -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("variable", "works", "word"), [("kvm", False, "kvm"), ("tcg", True, "tcg"), ("", True, "kvm"), ("", False, "tcg")]
)
def test_kvm_is_tried_with_the_bases_kernel_unless_the_variable_decides(
    monkeypatch: pytest.MonkeyPatch, variable: str, works: bool, word: str
) -> None:
    kernel, tried = Path("/vmlinuz"), []

    def probe(*kernels: Path, boot_sector: bool) -> KvmAnswer:
        tried.append((*kernels, boot_sector))
        return KvmAnswer(works, "a test")

    monkeypatch.setenv("FWLAB_ACCEL", variable)
    monkeypatch.setattr(build, "kvm_works", probe)
    assert build.guest_accelerator(kernel) == word
    assert tried == ([] if variable else [(kernel, True)])


def box(path: Path, disk: str, metadata: dict) -> bytes:
    """Write a box as Packer makes it; its disk is one of 4 GiB and a sector by its header."""
    parts = path.with_name("parts-of-it")
    parts.mkdir()
    qcow2 = b"QFI\xfb" + bytes(20) + ((4 << 30) + 512).to_bytes(8, "big") + b"the rest"
    for name, content in {disk: qcow2, "metadata.json": json.dumps(metadata).encode(), "Vagrantfile": b"#\n"}.items():
        (parts / name).write_bytes(content)
    subprocess.run(["tar", "-cf", path, "-C", parts, *sorted(part.name for part in parts.iterdir())], check=True)
    return qcow2


def test_a_box_of_a_newer_packer_is_converted(tmp_path: Path) -> None:
    path, out = tmp_path / "sink.box", tmp_path / "looked-at"
    disks = [{"format": "qcow2", "path": "box_0.img"}]
    disk = box(path, "box_0.img", {"architecture": "amd64", "disks": disks, "provider": "libvirt"})
    build.to_first_format(path)
    out.mkdir()
    subprocess.run(["tar", "-xf", path, "-C", out], check=True)
    found = {part.name: part.read_bytes() for part in out.iterdir()}
    assert set(found) == {"box.img", "metadata.json", "Vagrantfile"}
    assert found["box.img"] == disk
    told = json.loads(found["metadata.json"])
    assert told == {"architecture": "amd64", "provider": "libvirt", "format": "qcow2", "virtual_size": 5}


def test_a_box_of_debians_packer_is_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "sink.box"
    box(path, "box.img", {"format": "qcow2", "provider": "libvirt", "virtual_size": 4})
    before = path.read_bytes()
    build.to_first_format(path)
    assert path.read_bytes() == before


def test_boxes_of_a_cache_that_was_copied_are_added(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such a cache has boxes but no folder for logs, because nothing was built there."""
    script(folder, "vagrant", "echo added")
    monkeypatch.setenv("VAGRANT_HOME", str(folder / "home"))
    add_to_vagrant({"box": "fwlab-sink-0", "path": str(folder / "cache/boxes/sink-0.box")}, Subprocesses())
    assert (folder / "cache/logs/vagrant.log").read_text() == "added\n"


# ---- the command ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "variables", "says"),
    [
        (["dut-plan9"], {}, "no image named dut-plan9: there are dut-linux, "),
        (["--no-vagrant", "sink"], {"FWLAB_ACCEL": "hvf"}, "FWLAB_ACCEL=hvf: must be tcg or kvm\n  next: export"),
        (["--lab", "lab3"], {}, "packer/build: unknown lab lab3; there are: lab01-forwarding, "),
        (["--no-vagrant", "--import", "TMP/nowhere"], {}, "make boxes EXPORT=folder"),
        (["--no-vagrant", "--export", "TMP/file"], {}, "name a new folder"),
        (["--export", "TMP/new", "sink"], {}, "name no image"),
        (
            ["--no-vagrant", "sink", "dut-freebsd"],
            {"FWLAB_FREEBSD_URL": "none"},
            "packer/build: FWLAB_FREEBSD_URL=none leaves dut-freebsd out\n  next: unset FWLAB_FREEBSD_URL\n",
        ),
        (
            ["--no-vagrant", "dut-freebsd"],
            {"FWLAB_FREEBSD_URL": "/there/is/none.xz"},
            "/there/is/CHECKSUM.SHA256: No such file or directory\n  next: set FWLAB_FREEBSD_SHA256",
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_the_command_refuses_in_words(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    variables: dict[str, str],
    says: str,
) -> None:
    """In this process, because a new one would spend its time on imports."""
    (tmp_path / "file").touch()
    words = [word.replace("TMP", str(tmp_path)) for word in words]
    for name, value in {"FWLAB_CACHE": str(tmp_path / "cache"), **variables}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("signal.signal", lambda *_: None)
    monkeypatch.setattr("sys.argv", ["packer/build", "--checkout", str(ROOT), *words])
    with pytest.raises(SystemExit) as left:
        sys.exit(main())
    assert left.value.code == 2
    assert says in capsys.readouterr().err
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file() and path.parent.name != "locks"]


def test_without_a_venv_the_next_command_is_named(tmp_path: Path) -> None:
    (tmp_path / "packer").mkdir()
    shutil.copy(PACKER / "build", tmp_path / "packer")
    done = subprocess.run([tmp_path / "packer/build"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"packer/build: there is no {tmp_path}/.venv\n  next: make setup\n"


def test_packer_build_runs_this_checkouts_package(tmp_path: Path) -> None:
    """From any working directory, even one with a package of the same name."""
    (tmp_path / "packer").mkdir()
    shutil.copy(PACKER / "build", tmp_path / "packer")
    python = tmp_path / ".venv/bin/python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    for folder, says in ((tmp_path / "fwlab/images", "this one"), (tmp_path / "elsewhere/fwlab/images", "another")):
        folder.mkdir(parents=True)
        (folder / "__main__.py").write_text(f"import sys; print({says!r}, sys.argv[1:])")
        for package in (folder, folder.parent):
            (package / "__init__.py").touch()
    argv, where = [tmp_path / "packer/build", "--no-vagrant", "sink"], tmp_path / "elsewhere"
    done = subprocess.run(argv, cwd=where, capture_output=True, text=True, check=False)
    words = ["--checkout", str(tmp_path), "--no-vagrant", "sink"]
    assert done.stdout == f"this one {words}\n", done.stderr


def test_a_second_interrupt_does_not_cut_the_clearing_up_short(tmp_path: Path) -> None:
    """packer/build, with a builder that waits; what it started does not end on SIGINT."""
    script = (
        "import os, pathlib, signal, sys, threading, time\n"
        "from fwlab.images import __main__ as command, programs\n"
        "log, clearing, stop_all = pathlib.Path(sys.argv.pop(1)), [], programs.Subprocesses.stop_all\n"
        "programs.Subprocesses.stop_all = lambda self: (clearing.append(1), stop_all(self, 1.0))\n"
        "def twice():\n"
        "    while not log.exists(): time.sleep(0.01)\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    while not clearing: time.sleep(0.01)\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "def build(project, named, lab, running, pool, vagrant):\n"
        "    sleeper = 'trap \"\" INT; sleep 600 & wait'\n"
        "    threading.Thread(target=twice, daemon=True).start()\n"
        "    running.run(['sh', '-c', sleeper], log, 'sleeper')\n"
        "command._build = build\n"
        "sys.exit(command.main())\n"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT), "FWLAB_CACHE": str(tmp_path)}
    words = [sys.executable, "-c", script, tmp_path / "log", "--checkout", str(ROOT)]
    done = subprocess.run(words, capture_output=True, text=True, env=env, timeout=100)
    assert (done.returncode, done.stderr.splitlines()) == (
        130,
        ["packer/build: interrupted; nothing half-built was kept", "  next: run it again to go on"],
    )
