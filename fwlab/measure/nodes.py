# SPDX-License-Identifier: GPL-2.0-or-later
"""Open the three nodes of running machines: engine, sink and DUT. Each measurement restores the DUT's start state."""

import contextlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from fwlab.dut.protocol import CoreModel, Dut
from fwlab.dut.registry import dut_system
from fwlab.generator import selection as engines
from fwlab.generator.echo import EchoProbes
from fwlab.generator.pacing.paced_load import PacedLoad, Recorder
from fwlab.generator.protocol import TcpEndpoints
from fwlab.generator.sink import BothEnds
from fwlab.generator.traffic_store import FIRST_LINK, LAST_LINK
from fwlab.judge.clocks import CLOCKS
from fwlab.measure.context import RunContext
from fwlab.measure.measurer import Measurer
from fwlab.measure.recovery import Recovery
from fwlab.metrics.measurement import Nodes
from fwlab.model.declared_traffic import Connections
from fwlab.model.errors import CannotMeasure, CannotStart
from fwlab.model.events import EventSink, LogLine
from fwlab.model.results import DutFacts
from fwlab.model.topology import Topology
from fwlab.own import bench_client
from fwlab.testbed.machines import Machines
from fwlab.testbed.qemu_process import Snapshot

#: The kind of link whose frames QEMU itself passes on.
PACED_LINK = "socket"
OpenNodes = tuple[Measurer, Recovery, DutFacts]


@contextlib.contextmanager
def open_nodes(
    context: RunContext,
    machines: Machines,
    choice: engines.Choice,
    emit: EventSink,
    model: CoreModel | None = None,
) -> Iterator[OpenNodes]:
    """Yields what measures on these nodes, what restores the DUT, and the DUT as it was found.

    model  a modelled core that watches the DUT; None: none does
    Raises CannotMeasure if a node does not answer, or if the DUT is not fit to be measured.
    """
    topology = context.topology
    devices = [topology.end(FIRST_LINK, "dut").dev, topology.end(LAST_LINK, "dut").dev]
    to_dut, to_generator, to_sink = (machines.ssh(node) for node in ("dut", "generator", "sink"))
    first, last = topology.end(FIRST_LINK, "generator"), topology.end(LAST_LINK, "sink")
    engine = engines.make(choice, to_generator, topology, machines.testbed)
    sink = BothEnds(to_sink, last.dev, to_generator, first.dev)
    number = context.machines_lab.number
    forwarded = topology.ports.address, topology.ssh_port(number, "dut")
    link_ports = topology.link_port(number, FIRST_LINK, "dut"), topology.link_port(number, LAST_LINK, "dut")
    throttle = machines.throttle()
    endpoints = engines.make_tcp_endpoints(choice, to_generator, to_sink, topology, machines.testbed)

    cannot_start: list[CannotStart] = []

    @contextlib.contextmanager
    def tcp(connections: Connections) -> Iterator[TcpEndpoints]:
        for error in cannot_start:
            raise error
        try:
            with machines.large_receive_buffers(), endpoints(connections) as both_ends:
                yield both_ends
        except CannotStart as error:
            cannot_start.append(error)
            raise

    system = dut_system(topology.nodes["dut"].system)
    dut = system.connect(to_dut, devices)
    others = [to_generator, to_sink]
    recovery = Recovery(dut, to_dut, lambda: Snapshot(*forwarded), others, lambda line: emit(LogLine(line)))
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.closing(recovery))
        stack.enter_context(contextlib.closing(engine))
        dut.install()
        if context.untrusted:
            recovery.save()
        # Both while the agent starts, which takes longest. Earlier they would delay it on a host with two cores.
        pool = stack.enter_context(ThreadPoolExecutor())
        ready = [pool.submit(to_generator.prepare), pool.submit(sink.absorb_all, context.lab.classes)]
        stack.enter_context(dut)
        if model is not None:
            dut.watched_by(model)
        facts = _dut_facts(dut, system.name)
        for prepared in ready:
            prepared.result()
        ns_per_instruction, pacing, recording = _own_time(
            machines, topology, dut, PacedLoad(*forwarded, link_ports, (first.mac, last.mac))
        )
        nodes = Nodes(
            dut=dut,
            engine=engine,
            sink=sink,
            store=context.store,
            classes=context.lab.classes,
            throttle=throttle,
            levels=len(throttle),
            ring=topology.machine.receive_ring,
            tcp=tcp,
            restore=recovery.restore,
            clock=machines.testbed.kind.clock,
            emit=emit,
            echo=EchoProbes(to_generator, last.ipv4.split("/")[0]).send,
            ns_per_instruction=ns_per_instruction,
            pacing=pacing,
            recording=recording,
            bench=lambda: bench_client.on(to_dut),
        )
        yield Measurer(nodes), recovery, facts


def _own_time(
    machines: Machines, topology: Topology, dut: Dut, links: PacedLoad
) -> tuple[int, PacedLoad | None, Recorder | None]:
    """Nanoseconds of the DUT's clock for each instruction, and what QEMU can do on these links: play, and record."""
    by_qemu = machines.made.link == PACED_LINK
    recording = links.recording if by_qemu else None
    if not CLOCKS[machines.testbed.kind.clock].paced:
        return 1, None, recording
    return 1 << topology.clock.icount_shift, links if by_qemu and dut.can_be_paced else None, recording


def _dut_facts(dut: Dut, system: str) -> DutFacts:
    answer = dut.facts()
    if answer.pop("packet_sockets"):
        raise CannotMeasure(
            "a program on the DUT holds a packet socket open, which stamps and slows every packet",
            "on the DUT: `ss -0 -p` names it; or `vagrant reload LAB`",
        )
    return DutFacts(system=system, **answer)
