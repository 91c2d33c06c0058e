# SPDX-License-Identifier: GPL-2.0-or-later
"""TRex's configuration file, from what topology.yml says of the generator and its link."""

from __future__ import annotations

from dataclasses import dataclass

import yaml

from fwlab.model.topology import LinkEnd, Topology

LINK = "generator-dut"
#: Besides those that send: one for TRex's own housekeeping, one for latency.
OTHER_CORES = 2
#: Huge pages of 2 MiB that TRex takes for two ports, and memory for everything else (MiB).
HUGE_PAGES_MIB, BESIDE_MIB = 4096, 1024
#: A port that is none. TRex wants its ports in pairs.
DUMMY = "dummy"
#: For the address that a dummy port has to have; nothing is ever sent from or to it.
NOWHERE = "02:00:00:00:00:00"


@dataclass(frozen=True)
class Machine:
    """What the generator has. `pci` is its link's device, such as 0000:00:03.0; None where it is not on that bus."""

    cpus: int
    memory_mib: int
    pci: str | None = None


def wants_own_driver(machine: Machine) -> bool:
    """Whether TRex can drive the NIC by itself: it needs cores to spin on and huge pages."""
    enough = machine.cpus > OTHER_CORES and machine.memory_mib >= HUGE_PAGES_MIB + BESIDE_MIB
    return enough and machine.pci is not None


def trex_config(topology: Topology, machine: Machine, *, small: bool) -> str:
    """/etc/trex_cfg.yaml. `small`: one thread that sends through the kernel's packet socket, whatever there is.

    Port 0 is the link to the DUT. Its frames go to the DUT's MAC address, so that nobody has to be asked for it.
    """
    near, far = topology.end(LINK, "generator"), topology.end(LINK, "dut")
    own_driver = wants_own_driver(machine) and not small
    settings = {
        "version": 2,
        "interfaces": [machine.pci.removeprefix("0000:") if own_driver else near.dev, DUMMY],
        "port_info": [_port(near, far), {"src_mac": NOWHERE, "dest_mac": NOWHERE}],
        "port_mtu": topology.links[LINK].mtu,
    }
    if own_driver:
        sending = list(range(OTHER_CORES, machine.cpus))
        settings["c"] = len(sending)
        settings["platform"] = {
            "master_thread_id": 0,
            "latency_thread_id": 1,
            "dual_if": [{"socket": 0, "threads": sending}],
        }
    else:
        settings |= {"low_end": True, "c": 1}
    return yaml.safe_dump([settings], sort_keys=False, default_flow_style=None)


def _port(near: LinkEnd, far: LinkEnd) -> dict[str, str]:
    return {"src_mac": near.mac, "dest_mac": far.mac}
