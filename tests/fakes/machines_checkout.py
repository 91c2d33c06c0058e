# SPDX-License-Identifier: GPL-2.0-or-later
"""A small checkout for tests of machines: what Vagrant and fwlab.machines need, and no boxes."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import yaml

from fwlab.machines.plan import Plan
from fwlab.machines.seed import Seed
from fwlab.model.topology import Topology
from tests import ROOT

TOPOLOGY = Topology.model_validate(yaml.safe_load((ROOT / "topology.yml").read_text()))
#: Moves the ports of a lab below those that checkouts choose (fwlab/host/ports.py), so that these tests can run while a
#: lab does. Above, Linux's ephemeral ports begin: a connection of any program may have one of them.
OFFSET = -19_500
LAB = "lab03-ipset"
MACHINES = {"generator": f"{LAB}-generator", "dut": LAB, "sink": f"{LAB}-sink"}


def small_checkout(root: Path, *labs: str) -> Path:
    """A checkout with these labs (default: lab03-ipset and lab11-sriov) and no boxes."""
    for lab in labs or (LAB, "lab11-sriov"):
        (root / "labs" / lab).mkdir(parents=True)
    for name in ("topology.yml", "Vagrantfile"):
        shutil.copy(ROOT / name, root)
    for name in ("vagrant", "cloud-init", "host"):
        shutil.copytree(ROOT / "provision" / name, root / "provision" / name)
    (root / ".venv").symlink_to(sys.prefix)
    return root


def environment(checkout: Path, **extra: str) -> dict[str, str]:
    """The environment without anybody's settings, and with these."""
    drop = ("FWLAB_", "VAGRANT_", "LIBVIRT_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(drop)}
    own = {
        "FWLAB_CACHE": str(checkout / "cache"),
        "FWLAB_PORT_OFFSET": str(OFFSET),
        "VAGRANT_HOME": str(checkout / "vagrant-home"),
        "VAGRANT_CHECKPOINT_DISABLE": "1",
        "VAGRANT_NO_COLOR": "1",
    }
    return {**kept, **own, **extra}


@contextmanager
def settings(checkout: Path, **extra: str) -> Iterator[Plan]:
    """The checkout's plan, in such an environment."""
    with patch.dict(os.environ, environment(checkout, **extra), clear=True):
        yield Plan(checkout)


def planned(checkout: Path, **extra: str) -> dict[str, Any]:
    """What Vagrant reads."""
    with settings(checkout, **extra) as plan:
        return plan.planned([])


def seed_file(checkout: Path, machine: str, name: str, **extra: str) -> str:
    """A file on the CD with a machine's seed."""
    with settings(checkout, **extra) as plan:
        return Seed(plan.machine(machine), "ssh-ed25519 AAAA fwlab").files()[name]


def declare(checkout: Path, lab: str, **needs: list[str]) -> None:
    """Write a lab.yml whose `needs` say this."""
    (checkout / "labs" / lab / "lab.yml").write_text(f"id: {lab}\nneeds: {json.dumps(needs)}\ntitle: A lab\n")


def made(checkout: Path, lab: str, links: dict[str, str], box: str = "fwlab-dut-linux-0") -> None:
    """Record a DUT."""
    kinds = "+".join(sorted(set(links.values())))
    machine = {"domain": "d", "box": box, "accelerator": "tcg", "icount_shift": 2, "link": kinds, "links": links}
    record = {"format": "fwlab-machines/1", "lab": lab, "testbed": "virtual", "machines": {"dut": machine}}
    path = checkout / ".fwlab" / lab / "machines.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record))


def build(checkout: Path, *images: str) -> None:
    """List these images as built. Vagrant has them in the home that `environment` gives it."""
    (checkout / ".fwlab").mkdir(exist_ok=True)
    boxes = {image: {"box": f"fwlab-{image}-0", "path": str(checkout / f"cache/{image}.box")} for image in images}
    (checkout / ".fwlab/images.json").write_text(json.dumps(boxes))
    for box in boxes.values():
        (checkout / "vagrant-home/boxes" / box["box"]).mkdir(parents=True, exist_ok=True)
