# SPDX-License-Identifier: GPL-2.0-or-later
"""New flows at a steady rate, as for S2's figure 14: connections to a web server, lookups, and flows that fall silent.

All packets arrive on one link, even those of hosts behind the firewall. A conversation's packets lie further apart than
the DUT takes at a time, so each meets the state that the one before it has left.
"""

import random
from ipaddress import IPv4Address

from trex_stl_lib.api import (
    IP,
    TCP,
    UDP,
    Ether,
    STLPktBuilder,
    STLScVmRaw,
    STLStream,
    STLTXCont,
    STLTXSingleBurst,
    STLVmFixChecksumHw,
    STLVmFixIpv4,
    STLVmFlowVar,
    STLVmWrFlowVar,
)

#: Packets per second. The DUT's table is filled at this load (fwlab/metrics/delivery.py), so all rates and times here
#: are those of the DUT's clock.
PPS = 20_000
#: Packets of a conversation that follow each other at once are this far apart (s).
STEP = 0.01
#: Behind the firewall.
NETWORK = int(IPv4Address("198.19.10.0"))
WEB, HTTPS, NAMES, PHONES, MEDIA = NETWORK + 80, 443, 53, 5060, 5004
#: In front of it: 198.18.0.0/16 without the link, and the networks of other classes.
OUTSIDE, TAKEN = int(IPv4Address("198.18.0.0")), {0, 64, 80, 100}
#: Ports of clients.
OWN, PORTS = range(1024, 65536), 400
#: Connections of which the last packet comes twice, telephones, lasting connections, and packets of each kind of
#: strangers: so many begin in a second.
LATE, QUIET, LASTING, STRANGERS = 100, 40, 20, 40
#: Flows that never pause.
STEADY = 32
#: Packets: from the client (True) or the server, flags, sequence and acknowledgement number. UDP has no flags.
OPEN = [(True, "S", 0, 0), (False, "SA", 0, 1), (True, "A", 1, 1)]
SHUT = [(True, "FA", 1, 1), (False, "FA", 1, 2), (True, "A", 2, 2)]
THERE, BACK = (True, "", 0, 0), (False, "", 0, 0)
#: What strangers send: to which port of the web server, or from which port to hosts that ask others.
KNOCKS = [(HTTPS, (True, "A", 1, 1)), (HTTPS, (True, "FA", 1, 1)), (NAMES, BACK), (PHONES, BACK)]
#: Bytes of a UDP packet's payload: the shortest frame has 64 bytes, of which 46 are headers and check sequence.
SHORTEST = 18


class Lifetimes:
    """Streams at rates of the DUT's clock; `fwlab traffic show` lists what a seed draws."""

    def get_streams(
        self,
        direction=0,
        connections=2000,
        lookups=1800,
        late_ms=1200,
        silent_ms=2200,
        idle_ms=4000,
        draw=1,
        **kwargs,
    ):
        """Flows that begin in a second, and times.

        connections  of visitors to the web server; each is over at once
        lookups    questions of hosts behind the firewall, each of which is answered at once
        late_ms    so long after the end of a few connections, their last packet comes once more
        silent_ms  so long after a telephone behind the firewall has registered, it is called
        idle_ms    so long a few connections are idle
        draw       draws all hosts but the web server, and the ports of clients
        """
        # The generator must not depend on the version of Python: random() is the one function that never changes.
        chance = random.Random(draw)
        far = [host for host in range(OUTSIDE, OUTSIDE + 65536) if host // 256 % 256 not in TAKEN]
        far = iter(shuffled(chance, [host for host in far if 0 < host % 256 < 255]))
        behind = shuffled(chance, [host for host in range(NETWORK + 1, NETWORK + 255) if host != WEB])
        inside, ports = behind[STEADY : STEADY + 60], shuffled(chance, OWN)[:PORTS]

        def hosts(count):
            return [next(far) for _ in range(count)]

        at_once = [(place * STEP, packet) for place, packet in enumerate([*OPEN, *SHUT])]
        again, idle = (5 * STEP + late_ms / 1000, SHUT[-1]), (2 * STEP + idle_ms / 1000, OPEN[-1])
        answered, called = [(0, THERE), (STEP, BACK)], (STEP + silent_ms / 1000, BACK)
        wanted = [
            ("visitors", connections, hosts(250), [WEB], HTTPS, at_once),
            ("late", LATE, hosts(40), [WEB], HTTPS, [*at_once, again]),
            ("lasting", LASTING, hosts(20), [WEB], HTTPS, [*at_once[:3], idle]),
            ("answers", lookups, inside, hosts(64), NAMES, answered),
            ("quiet", QUIET, inside, hosts(60), PHONES, [*answered, called]),
        ]
        left = hosts(64)
        for turn, (port, packet) in enumerate(KNOCKS):
            ends = (left, [WEB]) if packet[0] else (inside, left)
            wanted.append((f"strangers {turn}", STRANGERS, *ends, port, [(turn * STEP, packet)]))
        streams, rest = [], PPS
        for name, rate, clients, servers, port, packets in wanted:
            ends = {"client": clients, "port": ports, "server": servers}
            for place, (begin, packet) in enumerate(packets):
                streams.append(stream(f"{name} {place}", packet, ends, port, STLTXCont(pps=rate), begin))
                rest -= rate
        ends = {"client": behind[:STEADY], "port": ports[:STEADY], "server": hosts(STEADY)}
        once, always = STLTXSingleBurst(total_pkts=STEADY, pps=PPS), STLTXCont(pps=rest)
        streams.append(stream("steady 0", THERE, ends, MEDIA, once, 0, chained=False))
        streams.append(stream("steady 1", BACK, ends, MEDIA, always, 2 * STEP, chained=False))
        return streams


def shuffled(chance, values):
    """The values in an order that this seed gives with every version of Python."""
    return [value for _, value in sorted((chance.random(), value) for value in values)]


def stream(name, packet, ends, service, mode, begin, *, chained=True):
    """One packet of each conversation, the first of them `begin` seconds after the start.

    ends     values of client, port (the client's) and server, each in turn; service: the server's port
    chained  the port changes after a round of all clients, so that there are clients x ports conversations

    A class is known by the ends in front of the firewall, so only what they send has a name.
    """
    to_server, flags, seq, ack = packet
    layer, transport = ("TCP", TCP(flags=flags, seq=seq, ack=ack)) if flags else ("UDP", UDP(chksum=0))
    transport.sport, transport.dport = (1024, service) if to_server else (service, 1024)
    outside, inside = "198.18.1.1", "198.19.10.1"
    source, destination = (outside, inside) if to_server == bool(flags) else (inside, outside)
    headers = Ether() / IP(src=source, dst=destination, flags="DF") / transport
    program = [
        STLVmFlowVar(
            name=end,
            value_list=values,
            size=2 if end == "port" else 4,
            op="inc",
            split_to_cores=False,
            next_var="port" if chained and end == "client" else None,
        )
        for end, values in ends.items()
    ]
    places = ("IP.src", f"{layer}.sport", "IP.dst") if to_server else ("IP.dst", f"{layer}.dport", "IP.src")
    program += [STLVmWrFlowVar(fv_name=end, pkt_offset=place) for end, place in zip(ends, places, strict=True)]
    if flags:
        program.append(STLVmFixChecksumHw(l3_offset="IP", l4_offset="TCP", l4_type=13))
    else:  # no checksum (RFC 768)
        program.append(STLVmFixIpv4(offset="IP"))
    named = name if source == outside else None
    builder = STLPktBuilder(pkt=headers / bytes(0 if flags else SHORTEST), vm=STLScVmRaw(program))
    return STLStream(name=named, packet=builder, mode=mode, isg=begin * 1e6)


def register():
    return Lifetimes()
