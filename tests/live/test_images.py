# SPDX-License-Identifier: GPL-2.0-or-later
"""The built boxes, and what their machines show once they run.

Each build already checks the provisioning scripts, and ends with a boot of the three machines, which is saved. Those of
the `lab` fixture continue from it.
"""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import ROOT, Checkout

pytestmark = pytest.mark.live

ROLES = {"dut-linux": "dut", "generator": "generator", "sink": "sink"}
IMAGES = list(ROLES)
MAX_BYTES = 250_000_000

Run = Callable[[str, str], str]


def entries() -> dict[str, dict]:
    path = ROOT / ".fwlab" / "images.json"
    if not path.exists():
        pytest.fail(f"{path} is missing: run packer/build")
    return json.loads(path.read_text())


@pytest.fixture
def run(lab: Checkout) -> Run:
    """Runs a command as root in the machine of an image."""
    return lambda image, command: lab.run(ROLES[image], f"sudo sh -c {shlex.quote(command)}")


@pytest.mark.parametrize("image", IMAGES)
def test_box_is_small_and_has_the_libvirt_format(image: str) -> None:
    path = Path(entries()[image]["path"])
    assert path.stat().st_size <= MAX_BYTES
    listed = subprocess.run(["tar", "-tf", path], check=True, capture_output=True, text=True).stdout
    assert set(listed.split()) == {"metadata.json", "Vagrantfile", "box.img"}


@pytest.mark.parametrize("image", IMAGES)
def test_manifest_describes_the_running_image(run: Run, image: str) -> None:
    manifest = json.loads(run(image, "cat /etc/fwlab/image.json"))
    assert manifest == entries()[image]["manifest"]
    assert manifest["image"] == image
    assert run(image, "uname -r").strip() == manifest["kernel"]


@pytest.mark.parametrize("image", IMAGES)
def test_boot_was_clean_and_is_quiet(run: Run, image: str) -> None:
    assert run(image, "systemctl is-system-running || true").strip() == "running"
    assert run(image, "systemctl --failed --plain --no-legend") == ""
    assert run(image, "cat /proc/net/packet").splitlines()[1:] == [], "an open packet socket"
    line = run(image, "cat /proc/cmdline").split()
    assert {"net.ifnames=0", "nokaslr", "norandmaps", "console=ttyS0"} <= set(line)
    assert run(image, "systemctl list-timers --plain --no-legend") == ""


@pytest.mark.parametrize("image", IMAGES)
def test_keys_are_unique(run: Run, image: str) -> None:
    keys = run(image, "cat /home/*/.ssh/authorized_keys /root/.ssh/authorized_keys").splitlines()
    assert len(keys) == 1
    ids = {run(other, "cat /etc/machine-id /etc/ssh/ssh_host_ed25519_key.pub") for other in IMAGES}
    assert len(ids) == len(IMAGES)


def test_dut_forwards_without_filtering(run: Run) -> None:
    assert run("dut-linux", "nft list ruleset") == ""
    assert "conntrack" not in run("dut-linux", "lsmod")
    wanted = {
        "net.ipv4.ip_forward": "1",
        "net.ipv6.conf.all.forwarding": "1",
        "net.ipv4.conf.all.rp_filter": "0",
        "net.ipv4.conf.eth0.rp_filter": "0",
        "net.ipv4.conf.eth0.send_redirects": "0",
    }
    got = run("dut-linux", "sysctl " + " ".join(wanted)).splitlines()
    assert dict(line.split(" = ") for line in got) == wanted


@pytest.mark.parametrize(
    "module", ["ip_set_hash_ip", "nft_compat", "xt_u32", "xt_hashlimit", "cls_flower", "nf_flow_table"]
)
def test_dut_kernel_has_the_labs_modules(run: Run, module: str) -> None:
    run("dut-linux", f"modprobe --dry-run {module}")


def test_generator_has_its_engines(run: Run) -> None:
    run("generator", "fwlab-replay --help && command -v trafgen && modprobe --dry-run pktgen")
