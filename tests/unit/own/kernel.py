# SPDX-License-Identifier: GPL-2.0-or-later
"""This machine's own netfilter, where it can be asked."""

from __future__ import annotations

import shutil
import subprocess
from functools import cache
from pathlib import Path

from fwlab.own import bench_client
from fwlab.own.bench_client import opened

TOOLS = ("nft", "iptables-nft-restore", "ip6tables-nft-restore", "ip")
RULES = "table inet t {\nchain c {\ntype filter hook forward priority 0;\nct state new counter accept\n}\n}\n"


@cache
def lacks() -> str:
    """What keeps this machine's kernel from being asked; empty: nothing does."""
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        return f"{', '.join(missing)} not installed (Debian's nftables, iptables, iproute2)"
    argv = ["unshare", "--net", "nft", "-f", "-"]
    done = subprocess.run(argv, input=RULES, capture_output=True, text=True, check=False)
    if done.returncode:
        return f"no network namespace with nf_tables: {(done.stderr or done.stdout).strip().splitlines()[-1:]}"
    try:
        Path("/dev/net/tun").open("rb").close()
    except OSError as error:
        return f"no tap devices: {error}"
    return ""


def bench(name: str):
    """A bench on this kernel, to be opened."""
    return opened(bench_client.here, name)
