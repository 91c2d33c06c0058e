# SPDX-License-Identifier: GPL-2.0-or-later
"""A lab's declared traffic: the frames that the generator would send, or the TCP connections that it would open."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fwlab.generator.traffic_store import TrafficStore
from fwlab.host.project import Project
from fwlab.model.declared_traffic import Traffic
from fwlab.model.errors import BadInput
from fwlab.model.lab import Lab
from fwlab.model.topology import Topology
from fwlab.traffic.frame_loop import Table


@dataclass(frozen=True)
class LabTraffic:
    """One entry of lab.yml's traffic that has a profile: its streams in TRex's RPC form and the table that an engine
    loops over."""

    id: str
    declared: Traffic
    streams: list[dict[str, Any]]
    table: Table


def declared_traffic(lab: Lab, traffic_id: str) -> Traffic:
    """Raises BadInput naming the lab and what it has."""
    declared = lab.traffic.get(traffic_id)
    if declared is None:
        raise BadInput(
            f"{lab.id}: unknown traffic {traffic_id}; there are: {', '.join(lab.traffic) or 'none'}",
            f"fwlab traffic show {lab.id}",
        )
    return declared


def lab_traffic(project: Project, topology: Topology, lab: Lab, traffic_id: str) -> LabTraffic:
    """Of a traffic with a profile. Raises BadInput naming the profile and its line or stream; nothing is started."""
    declared = declared_traffic(lab, traffic_id)
    tables = TrafficStore(project, topology, lab)
    return LabTraffic(traffic_id, declared, tables.streams(traffic_id), tables.table(traffic_id))
