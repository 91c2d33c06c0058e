# SPDX-License-Identifier: GPL-2.0-or-later
"""Samples of *.nic files."""

from __future__ import annotations

from tests.contract.kinds import Samples

SAMPLES = [
    Samples(
        name="nic",
        held="vmxnet3\n",
        accepted=["vmxnet3", "# x\ne1000e"],
        refused=[
            ("ne2k_pci\n", "1: unknown NIC model"),
            ("e1000 e1000\n", "1: unknown NIC model"),
            ("vmxnet3\ne1000\n", "2: unknown NIC model: e1000"),
        ],
        missing=[
            ("vmxnet3\n", {"ethtool -i eth0": "driver: vmxnet3\n", "ethtool -i eth1": "driver: vmxnet3\n"}, None),
            (
                "vmxnet3\n",
                {"ethtool -i eth0": "driver: vmxnet3\n", "ethtool -i eth1": "driver: virtio_net\n"},
                "eth1 by vmxnet3",
            ),
        ],
    )
]
