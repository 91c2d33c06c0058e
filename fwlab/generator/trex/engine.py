# SPDX-License-Identifier: GPL-2.0-or-later
"""TRex in the registry of engines: whether the generator's image holds it, and what it plays."""

from contextlib import AbstractContextManager

from fwlab.generator.protocol import Availability, TcpEndpoints
from fwlab.generator.traffic_store import TrafficStore
from fwlab.generator.trex.astf import trex_tcp_endpoints
from fwlab.generator.trex.stateless import Trex, check_traffic
from fwlab.generator.trex.streams import varies_all
from fwlab.host.project import Project
from fwlab.host.ssh import Ssh
from fwlab.images.boxes import built_boxes
from fwlab.model.declared_traffic import Connections
from fwlab.model.errors import BadInput, CannotMeasure
from fwlab.model.topology import Topology


def trex_in_image(project: Project) -> str | None:
    """The TRex version in the generator's image; None if the image has no TRex or was not built yet."""
    try:
        version = built_boxes(project).get("generator", {}).get("trex", {}).get("version")
    except CannotMeasure:
        return None
    return None if version is None else str(version)


class TrexKind:
    """The engine `trex`: stateless streams, and TCP connections in its advanced stateful mode."""

    name, position, automatic = Trex.name, 1, True

    def availability(self, project: Project) -> Availability:
        version = trex_in_image(project)
        if version is not None:
            return Availability(True, f"the generator's image holds TRex {version}")
        return Availability(
            False,
            "the generator's image holds no TRex",
            "FWLAB_TREX_URL=/path/to/vX.Y.tar.gz FWLAB_TREX_SHA256=... make boxes",
        )

    def check(self, store: TrafficStore, traffic: str, *, asked: bool) -> None:
        check_traffic(store, traffic)
        if not asked and not varies_all(store.streams(traffic)):
            raise BadInput(f"{traffic}: TRex does not number the segments of TCP", "use `--engine replay`")

    def make(self, ssh: Ssh, topology: Topology, *, emulated: bool) -> Trex:
        return Trex(ssh, topology, small=emulated)

    def tcp_endpoints(
        self, generator: Ssh, sink: Ssh, topology: Topology, connections: Connections, *, emulated: bool
    ) -> AbstractContextManager[TcpEndpoints] | None:
        return trex_tcp_endpoints(generator, sink, topology, connections, small=emulated)


ENGINE = TrexKind()
