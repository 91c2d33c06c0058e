# SPDX-License-Identifier: GPL-2.0-or-later
"""A lab's traffic as frame tables on disk, and how many packets of each class a run of one offered."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import numpy as np

from fwlab.logic.traffic.classes import OTHER, classify
from fwlab.logic.traffic.table import Table, build_table
from fwlab.outside.frame_table import write_table
from fwlab.outside.profile import load_profile
from fwlab.outside.project import Project
from fwlab.words.lab import Lab, TrafficClass
from fwlab.words.topology import Topology

#: The link that the generator plays into.
FIRST_LINK = "generator-dut"


class Tables:
    """Built on first use; the MACs are those of the link that the frames leave on."""

    def __init__(self, project: Project, topology: Topology, lab: Lab, seed: int = 1) -> None:
        self._project, self._lab, self._seed = project, lab, seed
        ends = topology.links[FIRST_LINK].ends
        self._macs = (_bytes(ends["dut"].mac), _bytes(ends["generator"].mac))
        self._built: dict[str, Table] = {}

    def table(self, traffic: str) -> Table:
        """Raises BadInput naming the profile where it is wrong."""
        if traffic not in self._built:
            entry = self._lab.traffic[traffic]
            streams = load_profile(self._project, self._lab.folder / entry.profile, entry.tunables)
            self._built[traffic] = build_table(streams, macs=self._macs, seed=self._seed)
        return self._built[traffic]

    def path(self, traffic: str) -> Path:
        """The frame table as a file for the replay engine."""
        path = self._project.state / self._lab.id / f"{traffic}.frames"
        if traffic not in self._built or not path.exists():
            table = self.table(traffic)
            path.parent.mkdir(parents=True, exist_ok=True)
            write_table(
                path,
                list(table.frames),
                times_ns=table.frames.times_ns,
                streams=table.frames.stream,
                loop_ns=table.loop_ns,
            )
        return path

    def offered(self, traffic: str, sent: int, classes: Mapping[str, TrafficClass]) -> dict[str, int]:
        """Packets by class among the first `sent` that the engine plays: it loops over the table."""
        found = self._classified(traffic, tuple(classes))
        loops, rest = divmod(sent, len(found))
        names = [*classes, OTHER]
        whole = np.bincount(found % len(names), minlength=len(names))
        part = np.bincount(found[:rest] % len(names), minlength=len(names))
        return {name: int(loops * whole[place] + part[place]) for place, name in enumerate(names)}

    @cache  # noqa: B019 - lives as long as the session
    def _classified(self, traffic: str, _names: tuple[str, ...]) -> np.ndarray:
        return classify(self.table(traffic).frames, self._lab.classes)


def _bytes(mac: str) -> bytes:
    return bytes.fromhex(mac.replace(":", ""))
