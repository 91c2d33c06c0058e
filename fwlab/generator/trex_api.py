# SPDX-License-Identifier: GPL-2.0-or-later
"""Makes profiles' imports work: with TRex's own client if it can be imported, else with trex-stl-lib.

The client is `trex.stl` today, and was `trex_stl_lib` before. A profile may use either name, for any of its modules.

trex-stl-lib, on PyPI, is from 2019 and expects TRex's patched scapy, which records the offset of every field in the
packet. Current scapy does not, so this module computes a field's offset from its name. What the client has gained
since is in `trex/api_additions.py`.
"""

import importlib
import sys
import types
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from fwlab.model.errors import BadInput

#: Default addresses of layers without addresses, as in TRex's patched scapy.
_ADDRESSES = {
    "Ether": {"dst": "00:00:00:01:00:00", "src": "00:00:00:02:00:00"},
    "IP": {"src": "16.0.0.1", "dst": "48.0.0.1"},
    "IPv6": {"src": "::2", "dst": "::1"},
}
#: Where TRex's client of today has the modules of trex-stl-lib.
_NAMES_TODAY = {
    "trex_stl_lib": "trex.stl",
    "trex_stl_lib.utils": "trex.utils",
    "trex_stl_lib.trex_stl_exceptions": "trex.common.trex_exceptions",
    "trex_stl_lib.trex_stl_types": "trex.common.trex_types",
}


@cache
def provide() -> None:
    """Import the API. Raises BadInput if there is none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if not _provide_trex():  # before scapy is imported, because TRex brings its own scapy
            _provide_pypi()
    from scapy import utils  # scapy takes half a second to import

    reader: Any = utils.RawPcapReader
    if not hasattr(reader, "read_all"):  # which STLProfile.load_pcap calls
        reader.read_all = lambda reader, count=-1: list(reader)


def _provide_trex() -> bool:
    try:
        builder: Any = importlib.import_module("trex.stl.trex_stl_packet_builder_scapy")
        importlib.import_module("trex.stl.api")
        importlib.import_module("trex.stl.trex_stl_hltapi")
    except Exception:  # noqa: BLE001 - TRex's package raises errors of all kinds if a library is missing
        return False
    builder.CTRexScapyPktUtl = _with_offsets(builder.CTRexScapyPktUtl)
    _also_called("trex.stl", "trex_stl_lib")
    return True


def _provide_pypi() -> None:
    try:
        # Python 3.12 removed `imp`, of which the library uses only reload
        sys.modules.setdefault("imp", _imp_replacement())
        builder: Any = importlib.import_module("trex_stl_lib.trex_stl_packet_builder_scapy")
        importlib.import_module("trex_stl_lib.api")
    except ImportError as error:
        raise BadInput(f"profiles need TRex's API: {error}", "pip install trex-stl-lib==0.3") from error
    importlib.import_module("fwlab.generator.trex.api_additions")
    builder.CTRexScapyPktUtl = _with_offsets(builder.CTRexScapyPktUtl)
    modules: Any = sys.modules
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
    if package:
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


def _imp_replacement() -> Any:
    module: Any = types.ModuleType("imp")
    module.reload = importlib.reload
    return module


def _with_offsets(base: Any) -> Any:
    class OffsetsByScapy(base):  # type: ignore[misc]  # TRex's package has no types
        """Computes the offsets of layers and fields (bytes from the start of the packet) with unpatched scapy."""

        def _layer_offset(self, name: str, cnt: int = 0) -> tuple[Any, int]:
            offset, left = 0, cnt
            for layer in self.pkt_iter():
                if name in (layer.name, type(layer).__name__):
                    if not left:
                        return layer, offset
                    left -= 1
                offset += len(layer) - len(layer.payload)
            raise ValueError(f"the packet has no layer {name}:{cnt}")

        def layer_offset(self, name: str, cnt: int = 0) -> int:
            return self._layer_offset(name, cnt)[1]

        def get_field_offet(self, layer: str, layer_cnt: int, field_name: str) -> tuple[int, int]:  # sic
            found, base_offset = self._layer_offset(layer, layer_cnt)
            built: Any = b""
            for field in found.fields_desc:
                start = _whole_bytes(built)
                built = field.addfield(found, built, found.getfieldval(field.name))
                if field.name == field_name:
                    return base_offset + start, max(_whole_bytes(built) - start, 1)
            raise ValueError(f"layer {layer}:{layer_cnt} has no field {field_name}")

    return OffsetsByScapy


def _whole_bytes(built: Any) -> int:
    """The length of scapy's partial build, which is bytes, or within bit fields a tuple that starts with them."""
    return len(built[0] if isinstance(built, tuple) else built)
