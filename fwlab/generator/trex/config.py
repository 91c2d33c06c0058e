# SPDX-License-Identifier: GPL-2.0-or-later
"""TRex's configuration file, generated from the generator and its link in topology.yml."""

from dataclasses import dataclass
from typing import Any

import yaml

from fwlab.generator.traffic_store import FIRST_LINK
from fwlab.model.topology import Topology

#: Cores that do not send: one for TRex's housekeeping, one for latency measurements.
OTHER_CORES = 2
#: Memory in MiB: the 2 MiB huge pages that TRex needs for two ports, and everything else.
HUGE_PAGES_MIB, OTHER_MIB = 4096, 1024
#: Stands for the second port: TRex requires an even number of ports.
DUMMY = "dummy"
#: MAC address of the dummy port, which neither sends nor receives.
DUMMY_MAC = "02:00:00:00:00:00"


@dataclass(frozen=True)
class Machine:
    """The generator's hardware. `pci`: its NIC's PCI address, such as 0000:00:03.0; None for a NIC on another bus."""

    cpus: int
    memory_mib: int
    pci: str | None = None


def uses_dpdk(machine: Machine) -> bool:
    """Whether TRex can drive the NIC itself, which takes dedicated cores and huge pages."""
    enough = machine.cpus > OTHER_CORES and machine.memory_mib >= HUGE_PAGES_MIB + OTHER_MIB
    return enough and machine.pci is not None


def trex_config(topology: Topology, machine: Machine, *, small: bool) -> str:
    """The contents of /etc/trex_cfg.yaml.

    small  use one thread and the kernel's packet socket, even on a large machine

    Port 0 is the link to the DUT. The DUT's MAC address is configured, so that TRex need not resolve it.
    """
    near, far = topology.end(FIRST_LINK, "generator"), topology.end(FIRST_LINK, "dut")
    pci = machine.pci if uses_dpdk(machine) and not small else None
    settings: dict[str, Any] = {
        "version": 2,
        "interfaces": [near.dev if pci is None else pci.removeprefix("0000:"), DUMMY],
        "port_info": [{"src_mac": near.mac, "dest_mac": far.mac}, {"src_mac": DUMMY_MAC, "dest_mac": DUMMY_MAC}],
        "port_mtu": topology.links[FIRST_LINK].mtu,
    }
    if pci is not None:
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
