# SPDX-License-Identifier: GPL-2.0-or-later
"""The built boxes, each booted by QEMU with its own seed.

Each build already checks the provisioning scripts. These tests check what only a boot of the finished box shows. The
three machines start together, as in a lab.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.live

ROOT = Path(__file__).resolve().parents[2]
IMAGES = ["dut-linux", "generator", "sink"]
MAX_BYTES = 250_000_000
BOOT_LIMIT_S = 300


def entries() -> dict[str, dict]:
    path = ROOT / ".fwlab" / "images.json"
    if not path.exists():
        pytest.fail(f"{path} is missing: run packer/build")
    return json.loads(path.read_text())


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start(image: str, entry: dict, seed: Path, work: Path, port: int) -> subprocess.Popen:
    """Boot the box's disk through its own boot loader, on an overlay."""
    # Not Python's tarfile: it takes times in Packer's archives for a part of the name.
    subprocess.run(["tar", "-xf", entry["path"], "-C", work, "box.img"], check=True)
    overlay = work / "overlay.qcow2"
    create = ["qemu-img", "create", "-q", "-f", "qcow2", "-F", "qcow2", "-b", work / "box.img", overlay]
    subprocess.run(create, check=True)
    command = ["qemu-system-x86_64", "-accel", "tcg", "-cpu", "qemu64", "-m", "512", "-display", "none"]
    command += ["-drive", f"file={overlay},if=virtio", "-cdrom", str(seed), "-serial", f"file:{work}/console.log"]
    command += ["-netdev", f"user,id=m,restrict=on,hostfwd=tcp:127.0.0.1:{port}-:22"]
    # With event indexes, the NIC may stop for good on a busy host.
    command += ["-device", "virtio-net-pci,netdev=m,event_idx=off"]
    return subprocess.Popen(command)


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Callable[[str], str]]]:
    """By image, a function that runs a command as root in its machine and returns the output."""
    top = tmp_path_factory.mktemp("images")
    subprocess.run([ROOT / "packer" / "seed", top], check=True)
    ports, processes, shells = {}, [], {}
    try:
        for image in IMAGES:
            (top / image).mkdir()
            ports[image] = free_port()
            processes.append(start(image, entries()[image], top / "seed.iso", top / image, ports[image]))

        def shell(image: str) -> Callable[[str], str]:
            ssh = ["ssh", "-q", "-i", top / "id_ed25519", "-p", str(ports[image]), "vagrant@127.0.0.1"]
            ssh[1:1] = ["-o", "StrictHostKeyChecking=no", "-o", f"UserKnownHostsFile={os.devnull}"]
            ssh[1:1] = ["-o", "ConnectTimeout=5", "-o", "BatchMode=yes"]

            def run(command: str) -> str:
                done = subprocess.run([*ssh, f"sudo sh -c '{command}'"], capture_output=True, text=True)
                if done.returncode:
                    raise RuntimeError(f"{image}: '{command}' ended with {done.returncode}: {done.stderr}")
                return done.stdout

            return run

        for image in IMAGES:
            shells[image] = shell(image)
            deadline = time.monotonic() + BOOT_LIMIT_S
            while True:
                try:
                    shells[image]("true")
                    break
                except RuntimeError:
                    if time.monotonic() > deadline:
                        pytest.fail(f"{image}: no SSH; console: {top / image / 'console.log'}")
                    time.sleep(1)
        yield shells
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(20)


@pytest.mark.parametrize("image", IMAGES)
def test_box_is_small_and_has_the_libvirt_format(image: str) -> None:
    path = Path(entries()[image]["path"])
    assert path.stat().st_size <= MAX_BYTES
    listed = subprocess.run(["tar", "-tf", path], check=True, capture_output=True, text=True).stdout
    assert set(listed.split()) == {"metadata.json", "Vagrantfile", "box.img"}


@pytest.mark.parametrize("image", IMAGES)
def test_manifest_describes_the_booted_image(machines: dict, image: str) -> None:
    manifest = json.loads(machines[image]("cat /etc/fwlab/image.json"))
    assert manifest == entries()[image]["manifest"]
    assert manifest["image"] == image
    assert machines[image]("uname -r").strip() == manifest["kernel"]


@pytest.mark.parametrize("image", IMAGES)
def test_boot_is_clean_and_quiet(machines: dict, image: str) -> None:
    machines[image]("systemctl is-system-running --wait || true")
    assert machines[image]("systemctl --failed --plain --no-legend") == ""
    assert machines[image]("cat /proc/net/packet").splitlines()[1:] == [], "an open packet socket"
    line = machines[image]("cat /proc/cmdline").split()
    assert {"net.ifnames=0", "nokaslr", "console=ttyS0"} <= set(line)
    assert machines[image]("systemctl list-timers --plain --no-legend") == ""


@pytest.mark.parametrize("image", IMAGES)
def test_keys_are_unique(machines: dict, image: str) -> None:
    keys = machines[image]("cat /home/*/.ssh/authorized_keys /root/.ssh/authorized_keys").splitlines()
    assert len(keys) == 1
    ids = {machines[other]("cat /etc/machine-id /etc/ssh/ssh_host_ed25519_key.pub") for other in IMAGES}
    assert len(ids) == len(IMAGES)


def test_dut_forwards_without_filtering(machines: dict) -> None:
    run = machines["dut-linux"]
    assert run("nft list ruleset") == ""
    assert "conntrack" not in run("lsmod")
    wanted = {
        "net.ipv4.ip_forward": "1",
        "net.ipv6.conf.all.forwarding": "1",
        "net.ipv4.conf.all.rp_filter": "0",
        "net.ipv4.conf.eth0.rp_filter": "0",
        "net.ipv4.conf.eth0.send_redirects": "0",
    }
    got = run("sysctl " + " ".join(wanted)).splitlines()
    assert dict(line.split(" = ") for line in got) == wanted


@pytest.mark.parametrize(
    "module", ["ip_set_hash_ip", "nft_compat", "xt_u32", "xt_hashlimit", "cls_flower", "nf_flow_table"]
)
def test_dut_kernel_has_the_labs_modules(machines: dict, module: str) -> None:
    machines["dut-linux"](f"modprobe --dry-run {module}")


def test_generator_has_its_engines(machines: dict) -> None:
    machines["generator"]("fwlab-replay --help && command -v trafgen && modprobe --dry-run pktgen")
