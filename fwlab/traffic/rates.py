# SPDX-License-Identifier: GPL-2.0-or-later
"""Converts a stream's rate, in whichever unit, to packets per second."""

from fwlab.traffic import prng
from fwlab.traffic.field_check import trim_variable
from fwlab.traffic.instructions import FlowVar
from fwlab.traffic.streams import Stream
from fwlab.traffic.variables import padded, trimmed

FCS = 4  # bytes of the frame check sequence
GAP = 20  # bytes of preamble and interframe gap, which count on layer 1
LINE_RATE_BPS = 10_000_000_000  # of the link in TRex's simulator; percentages refer to it
_SAMPLES = 10_000


def packets_per_second(stream: Stream) -> float:
    """The stream's rate in packets per second, based on its mean frame length."""
    rate, size = stream.mode.rate, mean_length(stream) + FCS
    if rate.type == "pps":
        return rate.value
    if rate.type == "bps_L2":
        return rate.value / (8 * size)
    layer1 = rate.value if rate.type == "bps_L1" else (rate.value / 100.0) * LINE_RATE_BPS
    return layer1 * (size / (size + GAP)) / (8 * size)


def mean_length(stream: Stream) -> float:
    """Mean length of the stream's frames in bytes, without frame check sequence."""
    name = trim_variable(stream.instructions)
    if name is None:
        return len(stream.data)
    ins = next(i for i in stream.instructions if isinstance(i, FlowVar) and i.name == name)
    if ins.value_list is not None:
        return sum(ins.value_list) / len(ins.value_list)
    low, high = trimmed(*padded(ins), len(stream.data))
    if ins.op != "random":
        return (low + high) / 2.0
    # like TRex, take the mean of a fixed sample of random numbers, which is not the middle of the range
    sample = prng.ranged(prng.draws(1, _SAMPLES), 0, high - low)
    return low + int(sample.sum()) / _SAMPLES
