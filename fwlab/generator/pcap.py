# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes frames as a capture file in the classic pcap format: Ethernet, time stamps in microseconds."""

import io
from collections.abc import Iterable
from pathlib import Path

from fwlab.checkout.atomic_write import write_atomically

_ETHERNET = 1  # LINKTYPE_ETHERNET


def write_pcap(path: Path, frames: Iterable[bytes], times_ns: Iterable[int]) -> None:
    """Write frames and their times (ns) to `path`. Raises BadInput if that fails; then no file is left behind."""
    from scapy.utils import RawPcapWriter  # takes half a second to import, which other commands need not pay

    capture = io.BytesIO()
    writer = RawPcapWriter(capture, linktype=_ETHERNET)
    writer.write_header(None)
    for frame, time_ns in zip(frames, times_ns, strict=True):
        seconds, rest = divmod(int(time_ns), 1_000_000_000)
        writer.write_packet(frame, sec=seconds, usec=rest // 1000)
    write_atomically(path, capture.getvalue(), make_folder=False)
