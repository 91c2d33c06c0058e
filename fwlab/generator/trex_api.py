# SPDX-License-Identifier: GPL-2.0-or-later
"""Makes profiles' imports work with trex-stl-lib, TRex's client of 2019 on PyPI.

The client is `trex.stl` today, and was `trex_stl_lib` before. A profile may use either name, for any of its modules.
What the client has gained since is in `trex/api_additions.py`.
"""

import importlib
import sys
import types
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

#: Default addresses of layers without addresses, as in TRex's patched scapy.
_ADDRESSES = {
    "Ether": {"dst": "00:00:00:01:00:00", "src": "00:00:00:02:00:00"},
    "IP": {"src": "16.0.0.1", "dst": "48.0.0.1"},
    "IPv6": {"src": "::2", "dst": "::1"},
}
#: Layers of scapy that take about half of the time to import it. A profile that needs one imports its module.
_LEFT_OUT = {
    "dcerpc", "gssapi", "kerberos", "ldap", "msrpce.rpcclient", "msrpce.rpcserver", "ntlm", "smb", "smb2", "smbclient",
    "smbserver", "spnego", "x509",
}  # fmt: skip
#: Where TRex's client of today has the modules of trex-stl-lib.
_NAMES_TODAY = {
    "trex_stl_lib": "trex.stl",
    "trex_stl_lib.utils": "trex.utils",
    "trex_stl_lib.trex_stl_exceptions": "trex.common.trex_exceptions",
    "trex_stl_lib.trex_stl_types": "trex.common.trex_types",
}


@cache
def provide() -> None:
    """Import the API, by both of its names."""
    from scapy.config import conf

    modules: Any = sys.modules
    if "imp" not in modules:  # Python 3.12 removed it; the library uses only reload
        modules["imp"] = types.ModuleType("imp")
        modules["imp"].reload = importlib.reload
    conf.load_layers = [layer for layer in conf.load_layers if layer not in _LEFT_OUT]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        importlib.import_module("fwlab.generator.trex.api_additions")
    modules["trex_stl_lib.trex_stl_hltapi"] = None  # cannot be imported, and says so only in riddles
    for package in ("trex", "trex.common"):
        modules[package] = types.ModuleType(package)
        modules[package].__path__ = []
    for name, today in _NAMES_TODAY.items():
        _also_called(name, today)


def _also_called(name: str, other: str) -> None:
    """Let a module, and those in it, also be imported by another name."""
    for there, module in list(sys.modules.items()):
        if there == name or there.startswith(f"{name}."):
            sys.modules[other + there.removeprefix(name)] = module
    package, _, child = other.rpartition(".")
    setattr(sys.modules[package], child, sys.modules[other])


@contextmanager
def default_addresses() -> Iterator[None]:
    """Within the context, give layers without addresses the defaults of TRex's scapy.

    Current scapy would use the host's own addresses and query the network for the destination's, but a profile must
    neither send anything nor depend on the host.
    """
    from scapy.layers.inet import IP
    from scapy.layers.inet6 import IPv6
    from scapy.layers.l2 import Ether
    from scapy.packet import Packet

    before = {}
    for layer in (Ether, IP, IPv6):
        layer()  # so that scapy fills its table of defaults
        defaults = Packet.class_default_fields[layer]
        before[layer] = dict(defaults)
        defaults.update(_ADDRESSES[layer.__name__])
    try:
        yield
    finally:
        for layer, defaults in before.items():
            Packet.class_default_fields[layer].update(defaults)
