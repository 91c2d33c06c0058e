# SPDX-License-Identifier: GPL-2.0-or-later
"""What virtio links change, by the real `ip` and kernel, in a network namespace of its own. Needs root, no machine."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LAB = "lab03-ipset"

#: Prints what a bridge looks like, whether a frame crosses it, and what is left after restore. Two veth pairs stand for
#: the machines' tap devices.
SCRIPT = """
import dataclasses, json, socket, subprocess, sys, time
from pathlib import Path
from fwlab.host.nics import Devices
from fwlab.host.nics import Ip
from fwlab.checkout.project import Project, load_topology
from fwlab.testbed.host_links import prepare

work = Path(sys.argv[1])
for name in ("net/tun", "vhost-net"):
    (work / "dev" / name).parent.mkdir(parents=True, exist_ok=True)
    (work / "dev" / name).touch()
devices, ip, project = Devices(dev=work / "dev"), Ip(), Project(Path.cwd())
prepare.LINKS = {**prepare.LINKS, "virtio": dataclasses.replace(prepare.LINKS["virtio"], devices=devices)}
topology = load_topology(project)
links = prepare.HostLinks(project, topology, devices, ip, work / "run")
before = devices.nics()
links.prepare("LAB", dict.fromkeys(topology.links, "virtio"))
made = [name for name in devices.nics() if name not in before]
shown = json.loads(ip.run(["-json", "-details", "link", "show", "dev", made[0]]))[0]
addresses = json.loads(ip.run(["-json", "address", "show", "dev", made[0]]))[0]["addr_info"]
for end in "ab":
    ip.run(["link", "add", f"tap-{end}", "type", "veth", "peer", "name", f"nic-{end}"])
    ip.run(["link", "set", "dev", f"tap-{end}", "master", made[0], "up"])
    ip.run(["link", "set", "dev", f"nic-{end}", "up"])
receiver = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x88B5))
receiver.bind(("nic-b", 0x88B5))
receiver.settimeout(0.2)
sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
sender.bind(("nic-a", 0))
frame = bytes.fromhex("525400120001" "525400120002" "88b5") + bytes(46)
crossed = False
for _ in range(50):  # until the ports forward
    sender.send(frame)
    try:
        crossed = receiver.recv(2048) == frame
        break
    except TimeoutError:
        pass
for end in "ab":
    ip.run(["link", "delete", "dev", f"tap-{end}"])
links.restore("LAB")
print(json.dumps({"made": made, "shown": shown, "addresses": addresses, "crossed": crossed,
                  "left": [name for name in devices.nics() if name not in before]}))
"""


@pytest.mark.skipif(os.getuid() != 0 or shutil.which("unshare") is None, reason="needs root and unshare")
def test_a_bridge_carries_frames_has_no_address_and_goes_away(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT.replace("LAB", LAB))
    inner = "mount -t sysfs none /sys && echo 0 | tee /proc/sys/net/bridge/bridge-nf-call-ip*tables >/dev/null 2>&1;"
    inner += f"exec {sys.executable} {tmp_path}/script.py {tmp_path}"
    env = {**os.environ, "PYTHONPATH": str(ROOT), "FWLAB_LIBVIRT_URI": "qemu:///system"}
    argv = ["unshare", "--net", "--mount", "sh", "-c", inner]
    done = subprocess.run(argv, cwd=ROOT, env=env, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert len(found["made"]) == 2
    assert found["addresses"] == []
    options = found["shown"]["linkinfo"]["info_data"]
    assert (options["stp_state"], options["mcast_snooping"], found["shown"]["mtu"]) == (0, 0, 1500)
    assert found["shown"]["ifalias"] == f"fwlab {LAB} generator-dut"
    assert {"UP", "NOARP"} <= set(found["shown"]["flags"])
    assert found["crossed"]
    assert found["left"] == []
