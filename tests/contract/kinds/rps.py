# SPDX-License-Identifier: GPL-2.0-or-later
"""Samples of *.rps files."""

from __future__ import annotations

from tests.contract.kinds import Samples

QUEUE = "/sys/class/net/eth0/queues/rx-0"
SAMPLES = [
    Samples(
        name="rps",
        held="eth0 rx-0 rps_cpus 1\n",
        accepted=["eth0 rx-0 rps_cpus 3", "eth1 rx-12 rps_flow_cnt 4096"],
        refused=[("# one\neth2 rx-0 rps_cpus 1\n", "2: eth2 is not one of the DUT's test links")],
        loaded=[
            (
                "# one CPU\neth0 rx-0 rps_cpus 1\n\neth0 rx-0 rps_flow_cnt 4096  # flows\n",
                [(f"tee {QUEUE}/rps_cpus", "1\n"), (f"tee {QUEUE}/rps_flow_cnt", "4096\n")],
            )
        ],
        missing=[
            ("eth0 rx-0 rps_cpus 1\neth0 rx-0 rps_cpus f  # all\n", {f"cat {QUEUE}/rps_cpus": "0000000f\n"}, None),
            ("eth0 rx-0 rps_cpus 1\n", {f"cat {QUEUE}/rps_cpus": "0\n"}, f"{QUEUE}/rps_cpus = 1 (it is 0)"),
            ("eth0 rx-0 rps_flow_cnt 5000\n", {f"cat {QUEUE}/rps_flow_cnt": "8192\n"}, None),
            (
                "eth0 rx-0 rps_flow_cnt 4096\n",
                {f"cat {QUEUE}/rps_flow_cnt": ""},
                f"{QUEUE}/rps_flow_cnt = 4096 (it is unknown)",
            ),
        ],
    )
]
