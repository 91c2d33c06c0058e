# SPDX-License-Identifier: GPL-2.0-or-later
"""The traffic that a lab declares: the frames that the generator would send."""

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
    """An entry of lab.yml's traffic with a profile: its streams in TRex's RPC format and its frame table."""

    id: str
    declared: Traffic
    streams: list[dict[str, Any]]
    table: Table


def declared_traffic(lab: Lab, traffic_id: str) -> Traffic:
    """The entry of lab.yml. Raises BadInput with the names of the lab's traffic."""
    declared = lab.traffic.get(traffic_id)
    if declared is None:
        raise BadInput(
            f"{lab.id}: unknown traffic {traffic_id}; there are: {', '.join(lab.traffic) or 'none'}",
            f"fwlab traffic show {lab.id}",
        )
    return declared


def lab_traffic(project: Project, topology: Topology, lab: Lab, traffic_id: str) -> LabTraffic:
    """Load a traffic with a profile. Raises BadInput naming the profile and its line or stream. Starts nothing."""
    declared = declared_traffic(lab, traffic_id)
    store = TrafficStore(project, topology, lab)
    return LabTraffic(traffic_id, declared, store.streams(traffic_id), store.table(traffic_id))
