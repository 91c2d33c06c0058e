# SPDX-License-Identifier: GPL-2.0-or-later
"""Which frames the replay engine plays, byte for byte, on a veth pair of the test's own. Needs root, no machine."""

from __future__ import annotations

import random
from pathlib import Path

from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1Q, Ether

from fwlab.generator.frame_table import write_table

from .test_engine_netns import Wire, run
from .test_engine_netns import engine as engine  # noqa: PLC0414 - a fixture, by its name
from .test_engine_netns import wire as wire  # noqa: PLC0414


def test_every_size_of_ethernet(wire: Wire, tmp_path: Path) -> None:
    """64 to 1518 bytes with the check sequence, each with bytes of its own."""
    frames = [bytes(12) + b"\x88\xb5" + random.Random(size).randbytes(size - 14) for size in range(60, 1515)]
    write_table(tmp_path / "sizes.tbl", frames)
    wire.play("--table", str(tmp_path / "sizes.tbl"), "--count", str(len(frames)), "--rate", "50000")
    assert wire.received() == frames


def test_protocols_arrive_byte_for_byte(wire: Wire, tmp_path: Path) -> None:
    """IPv4, IPv6, one VLAN tag and two, and a frame with a tag that is as long as Ethernet has them (1522)."""
    macs = {"dst": "52:54:00:12:00:01", "src": "52:54:00:12:00:02"}
    udp = UDP(sport=1025, dport=9) / (b"x" * 40)
    four = IP(src="198.18.0.5", dst="198.19.0.5") / udp
    six = IPv6(src="2001:2:0:1200::5", dst="2001:2:0:1300::5")
    packets = [
        Ether(**macs) / four,
        Ether(**macs) / six / udp,
        Ether(**macs) / six / TCP(sport=1025, dport=80, flags="S"),
        Ether(**macs) / Dot1Q(vlan=100, prio=5) / four,
        Ether(**macs) / Dot1Q(vlan=4094) / six / udp,
        Ether(**macs, type=0x88A8) / Dot1Q(vlan=7) / Dot1Q(vlan=8) / four,
        Ether(**macs) / Dot1Q(vlan=1) / IP(src="198.18.0.5", dst="198.19.0.5") / UDP() / bytes(1472),
    ]
    frames = [bytes(packet).ljust(60, b"\0") for packet in packets]
    assert len(frames[-1]) == 1518
    streams = list(range(len(frames)))
    write_table(tmp_path / "protocols.tbl", frames, streams=streams)
    report = wire.play("--table", str(tmp_path / "protocols.tbl"), "--count", "70", "--rate", "5000")
    assert wire.received() == frames * 10
    assert report["per_stream"] == [{"id": stream, "sent": 10} for stream in streams]


def test_a_jumbo_frame_is_refused_by_name(wire: Wire, tmp_path: Path) -> None:
    """A live frame is one page."""
    for namespace, device in ((wire.namespace, "out"), (wire.far_namespace, "in")):
        run("ip", "-n", namespace, "link", "set", device, "mtu", "9000")
    write_table(tmp_path / "jumbo.tbl", [bytes(9014)])
    process = wire.start("--table", str(tmp_path / "jumbo.tbl"), "--count", "1")
    _, errors = process.communicate(timeout=10)
    assert process.returncode == 2
    assert "a frame of 9014 bytes: too long for a live frame, which must fit one page" in errors
