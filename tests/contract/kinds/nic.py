# SPDX-License-Identifier: GPL-2.0-or-later
"""Samples of *.nic files."""

from __future__ import annotations

from tests.contract.kinds import Samples

SAMPLES = [
    Samples(
        name="nic",
        held="vmxnet3\n",
        accepted=["vmxnet3", "e1000e"],
        lines=["ne2k_pci"],
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
