# SPDX-License-Identifier: GPL-2.0-or-later
"""The traffic of the exercises that look into the payload. All streams have the same sources."""

import random

from trex_stl_lib.api import (
    IP,
    UDP,
    Ether,
    STLPktBuilder,
    STLScVmRaw,
    STLStream,
    STLTXCont,
    STLVmFixIpv4,
    STLVmFlowVar,
    STLVmWrFlowVar,
)

#: Bytes of Ethernet's frame check sequence: part of a frame's size on the wire, but not of the packet given to TRex.
FCS = 4
#: Packets per second for a share of 1 %. Nominal; only the proportions count.
ONE = 100
#: Letters of names, and how often the name of ex1 is spelt otherwise.
LETTERS, SPELLINGS = "abcdefghijklmnopqrstuvwxyz", 16
#: Type and class of a query: an IPv4 address.
TYPE = bytes.fromhex("00010001")
#: Sources from 198.18.64.1 on, in an order without a pattern: addresses tell nothing.
SOURCES = [0xC6124001 + turn * 139 % 250 for turn in range(250)]
#: How many destinations, drawn from 198.19.0.0/16, the packets of each stream go to in turn.
DESTINATIONS = 5


class Mixes:
    """Continuous streams that differ in their payload, and in the port where the exercise is about it."""

    def get_streams(self, direction=0, scene="names", size=128, blocked="", draw=1, **kwargs):
        """`size` is in bytes on the wire, FCS included. `blocked`: numbers of names, for the scene `many-names`. `draw`
        draws destinations, spellings, other people's names and the places of signatures.

        names       queries for names of one domain and for similar ones, and text in which such a name stands
        port        a few queries beside long packets of another port, some of which quote a query
        place       requests to time servers, some with IP options
        repetitive  long packets of few different words, some with a signature
        many-names  queries for 64 names in each of two domains
        """
        listed = [int(number) for number in blocked.split()]
        # The generator must not depend on the version of Python: random() is the one function that never changes.
        chance = random.Random(draw)
        streams = SCENES[scene](listed, chance)
        destinations = [0xC6130001 + int(65534 * chance.random()) for _ in range(DESTINATIONS)]
        return [stream(size, destinations, *item) for item in streams]


def names(_, chance):
    text = f"{word(chance, 4)} www.foo.com/index.html".encode()
    similar = [("thatfoo.com", 5), (f"{word(chance, 4)}foo.com", 5), (f"www.{word(chance, 2)}foo.com", 5)]
    longer = [("foo.com.org", 8), (f"www.foo.com.{word(chance, 3)}", 7)]
    others = [(f"www.{word(chance, 3)}.com", 5), (f"foo.{word(chance, 3)}", 5)]
    mixed = [("www.", 8), ("", 6), (f"{word(chance, 4)}.", 6)]
    return [
        *asked(chance, 30),
        *(
            (query(f"{host}foo.com"), 53, share, f"mixed {n}", spellings(chance, host))
            for n, (host, share) in enumerate(mixed)
        ),
        *((query(name), 53, share, f"lookalike {n}") for n, (name, share) in enumerate(similar)),
        *((query(name), 53, share, f"longer {n}") for n, (name, share) in enumerate(longer)),
        *((query(name), 53, share, f"other-names {n}") for n, (name, share) in enumerate(others)),
        (text, 53, 10, "text"),
    ]


def asked(chance, share):
    """Queries for foo.com, and for names at any depth in it."""
    hosts = ["www.", "", f"{word(chance, 4)}.", f"{word(chance, 2)}.{word(chance, 3)}.", f"{word(chance, 20)}."]
    return [(query(f"{host}foo.com"), 53, share / len(hosts), f"asked {turn}") for turn, host in enumerate(hosts)]


def word(chance, count):
    """Letters, but neither foo nor bar."""
    found = "foo"
    while found in ("foo", "bar"):
        found = "".join(LETTERS[int(26 * chance.random())] for _ in range(count))
    return found


def spellings(chance, host):
    """A host's name in foo.com in letters of both cases, at least one of foo's a capital, as DNS sends it."""
    found = []
    while len(found) < SPELLINGS:
        name = "".join(letter.upper() if chance.random() < 0.5 else letter for letter in f"{host}foo.com")
        if name[len(host) :][:3] != "foo" and encoded(name) not in found:
            found.append(encoded(name))
    return found


def port(_, chance):
    quoted = bytes(12) + encoded("www.foo.com")
    return [
        *asked(chance, 5),
        (query(f"www.{word(chance, 3)}.com"), 53, 5, "other-names"),
        (quoted, 5004, 30),
        (bytes(12) + encoded("www.bar.com"), 5004, 60),
    ]


def place(*_):
    """NTP. In mode 7 of implementation 3, request 42 asks for the list of clients; in mode 3 a client asks for time."""
    request = bytes.fromhex("1700032a00000008")
    time = bytes.fromhex("230206e8") + bytes(36)
    return [
        (request, 123, 30),
        (request, 123, 10, None, None, True),
        (bytes.fromhex("1700030000000008"), 123, 15),
        (time + bytes.fromhex("ec5a1c8e1700032a"), 123, 15),
        (time + bytes.fromhex("ec5a1c8e3b6420c5"), 123, 30),
    ]


def repetitive(_, chance):
    """The signature is at eight places, 100 on average: a search ends where it finds."""
    words = b"aaaab" * 400
    signature = b"GATEaaaabaaabaaa"
    early = [25 * part + int(25 * chance.random()) for part in range(4)]
    places = sorted([*early, *(200 - place for place in early)])
    return [
        (words, 5000, 80),
        *((words[:at] + signature + words, 5000, 10 / 8, f"marked {at}") for at in places),
        (words[: int(200 * chance.random())] + b"GATE" + words, 5000, 10, "gates"),
    ]


def many_names(listed, _):
    """Queries for names in foo.com, of which some are listed, and for the same hosts of bar.com."""
    found = [(query(f"w{number:02}.foo.com"), 53, 1.0) for number in range(64)]
    return [*found, *((query(f"w{number:02}.bar.com"), 53, 0.5) for number in listed)]


SCENES = {"names": names, "port": port, "place": place, "repetitive": repetitive, "many-names": many_names}


def encoded(name):
    """A name as DNS sends it: the length of each label before it, and a zero at the end."""
    return b"".join(bytes([len(label)]) + label.encode() for label in name.split(".")) + b"\0"


def query(name):
    """A DNS message that asks for the address of a name."""
    return bytes.fromhex("5d3f01000001000000000000") + encoded(name) + TYPE


def stream(size, destinations, payload, dport, share, name=None, spelt=None, options=False):
    """A continuous stream; its payload is cut, or filled with zeros.

    spelt    names of DNS that take turns at byte 12 of the payload
    options  whether the IP header has some
    """
    nothing = {"options": b"\1\1\1\1"} if options else {}
    # No UDP checksum (RFC 768 allows it): it would have to follow the source address.
    headers = Ether() / IP(src="198.18.64.1", dst="198.19.10.1", **nothing) / UDP(sport=1025, dport=dport, chksum=0)
    room = size - FCS - len(headers)
    program = [
        STLVmFlowVar(name="source", value_list=SOURCES, size=4, op="inc"),
        STLVmWrFlowVar(fv_name="source", pkt_offset="IP.src"),
        STLVmFlowVar(name="destination", value_list=destinations, size=4, op="inc"),
        STLVmWrFlowVar(fv_name="destination", pkt_offset="IP.dst"),
        STLVmFixIpv4(offset="IP"),
    ]
    for begin in range(0, 16, 4) if spelt else ():
        values = [int.from_bytes((one + TYPE).ljust(16, b"\0")[begin : begin + 4], "big") for one in spelt]
        program += [
            STLVmFlowVar(name=f"letters{begin}", value_list=values, size=4, op="inc"),
            STLVmWrFlowVar(fv_name=f"letters{begin}", pkt_offset=len(headers) + 12 + begin),
        ]
    packet = STLPktBuilder(pkt=headers / payload[:room].ljust(room, b"\0"), vm=STLScVmRaw(program))
    return STLStream(name=name, packet=packet, mode=STLTXCont(pps=share * ONE))


def register():
    return Mixes()
