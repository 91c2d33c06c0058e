# SPDX-License-Identifier: GPL-2.0-or-later
"""A lab's declared traffic, from its profile to the frames that the generator would send."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fwlab.logic.traffic.table import Table, build_table
from fwlab.outside.profile import load_profile
from fwlab.outside.project import Project, shown
from fwlab.words.errors import BadInput
from fwlab.words.lab import Lab, Traffic
from fwlab.words.topology import Topology


@dataclass(frozen=True)
class LabTraffic:
    """One entry of lab.yml's traffic: its streams in TRex's RPC form and the table that an engine loops
    over."""

    id: str
    declared: Traffic
    streams: list[dict[str, Any]]
    table: Table


def lab_traffic(project: Project, topology: Topology, lab: Lab, traffic_id: str) -> LabTraffic:
    """Raises BadInput naming the lab, the profile and its line or stream; nothing is started."""
    declared = lab.traffic.get(traffic_id)
    if declared is None:
        raise BadInput(
            f"{lab.id}: unknown traffic {traffic_id}; there are: {', '.join(lab.traffic) or 'none'}",
            f"fwlab traffic show {lab.id}",
        )
    path = lab.folder / declared.profile
    streams = load_profile(project, path, declared.tunables)
    try:
        table = build_table(streams, macs=first_hop(topology))
    except BadInput as error:
        raise BadInput(f"{shown(project, path)}: {error.message}", error.hint) from error
    return LabTraffic(traffic_id, declared, streams, table)


def first_hop(topology: Topology) -> tuple[bytes, bytes]:
    """MAC addresses (destination, source) of what the generator sends: the DUT's and its own."""
    ends = (topology.end("generator-dut", role).mac for role in ("dut", "generator"))
    destination, source = (bytes.fromhex(mac.replace(":", "")) for mac in ends)
    return destination, source
