# SPDX-License-Identifier: GPL-2.0-or-later
"""The built boxes, and what their machines show once they run.

Each build already checks the provisioning scripts, and ends with a boot of the three machines, which is saved. Those of
the `lab` fixture continue from it.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from testinfra.host import Host

from .conftest import ROOT, Checkout

pytestmark = pytest.mark.live

ROLES = {"dut-linux": "dut", "generator": "generator", "sink": "sink"}
IMAGES = list(ROLES)
MAX_BYTES = 250_000_000


def entries() -> dict[str, dict]:
    path = ROOT / ".fwlab" / "images.json"
    if not path.exists():
        pytest.fail(f"{path} is missing: run packer/build")
    return json.loads(path.read_text())


@pytest.fixture
def hosts(lab: Checkout) -> dict[str, Host]:
    """The machine of each image."""
    return {image: lab.host(role) for image, role in ROLES.items()}


@pytest.mark.parametrize("image", IMAGES)
def test_box_is_small_and_has_the_libvirt_format(image: str) -> None:
    path = Path(entries()[image]["path"])
    assert path.stat().st_size <= MAX_BYTES
    listed = subprocess.run(["tar", "-tf", path], check=True, capture_output=True, text=True).stdout
    assert set(listed.split()) == {"metadata.json", "Vagrantfile", "box.img"}


@pytest.mark.parametrize("image", IMAGES)
def test_manifest_describes_the_running_image(hosts: dict[str, Host], image: str) -> None:
    manifest = json.loads(hosts[image].file("/etc/fwlab/image.json").content_string)
    assert manifest == entries()[image]["manifest"]
    assert manifest["image"] == image
    assert hosts[image].sysctl("kernel.osrelease") == manifest["kernel"]


@pytest.mark.parametrize("image", IMAGES)
def test_boot_was_clean_and_is_quiet(hosts: dict[str, Host], image: str) -> None:
    host = hosts[image]
    assert host.run("systemctl is-system-running").stdout.strip() == "running"
    assert host.check_output("systemctl --failed --plain --no-legend") == ""
    assert host.check_output("systemctl list-timers --plain --no-legend") == ""
    assert host.file("/proc/net/packet").content_string.splitlines()[1:] == [], "an open packet socket"
    line = host.file("/proc/cmdline").content_string.split()
    assert {"net.ifnames=0", "nokaslr", "norandmaps", "console=ttyS0"} <= set(line)


def test_keys_are_unique(hosts: dict[str, Host]) -> None:
    for host in hosts.values():
        assert len(host.check_output("cat /home/*/.ssh/authorized_keys /root/.ssh/authorized_keys").splitlines()) == 1
    for path in ("/etc/machine-id", "/etc/ssh/ssh_host_ed25519_key.pub"):
        assert len({host.file(path).content_string for host in hosts.values()}) == len(hosts)


def test_dut_forwards_without_filtering(hosts: dict[str, Host]) -> None:
    dut = hosts["dut-linux"]
    assert dut.check_output("nft list ruleset") == ""
    assert not dut.file("/sys/module/nf_conntrack").exists
    for name in ("net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"):
        assert dut.sysctl(name) == 1
    for name in ("all.rp_filter", "eth0.rp_filter", "eth0.send_redirects"):
        assert dut.sysctl(f"net.ipv4.conf.{name}") == 0


@pytest.mark.parametrize("package", ["nftables", "iptables", "ipset", "iproute2"])
def test_dut_has_its_tools(hosts: dict[str, Host], package: str) -> None:
    assert hosts["dut-linux"].package(package).is_installed


@pytest.mark.parametrize(
    "module", ["ip_set_hash_ip", "nft_compat", "xt_u32", "xt_hashlimit", "cls_flower", "nf_flow_table"]
)
def test_dut_kernel_has_the_labs_modules(hosts: dict[str, Host], module: str) -> None:
    assert hosts["dut-linux"].run("modprobe --dry-run %s", module).rc == 0  # not loaded, so Testinfra cannot list it


def test_generator_has_its_engines(hosts: dict[str, Host]) -> None:
    generator = hosts["generator"]
    assert generator.exists("fwlab-replay")
    assert generator.exists("trafgen")
    assert generator.run("fwlab-replay --help").rc == 0
    assert generator.run("modprobe --dry-run pktgen").rc == 0
