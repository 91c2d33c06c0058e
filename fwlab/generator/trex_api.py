# SPDX-License-Identifier: GPL-2.0-or-later
"""Makes `from trex_stl_lib.api import *` work: with TRex's own client if it can be imported, else with trex-stl-lib.

The latter, on PyPI, is from 2019 and expects TRex's patched scapy, which records the offset of every field in the
packet. Current scapy does not, so this module computes a field's offset from its name. It also adds the keywords that
variables have gained in TRex's client since: value_list, next_var, split_to_cores. Nothing else is replaced.
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

TREX, PYPI = "trex", "trex-stl-lib"
#: Default addresses of layers without addresses, as in TRex's patched scapy.
_ADDRESSES = {
    "Ether": {"dst": "00:00:00:01:00:00", "src": "00:00:00:02:00:00"},
    "IP": {"src": "16.0.0.1", "dst": "48.0.0.1"},
    "IPv6": {"src": "::2", "dst": "::1"},
}
_LATER = ("STLVmFlowVar", "STLVmFlowVarRepeatableRandom")


@cache
def provide() -> str:
    """Import the API and return which one it is, TREX or PYPI. Raises BadInput if there is none."""
    from scapy import utils  # scapy takes half a second to import

    reader: Any = utils.RawPcapReader
    if not hasattr(reader, "read_all"):  # which STLProfile.load_pcap calls
        reader.read_all = lambda reader, count=-1: list(reader)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return TREX if _provide_trex() else _provide_pypi()


def _provide_trex() -> bool:
    try:
        builder: Any = importlib.import_module("trex.stl.trex_stl_packet_builder_scapy")
        api: Any = importlib.import_module("trex.stl.api")
    except Exception:  # noqa: BLE001 - TRex's package raises errors of all kinds if a library is missing
        return False
    builder.CTRexScapyPktUtl = _with_offsets(builder.CTRexScapyPktUtl)
    package: Any = types.ModuleType("trex_stl_lib")
    package.__path__, package.api = [], api
    sys.modules["trex_stl_lib"], sys.modules["trex_stl_lib.api"] = package, api
    return True


def _provide_pypi() -> str:
    try:
        # Python 3.12 removed `imp`, of which the library uses only reload
        sys.modules.setdefault("imp", _imp_replacement())
        builder: Any = importlib.import_module("trex_stl_lib.trex_stl_packet_builder_scapy")
        api = importlib.import_module("trex_stl_lib.api")
    except ImportError as error:
        raise BadInput(f"profiles need TRex's API: {error}", "pip install trex-stl-lib==0.3") from error
    builder.CTRexScapyPktUtl = _with_offsets(builder.CTRexScapyPktUtl)
    for name in _LATER:
        setattr(api, name, _with_later_keywords(getattr(api, name)))
    return PYPI


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


def _with_later_keywords(base: Any) -> Any:
    number = sys.modules[base.__module__].convert_val  # converts an address or a number

    class Variable(base):  # type: ignore[misc]  # TRex's package has no types
        def __init__(
            self,
            *args: Any,
            value_list: list[int] | None = None,
            split_to_cores: bool = True,
            next_var: str | None = None,
            **kwargs: Any,
        ) -> None:
            super().__init__(*args, **kwargs)
            self._values = value_list
            self._later = {"split_to_cores": split_to_cores, "next_var": next_var}

        def get_obj(self) -> Any:
            instruction = super().get_obj()
            vars(instruction).update(self._later)
            if self._values is not None:
                for field in ("init_value", "min_value", "max_value"):
                    delattr(instruction, field)
                instruction.value_list = [number(value) for value in self._values]
            return instruction

    Variable.__name__ = Variable.__qualname__ = base.__name__
    return Variable


def _whole_bytes(built: Any) -> int:
    """The length of scapy's partial build, which is bytes, or within bit fields a tuple that starts with them."""
    return len(built[0] if isinstance(built, tuple) else built)
