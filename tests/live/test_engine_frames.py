# SPDX-License-Identifier: GPL-2.0-or-later
"""The replay engine sends each frame unchanged, on a veth pair. Needs root but no machine."""

from __future__ import annotations

import random
from pathlib import Path

from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1Q, Ether

from fwlab.generator.frame_table import write_table

from .test_engine_netns import Wire, run
from .test_engine_netns import engine as engine  # noqa: PLC0414 - a fixture
from .test_engine_netns import wire as wire  # noqa: PLC0414


def test_every_ethernet_frame_size(wire: Wire, tmp_path: Path) -> None:
    """64 to 1518 bytes including the frame check sequence, with different contents."""
    frames = [bytes(12) + b"\x88\xb5" + random.Random(size).randbytes(size - 14) for size in range(60, 1515)]
    write_table(tmp_path / "sizes.tbl", frames)
    wire.play("--table", str(tmp_path / "sizes.tbl"), "--count", str(len(frames)), "--rate", "50000")
    assert wire.received() == frames


def test_protocols_arrive_unchanged(wire: Wire, tmp_path: Path) -> None:
    """IPv4, IPv6, one and two VLAN tags, and the longest tagged frame of Ethernet (1522 bytes)."""
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


def test_a_jumbo_frame_is_refused(wire: Wire, tmp_path: Path) -> None:
    """A live frame must fit in one page."""
    for namespace, device in ((wire.namespace, "out"), (wire.far_namespace, "in")):
        run("ip", "-n", namespace, "link", "set", device, "mtu", "9000")
    write_table(tmp_path / "jumbo.tbl", [bytes(9014)])
    process = wire.start("--table", str(tmp_path / "jumbo.tbl"), "--count", "1")
    _, errors = process.communicate(timeout=10)
    assert process.returncode == 2
    assert "a frame of 9014 bytes: too long for a live frame, which must fit one page" in errors
