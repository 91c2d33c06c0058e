# SPDX-License-Identifier: GPL-2.0-or-later
"""The runner of the emulated host, without starting it: arguments, staging, refusals."""

from __future__ import annotations

import itertools
import re
import stat
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from filelock import FileLock

from fwlab.checkout.project import Project, load_topology
from fwlab.images.boxes import LINUX_IMAGES, BuildError
from fwlab.images.build import Builder
from fwlab.images.programs import Subprocesses
from fwlab.model.errors import BadInput, CannotMeasure
from tests import ROOT
from tests.nested_host import __main__ as runner
from tests.nested_host import one_run
from tests.nested_host.image import boxes_disk, checkout_files, host_image, image_key, stage
from tests.nested_host.machine import FUNCTIONS, PROGRESS, HostFiles, arguments, free_port, plain
from tests.nested_host.private_qemu import LOADER, PROGRAM, PrivateQemu, own_suite, private_qemu, with_backports

FILES = HostFiles(*(Path("/x") / name for name in ("vmlinuz", "initrd", "disk", "boxes", "seed", "key")))
MIRROR = "deb [signed-by=/k.gpg] http://mirror.example/debian/ bookworm main"


def pairs(option: str) -> list[str]:
    words = arguments(FILES, 2222, Path("/x/console"))
    return [value for name, value in itertools.pairwise(words) if name == option]


def test_the_host_has_svm_and_an_iommu() -> None:
    assert pairs("-accel") == ["tcg,thread=multi"]
    assert pairs("-smp") == ["1"], "with more, QEMU delivers some of the guests' interrupts twice"
    assert not pairs("-icount")
    assert {"+svm", "+npt"} < set(pairs("-cpu")[0].split(","))
    assert any(device.startswith("intel-iommu,") for device in pairs("-device"))


def nics() -> list[dict[str, str]]:
    """The properties of the NICs that have virtual functions, and of those functions, in QEMU's order."""
    found = [dict(one.partition("=")[::2] for one in device.split(",")) for device in pairs("-device")]
    return [nic for nic in found if "virtio-net-pci" in nic and nic.get("netdev") != "management"]


def test_each_link_has_a_nic_whose_virtual_functions_are_one_hub() -> None:
    """Each has its own PCIe port, and comes after its functions, whose numbers follow its own."""
    hubs = dict(re.fullmatch(r"hubport,id=(.+),hubid=(\d)", netdev).groups() for netdev in pairs("-netdev")[1:])
    parts = [nics()[:3], nics()[3:]]
    assert [len(part) for part in parts] == [FUNCTIONS + 1] * 2
    for number, part in enumerate(parts, 1):
        *functions, physical = part
        assert {one["sriov-pf"] for one in functions} == {physical["id"]}
        assert {hubs[one["netdev"]] for one in part} == {str(number)}
        assert len({one["bus"] for one in part}) == 1
        assert [one["addr"] for one in part] == ["0x0.0x2", "0x0.0x1", "0x0.0x0"]
    assert parts[0][0]["bus"] != parts[1][0]["bus"]
    assert len({one["mac"] for one in nics()}) == len(nics())


def test_virtual_functions_can_be_handed_over_but_have_not_the_addresses_of_the_links() -> None:
    """Without ACCESS_PLATFORM, QEMU's virtio passes the IOMMU by. The machines set the links' addresses themselves."""
    assert {(one["iommu_platform"], one["disable-legacy"]) for one in nics()} == {("on", "on")}
    topology = load_topology(Project(ROOT))
    assert not {end.mac for link in topology.links.values() for end in link.ends.values()} & {o["mac"] for o in nics()}


def test_nothing_leaves_the_hosts_user_mode_network() -> None:
    users = [netdev for netdev in pairs("-netdev") if not netdev.startswith("hubport,")]
    assert users == ["user,id=management,restrict=on,hostfwd=tcp:127.0.0.1:2222-:22"]


def test_only_its_own_disk_is_written() -> None:
    drives = {drive.split("file=")[1].split(",")[0]: drive for drive in pairs("-drive")}
    assert [path for path, drive in drives.items() if "readonly=on" not in drive] == ["/x/disk"]


@pytest.mark.parametrize("suite", ["bookworm", "trixie"])
def test_the_newer_qemu_comes_from_the_mirrors_of_this_host(suite: str) -> None:
    main = MIRROR.replace("bookworm", suite)
    lines = with_backports(f"{main.replace(suite, f'{suite}-updates')}\n{main}\n", suite).splitlines()
    ends = ("-updates", "", "-backports")
    assert lines == [MIRROR.replace("bookworm", f"trixie{end}") for end in ends]


@pytest.mark.parametrize("suite", ["trixie", "book"])
def test_sources_without_the_suite_are_refused(suite: str) -> None:
    with pytest.raises(CannotMeasure, match=f"no mirror of {suite}"):
        with_backports(MIRROR, suite)


@pytest.mark.parametrize(
    ("says", "suite"),
    [
        ("ID=debian\nVERSION_CODENAME=bookworm\n", "bookworm"),
        ('ID="debian"\nVERSION_CODENAME="forky"\n', "forky"),
        ("ID=ubuntu\nID_LIKE=debian\nVERSION_CODENAME=noble\n", "trixie"),
        ("ID=debian\n", "trixie"),
        ("", "trixie"),
    ],
)
def test_only_a_debian_has_mirrors_of_debian(says: str, suite: str) -> None:
    assert own_suite(says) == suite


def fake_qemu(root: Path, says: str, status: int = 0) -> PrivateQemu:
    """A "loader" that prints a version, whatever it is to load."""
    for name in (LOADER, PROGRAM):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"#!/bin/sh\necho '{says}'\nexit {status}\n")
        (root / name).chmod(0o755)
    return PrivateQemu(root)


def test_version_of_the_newer_qemu(tmp_path: Path) -> None:
    assert fake_qemu(tmp_path, "QEMU emulator version 11.1.3 (Debian 1:11.1.3)").version() == "11.1.3"


@pytest.mark.parametrize(
    ("says", "why"), [("QEMU emulator version 10.0.2", "10.0.2, older than 11"), ("Segmentation fault", "does not run")]
)
def test_a_qemu_that_is_too_old_or_broken_is_refused(tmp_path: Path, says: str, why: str) -> None:
    fake_qemu(tmp_path / "qemu-trixie", says)
    with pytest.raises(CannotMeasure, match=why) as caught:
        private_qemu(ROOT, tmp_path, tmp_path / "log")
    assert caught.value.hint == f"rm -r {tmp_path}/qemu-trixie"


def programs(folder: Path, **texts: str) -> None:
    for name, text in texts.items():
        path = folder / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)


def test_a_mirror_without_backports_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bin_, project = tmp_path / "bin", tmp_path / "project"
    bin_.mkdir()
    (project / "packer/base").mkdir(parents=True)
    programs(bin_, mmdebstrap="echo \"E: Release 'trixie-backports' for 'qemu-system-x86' was not found\" >&2; exit 25")
    programs(project / "packer/base", mirrors=f"echo '{MIRROR}' | sed s/bookworm/$1/")
    monkeypatch.setenv("PATH", f"{bin_}:/usr/bin:/bin")
    with pytest.raises(CannotMeasure, match="trixie-backports' for 'qemu-system-x86' was not found") as caught:
        private_qemu(project, tmp_path, tmp_path / "log")
    assert str(tmp_path / "log") in caught.value.hint
    assert not list(tmp_path.glob("qemu*"))


def package_names(path: Path) -> set[str]:
    return {line for line in path.read_text().splitlines() if line and not line.startswith("#")}


def test_staged_role_has_every_package_of_a_host(tmp_path: Path) -> None:
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    (wheels / "some.whl").touch()
    staged = stage(ROOT, wheels, tmp_path)
    role = staged / "provision/nested-host"
    assert package_names(ROOT / "provision/host/packages.txt") < package_names(role / "packages.txt")
    assert "linux-image-amd64" in package_names(role / "packages.txt")
    assert "linux-image-cloud-amd64" not in package_names(staged / "provision/common/packages.txt")
    assert (role / "wheels/some.whl").exists()
    assert (role / "checkout/provision/host/venv").stat().st_mode & stat.S_IXUSR


def test_checkout_has_no_results() -> None:
    names = checkout_files(ROOT)
    assert "Vagrantfile" in names
    assert not [name for name in names if name.startswith("results/")]


@pytest.mark.parametrize(
    "changed", ["provision/host/packages.txt", "requirements.lock", "provision/common/packages.txt"]
)
def test_image_is_made_anew_if_its_parts_change(tmp_path: Path, changed: str) -> None:
    for path in ("packer/base", "provision/host", "provision/common", "provision/nested-host"):
        (tmp_path / path).mkdir(parents=True)
    for path in ("packer/base/build", "provision/run", "provision/nested-host/10-x.sh", "provision/host/venv"):
        (tmp_path / path).write_text("x")
    for path in ("provision/host/packages.txt", "provision/common/packages.txt", "requirements.lock", "pyproject.toml"):
        (tmp_path / path).write_text("x")
    before = image_key(tmp_path)
    assert image_key(tmp_path) == before
    (tmp_path / changed).write_text("y")
    assert image_key(tmp_path) != before


def test_a_full_disk_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _path: SimpleNamespace(free=5 << 30))
    with pytest.raises(BuildError, match="5120 MiB free, a build needs 16384") as caught:
        host_image(Project(ROOT), tmp_path, tmp_path / "log", lambda _line: None)
    assert "FWLAB_CACHE" in caught.value.hint


@pytest.mark.parametrize(("full", "next_"), [(False, "packer/build"), (True, "FWLAB_KERNEL=full packer/build")])
def test_boxes_that_are_not_built_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, full: bool, next_: str
) -> None:
    monkeypatch.setenv("FWLAB_CACHE", str(tmp_path))
    if full:  # the usual ones are there
        builder = Builder(Project(ROOT), tmp_path, Subprocesses(), print)
        (tmp_path / "boxes").mkdir()
        for image in LINUX_IMAGES:
            for end in ("", ".json"):
                (tmp_path / f"boxes/{image}-{builder.key(image)[:12]}.box{end}").touch()
    with pytest.raises(
        CannotMeasure, match=r"not built: generator-\w+.box, dut-linux-|not built: dut-linux-"
    ) as caught:
        boxes_disk(Project(ROOT), tmp_path, tmp_path / "log", full=full)
    assert caught.value.hint == f"{next_} --no-vagrant"


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--links", "socket,wire"], "unknown link kind wire; there are: .*socket"),
        (["--links", ","], "no link kind"),
        (["--cases", "raw-drop,nothing"], "lab03-ipset has no case nothing"),
    ],
)
def test_a_wrong_name_is_bad_usage(words: list[str], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert runner.main(words) == BadInput.exit_code
    said = capsys.readouterr().err
    assert re.search(why, said)
    assert "\n  next: " in said


def test_a_host_with_little_memory_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(runner, "PROGRAMS", ())
    little = psutil.virtual_memory()._replace(available=1 << 30)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: little)
    assert runner.main([]) == CannotMeasure.exit_code
    assert "1024 MiB of memory available" in capsys.readouterr().err


def test_a_missing_program_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(runner, "PROGRAMS", ("no-such-program",))
    assert runner.main([]) == CannotMeasure.exit_code
    assert "not installed: no-such-program\n  next: make setup" in capsys.readouterr().err


def test_two_runs_at_once_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FWLAB_CACHE", str(tmp_path))
    (tmp_path / "nested-host").mkdir()
    with FileLock(tmp_path / "nested-host/lock"), pytest.raises(CannotMeasure, match="another run"):
        runner.nested_host(Project(tmp_path), ["socket"], ["raw-drop"], keep=False)


def test_results_are_never_replaced(tmp_path: Path) -> None:
    assert one_run.free_name(tmp_path, "2026-01-02").name == "2026-01-02.json"
    (tmp_path / "2026-01-02.json").touch()
    (tmp_path / "2026-01-02-2.json").touch()
    assert one_run.free_name(tmp_path, "2026-01-02").name == "2026-01-02-3.json"


def test_ci_does_not_run_it() -> None:
    assert "nested" not in (ROOT / ".ci/run").read_text()
    rules = (ROOT / "Makefile").read_text()
    assert "\nnested-host: boxes\n" in rules
    assert not [line for line in rules.splitlines() if line.startswith("test") and "nested" in line]


def test_a_free_port_is_free() -> None:
    assert free_port() > 1023


def test_log_has_no_progress_of_vagrant() -> None:
    """Vagrant separates its progress by carriage returns, and text mode splits there."""
    lines = [plain(line) for line in ("Progress: 1%", "\x1b[KProgress: 2%\n", "\x1b[K==> sink: Starting domain.\n")]
    assert [line for line in lines if not PROGRESS.fullmatch(line)] == ["==> sink: Starting domain."]
