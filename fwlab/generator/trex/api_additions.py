# SPDX-License-Identifier: GPL-2.0-or-later
"""What TRex's client has gained since 2019, for trex-stl-lib, which is of that year. Importing this module adds it.

Methods are replaced within their classes, so that a class is the same one whichever module a profile takes it from.
The library expects TRex's patched scapy, which records the offset of every field in the packet. Current scapy does not,
so the offset is computed here from the field's name.
"""

import binascii
import inspect
import zlib
from collections.abc import Callable
from typing import Any, TypeVar

from scapy.layers.l2 import Ether
from scapy.packet import Packet
from scapy.utils import RawPcapReader
from trex_stl_lib import api, trex_stl_exceptions, trex_stl_streams
from trex_stl_lib import trex_stl_packet_builder_scapy as builder
from trex_stl_lib.utils import common

#: TRex's client draws the seed of a repeatable random variable from 1 to this.
_SEEDS = 32_000
#: The least distance between two headers whose checksums a network card completes.
_MIN_HEADER = 8
Function = TypeVar("Function", bound=Callable[..., Any])


def _method(cls: Any, name: str) -> Callable[[Function], Function]:
    """Make a function a method of `cls`. Its first argument is the method that it replaces."""

    def put(function: Function) -> Function:
        before = getattr(cls, name, None)
        signature = inspect.signature(function)

        def method(self: Any, *args: Any, **kwargs: Any) -> Any:
            return function(before, self, *args, **kwargs)

        method.__signature__ = signature.replace(parameters=list(signature.parameters.values())[1:])  # type: ignore[attr-defined]
        function.__qualname__ = f"{cls.__name__}.{name}"  # the name in Python's own messages
        setattr(cls, name, method)
        return function

    return put


@_method(builder.CTRexScapyPktUtl, "_layer_offset")
def _layer_offset(_: Any, self: Any, name: str, cnt: int = 0) -> tuple[Any, int]:
    """A layer, and its offset in bytes from the start of the packet."""
    if not hasattr(self, "places"):
        layers = list(self.pkt_iter())
        sizes = [len(layer) for layer in layers]  # with all that follows; scapy builds it to know
        self.places = [(layer, sizes[0] - size) for layer, size in zip(layers, sizes, strict=True)]
    left = cnt
    for layer, offset in self.places:
        if name in (layer.name, type(layer).__name__):
            if not left:
                return layer, offset
            left -= 1
    raise ValueError(f"the packet has no layer {name}:{cnt}")


@_method(builder.CTRexScapyPktUtl, "layer_offset")
def _offset_alone(_: Any, self: Any, name: str, cnt: int = 0) -> int:
    offset: int = self._layer_offset(name, cnt)[1]
    return offset


@_method(builder.CTRexScapyPktUtl, "get_field_offet")  # sic
def _field_offset(_: Any, self: Any, layer: str, layer_cnt: int, field_name: str) -> tuple[int, int]:
    """The offset of a field, and its size in whole bytes."""
    found, base_offset = self._layer_offset(layer, layer_cnt)
    built: Any = b""
    for field in found.fields_desc:
        start = _whole_bytes(built)
        built = field.addfield(found, built, found.getfieldval(field.name))
        if field.name == field_name:
            return base_offset + start, max(_whole_bytes(built) - start, 1)
    raise ValueError(f"layer {layer}:{layer_cnt} has no field {field_name}")


def _whole_bytes(built: Any) -> int:
    """The length of scapy's partial build, which is bytes, or within bit fields a tuple that starts with them."""
    return len(built[0] if isinstance(built, tuple) else built)


@_method(builder.STLScVmRaw, "__init__")
def _program(
    before: Any, self: Any, list_of_commands: Any = None, cache_size: Any = None, split_by_field: Any = None
) -> None:
    # Older clients had the field before the size. TRex ignores it.
    size = cache_size if isinstance(cache_size, int) else split_by_field
    before(self, list_of_commands, None, size if isinstance(size, int) else None)


@_method(builder.STLVmFlowVar, "__init__")
def _variable(
    before: Any,
    self: Any,
    name: str,
    init_value: Any = None,
    min_value: Any = 0,
    max_value: Any = 255,
    size: int = 4,
    step: Any = 1,
    op: str = "inc",
    value_list: Any = None,
    split_to_cores: bool = True,
    next_var: str | None = None,
) -> None:
    if value_list is not None:  # then the others are ignored, whatever they are
        init_value, min_value, max_value = None, 0, 255
        value_list = [builder.convert_val(value) for value in value_list]
    before(self, name, init_value, min_value, max_value, size, step, op)
    self.value_list, self.split_to_cores, self.next_var = value_list, split_to_cores, next_var


@_method(builder.STLVmFlowVarRepeatableRandom, "__init__")
def _repeatable_random(
    before: Any,
    self: Any,
    name: str,
    size: int = 4,
    limit: int = 100,
    seed: int | None = None,
    min_value: Any = 0,
    max_value: Any = None,
    split_to_cores: bool = True,
    next_var: str | None = None,
) -> None:
    if seed is None:  # TRex's client draws one, so that each load has other values
        seed = zlib.crc32(str(name).encode()) % _SEEDS + 1
    before(self, name, size, limit, seed, 0 if min_value is None else min_value, max_value)
    self.value_list, self.split_to_cores, self.next_var = None, split_to_cores, next_var


@_method(builder.STLVmFlowVar, "get_obj")
@_method(builder.STLVmFlowVarRepeatableRandom, "get_obj")
def _variable_object(before: Any, self: Any) -> Any:
    instruction = before(self)
    instruction.split_to_cores, instruction.next_var = self.split_to_cores, self.next_var
    if self.value_list is not None:
        del instruction.init_value, instruction.min_value, instruction.max_value
        instruction.value_list = self.value_list
    return instruction


@_method(builder.STLPktBuilder, "__init__")
def _builder(before: Any, self: Any, pkt: Any = None, pkt_buffer: Any = None, vm: Any = None, **kwargs: Any) -> None:
    other = pkt if isinstance(pkt, Packet) and not isinstance(pkt, Ether) else None  # such as an 802.3 frame
    before(self, pkt=None if other is not None else pkt, pkt_buffer=pkt_buffer, vm=vm, **kwargs)
    if other is not None:
        self.pkt = other
        self.compile()


@_method(builder.STLPktBuilder, "_compile_raw")
def _compile(before: Any, self: Any, program: Any) -> None:
    program.commands = _in_order(program.commands)
    self.utility = None  # the packet may have changed since the last time
    before(self, program)


@_method(builder.STLPktBuilder, "_pkt_layer_offset")
def _place_of_layer(_: Any, self: Any, name: str) -> Any:
    return _utility(self).get_layer_offet_by_str(name)  # sic


@_method(builder.STLPktBuilder, "_name_to_offset")
def _place_of_field(_: Any, self: Any, name: str) -> Any:
    return _utility(self).get_field_offet_by_str(name)  # sic


def _utility(of: Any) -> Any:
    """What finds a program's offsets. The library would make one for each of them, and measure all layers again."""
    if of.utility is None:
        of._STLPktBuilder__lazy_build_packet()
        of.utility = builder.CTRexScapyPktUtl(of.pkt)
    return of.utility


def _in_order(commands: list[Any]) -> list[Any]:
    """The commands with the variables first, each followed by its `next_var`, which no core then takes for its own."""
    kinds = builder.STLVmFlowVar, builder.STLVmFlowVarRepeatableRandom
    declared = [command for command in commands if isinstance(command, kinds)]
    variables = {variable.name: variable for variable in declared}
    if len(variables) < len(declared):
        return commands  # two of one name, which the library refuses
    followers: set[str] = set()
    for variable in declared:
        if not variable.next_var:
            continue
        if variable.next_var not in variables:
            raise ValueError(f"next_var {variable.next_var!r} of {variable.name!r} is not declared")
        if variable.next_var in followers:
            raise ValueError(f"{variable.next_var!r} is the next_var of two variables")
        followers.add(variable.next_var)
        variables[variable.next_var].split_to_cores = False
    ordered = []
    for variable in declared:
        member = None if variable.name in followers else variable
        while member is not None:
            ordered.append(member)
            member = variables.get(member.next_var)
    if len(ordered) < len(declared):
        raise ValueError("next_var leads in a circle")
    return [*ordered, *(command for command in commands if not isinstance(command, kinds))]


@_method(builder.STLVmFixChecksumHw, "compile")
def _checksums(_: Any, self: Any, parent: Any) -> None:
    self.l2_len, l4_offset = _offset(parent, self.l3_offset), _offset(parent, self.l4_offset)
    by_server = self.l4_type == builder.CTRexVmInsFixHwCs.L4_TYPE_IP and not l4_offset
    if not by_server and l4_offset < self.l2_len + _MIN_HEADER:
        raise ValueError(f"l4_offset {l4_offset} is not behind the header at l3_offset {self.l2_len}")
    self.l3_len = 0 if by_server else l4_offset - self.l2_len


def _offset(parent: Any, place: str | int) -> int:
    """The offset of a header, which is given by its name or as a number."""
    found: int = parent._pkt_layer_offset(place) if isinstance(place, str) else place
    return found


class STLVmFixIcmpv6(builder.CTRexVmDescBase):  # type: ignore[misc]  # TRex's package has no types
    """Computes an ICMPv6 checksum."""

    def __init__(self, l3_offset: str | int, l4_offset: str | int) -> None:
        super().__init__()
        self.l3_offset, self.l4_offset = l3_offset, l4_offset
        self._instruction = builder.CTRexVmInsBase("fix_checksum_icmpv6")

    def get_obj(self) -> Any:
        """The instruction, after `compile`."""
        return self._instruction

    def compile(self, parent: Any) -> None:
        """Look up the offsets in the packet."""
        self._instruction.l2_len = _offset(parent, self.l3_offset)
        self._instruction.l3_len = _offset(parent, self.l4_offset) - self._instruction.l2_len


@_method(builder.STLVM, "var")
def _var(
    _: Any,
    self: Any,
    name: str,
    min_value: Any,
    max_value: Any,
    size: int,
    op: str,
    step: Any = 1,
    split_to_cores: bool = True,
    next_var: str | None = None,
    **more: Any,
) -> None:
    given = {"min_value": min_value, "max_value": max_value, "size": size, "op": op, "step": step}
    self.add_cmd(builder.STLVmFlowVar(name, **given, split_to_cores=split_to_cores, next_var=next_var, **more))


@_method(builder.STLVM, "repeatable_random_var")
def _repeatable_random_var(_: Any, self: Any, fv_name: str, *given: Any, **named: Any) -> None:
    self.add_cmd(builder.STLVmFlowVarRepeatableRandom(fv_name, *given, **named))


@_method(builder.STLVM, "write_mask")
def _write_mask(
    _: Any,
    self: Any,
    fv_name: str,
    pkt_offset: str | int,
    pkt_cast_size: int,
    mask: int,
    shift: int = 0,
    offset_fixup: int = 0,
    add_val: int = 0,
    byte_order: str = "big",
) -> None:
    given = fv_name, pkt_offset, pkt_cast_size, mask, shift, add_val, offset_fixup, byte_order == "big"
    self.add_cmd(builder.STLVmWrMaskFlowVar(*given))


def _adds(instruction: Any, name: str) -> None:
    """Give STLVM a method that adds an instruction of this class, with its arguments."""

    @_method(builder.STLVM, name)
    def add(_: Any, self: Any, *given: Any, **named: Any) -> None:
        self.add_cmd(instruction(*given, **named))


_adds(builder.STLVmTupleGen, "tuple_var")
_adds(builder.STLVmFixChecksumHw, "fix_chksum_hw")
_adds(STLVmFixIcmpv6, "fix_chksum_icmpv6")


@_method(trex_stl_streams.STLStream, "__init__")
def _stream(before: Any, self: Any, *args: Any, start_paused: bool = False, core_id: int = -1, **kwargs: Any) -> None:
    before(self, *args, **kwargs)
    self.fields.update(start_paused=start_paused, core_id=core_id)


@_method(trex_stl_streams.STLFlowStats, "__init__")
@_method(trex_stl_streams.STLFlowLatencyStats, "__init__")
def _statistics(before: Any, self: Any, pg_id: int, vxlan: bool = False, ieee_1588: bool = False) -> None:
    before(self, pg_id)
    self.fields.update(vxlan=vxlan, ieee_1588=ieee_1588)


class STLTaggedPktGroup(trex_stl_streams.STLFlowStatsInterface):  # type: ignore[misc]  # TRex's package has no types
    """Statistics of tagged packets, which are refused by name later."""

    def __init__(self, tpgid: int) -> None:
        super().__init__(tpgid)
        self.fields["rule_type"] = "tpg"


def _add_names() -> None:
    """Names of the API that it has under other ones, in other modules or not at all."""
    for name in ("__init__", "get_obj"):  # those of its base class are newer now
        delattr(builder.STLVmFlowVarRepetableRandom, name)
    builder.CTRexVmInsFixHwCs.L4_TYPE_IP = 17
    errors = {name: error for name, error in vars(trex_stl_exceptions).items() if name.endswith("Error")}
    names: dict[str, Any] = {name.replace("STL", "TRex", 1): error for name, error in errors.items()}
    names |= {cls.__name__: cls for cls in (STLVmFixIcmpv6, STLTaggedPktGroup)}
    for module in (trex_stl_exceptions, builder, trex_stl_streams, api):
        vars(module).update(names)
    # What profiles have after `import *` of the client's API, and use.
    for name, value in {"binascii": binascii, **vars(common)}.items():
        if not name.startswith("_"):
            vars(api).setdefault(name, value)
    if not hasattr(RawPcapReader, "read_all"):  # which STLProfile.load_pcap calls
        reader_class: Any = RawPcapReader
        reader_class.read_all = lambda reader, count=-1: list(reader)


_add_names()
