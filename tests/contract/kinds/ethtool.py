# SPDX-License-Identifier: GPL-2.0-or-later
"""Samples of *.ethtool files."""

from __future__ import annotations

from tests.contract.kinds import Samples

FEATURES = """Features for eth0:
rx-checksumming: on [fixed]
generic-receive-offload: off
tx-udp-segmentation: on [requested off]
"""
RINGS = """Ring parameters for eth0:
Pre-set maximums:
RX:\t\t1024
Current hardware settings:
RX:\t\t128
TX:\t\t256
"""
CHANNELS = "Channel parameters for eth0:\nPre-set maximums:\nCombined:\t2\nCurrent hardware settings:\nCombined:\t1\n"
SAMPLES = [
    Samples(
        name="ethtool",
        held="eth0 -K gro off\n",
        accepted=[
            "eth0 -K gro off",
            "eth1 -K tx-checksum-ipv4 on sg on",
            "eth0 -G rx 512 tx 256",
            "eth0 -C rx-usecs 10",
        ],
        refused=[("# rings\neth0 -G rx 512 tx 16\n", "2: with a ring of 16 nothing can be measured")],
        loaded=[
            (
                "# rings\neth0 -G rx 512\neth0 -K gro off  # slow\n",
                [("ethtool -G eth0 rx 512", None), ("ethtool -K eth0 gro off", None)],
            )
        ],
        missing=[
            ("eth0 -K gro off\n", {"ethtool -k eth0": FEATURES}, None),
            ("eth0 -K gro on\n", {"ethtool -k eth0": FEATURES}, "eth0 -K gro on (it is off)"),
            ("eth0 -K gro on\neth0 -K gro off\n", {"ethtool -k eth0": FEATURES}, None),
            ("eth0 -K tx-udp-segmentation on\n", {"ethtool -k eth0": FEATURES}, None),
            ("eth0 -K tx-udp-segmentation off\n", {"ethtool -k eth0": FEATURES}, None),
            ("eth0 -G rx 512 tx 256\n", {"ethtool -g eth0": RINGS}, "eth0 -G rx 512 (it is 128)"),
            ("eth0 -L combined 1\n", {"ethtool -l eth0": CHANNELS}, None),
            ("eth0 -C rx-usecs 9\n", {"ethtool -c eth0": "rx-usecs: n/a\n"}, "eth0 -C rx-usecs 9 (it is n/a)"),
        ],
    )
]
