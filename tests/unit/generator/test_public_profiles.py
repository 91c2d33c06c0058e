# SPDX-License-Identifier: GPL-2.0-or-later
"""Profiles as other projects publish them: names of TRex's API, its client of today, and profiles of other kinds."""

from __future__ import annotations

import base64
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fwlab.checkout.project import Project
from fwlab.generator.traffic_profile import load_profile
from fwlab.model.errors import BadInput
from fwlab.traffic import expand
from fwlab.traffic.frame_loop import build_table
from tests import ROOT

HEAD = "from trex_stl_lib.api import *\n"
PROFILE = """
class Published:
    def get_streams(self, direction=0, **kwargs):
        {program}
        packet = Ether() / IP(src="198.18.0.1", dst="198.19.0.1") / UDP(sport=1025, dport=12) / ("x" * 18)
        return [STLStream(packet=STLPktBuilder(pkt=packet, vm=vm), mode=STLTXCont(pps=2){more})]

def register():
    return Published()
"""
SCAPY = "from scapy.all import Ether, IP, UDP\n"
Load = Callable[..., Any]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Write a lab's files and load the first of them."""

    def write_and_load(lab: str = "lab90-one", tunables: Any = None, **files: str) -> Any:
        folder = tmp_path / "labs" / lab
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / f"{name}.py").write_text(text)
        return load_profile(Project(tmp_path), folder / f"{next(iter(files))}.py", tunables)

    return write_and_load


def profile(*lines: str, head: str = HEAD, more: str = "") -> str:
    return head + PROFILE.format(program="\n        ".join(lines or ("vm = []",)), more=more)


def refused(load: Load, *args: Any, **files: Any) -> BadInput:
    with pytest.raises(BadInput) as error:
        load(*args, **files)
    return error.value


def written(streams: Any, place: slice, count: int) -> list[str]:
    return [frame[place].hex() for frame in expand(streams, limit=count)]


# Names


@pytest.mark.parametrize(
    "head",
    [
        "from trex.stl.api import *\n",
        "from trex.stl.api import Ether, IP, UDP, STLStream, STLPktBuilder, STLTXCont\n",
        "import trex.stl.api\nfrom trex_stl_lib.api import *\nSTLStream = trex.stl.api.STLStream\n",
        "from trex.stl import api\nglobals().update(vars(api))\n" + SCAPY,
        "from trex.stl.trex_stl_streams import *\nfrom trex.stl.trex_stl_packet_builder_scapy import *\n" + SCAPY,
        "from trex_stl_lib.trex_stl_streams import *\n" + SCAPY,
        "from trex.stl.api import *\nfrom trex.common.trex_exceptions import TRexError\nassert TRexError is STLError\n",
        "from trex.stl.api import *\nfrom trex.utils import text_opts\nfrom trex.common.trex_types import *\n",
    ],
)
def test_both_names_of_the_api_give_the_same_streams(load: Load, head: str) -> None:
    assert load(profile=profile(head=head)) == load(profile=profile())


def test_both_names_give_the_same_classes(load: Load) -> None:
    load(profile=profile())
    import trex.stl.api
    import trex.stl.trex_stl_packet_builder_scapy as builder
    import trex_stl_lib.api

    assert trex.stl.api.STLStream is trex_stl_lib.api.STLStream
    assert builder.STLVmFlowVar is trex_stl_lib.api.STLVmFlowVar
    assert builder.STLVmFixIcmpv6 is trex_stl_lib.api.STLVmFixIcmpv6


def test_a_base_class_may_use_the_other_name(load: Load) -> None:
    heir = "from trex.stl.api import *\nfrom base import Published\ndef register():\n    return Published()\n"
    assert load(profile=heir, base=profile()) == load(profile=profile())


def test_modules_of_one_lab_are_not_those_of_another(load: Load) -> None:
    heir = "from base import Published\ndef register():\n    return Published()\n"
    [one] = load(profile=heir, base=profile())
    [other] = load("lab91-two", profile=heir, base=profile().replace('"x" * 18', '"x" * 99'))
    assert [len(base64.b64decode(stream["packet"]["binary"])) for stream in (one, other)] == [60, 141]


def test_trexs_own_client_is_preferred_and_brings_its_own_scapy(tmp_path: Path) -> None:
    """TRex replaces a scapy that was imported before, which breaks both."""
    stl = tmp_path / "trex/stl"
    stl.mkdir(parents=True)
    (tmp_path / "trex/__init__.py").write_text("import sys\nassert 'scapy' not in sys.modules\n")
    (stl / "trex_stl_packet_builder_scapy.py").write_text("class CTRexScapyPktUtl:\n    pass\n")
    for name in ("__init__", "api", "trex_stl_hltapi"):
        (stl / f"{name}.py").write_text(f"NAME = {name!r}\n")
    script = """from fwlab.generator.trex_api import provide
provide()
import trex.stl.api, trex_stl_lib.api, trex_stl_lib.trex_stl_hltapi
assert trex_stl_lib.api is trex.stl.api
assert trex_stl_lib.trex_stl_hltapi.NAME == "trex_stl_hltapi"
"""
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}"}
    subprocess.run([sys.executable, "-c", script], env=environment, check=True)


# The client of today

SOURCE = 'min_value="198.18.0.0", max_value="198.18.0.3", size=4, op="inc", next_var="port"'
PORT = 'min_value=1024, max_value=1026, size=2, op="inc"'
CHAINS = [
    (
        "vm = STLVM()",
        f'vm.var("source", {SOURCE})',
        'vm.write("source", "IP.src")',
        f'vm.var("port", {PORT})',
        'vm.write("port", "UDP.sport")',
    ),
    (
        "vm = STLScVmRaw([",
        f'    STLVmFlowVar("port", {PORT}, split_to_cores=True),',
        '    STLVmWrFlowVar("port", "UDP.sport"),',
        '    STLVmWrFlowVar("source", "IP.src"),',
        f'    STLVmFlowVar("source", {SOURCE}),',
        "])",
    ),
]


@pytest.mark.parametrize("program", CHAINS, ids=["STLVM", "STLScVmRaw"])
def test_a_variable_may_follow_another_wherever_it_is_declared(load: Load, program: tuple[str, ...]) -> None:
    table = build_table(load(profile=profile(*program)))
    assert table.exact
    frames = [frame[26:30].hex() + frame[34:36].hex() for frame in table.frames]
    assert frames == [f"c612000{k % 4}{1024 + k // 4 % 3:04x}" for k in range(12)]


@pytest.mark.parametrize(
    ("next_vars", "message"),
    [
        ({"a": "b", "b": "a", "c": None}, "next_var leads in a circle"),
        ({"a": "a", "b": None, "c": None}, "next_var leads in a circle"),
        ({"a": "c", "b": "c", "c": None}, "'c' is the next_var of two variables"),
        ({"a": "d", "b": None, "c": None}, "next_var 'd' of 'a' is not declared"),
    ],
)
def test_an_impossible_chain_is_refused_with_its_line(load: Load, next_vars: dict[str, Any], message: str) -> None:
    declared = [f'vm.var("{name}", 0, 3, 1, "inc", next_var={after!r})' for name, after in next_vars.items()]
    error = refused(load, profile=profile("vm = STLVM()", *declared))
    assert error.message == f"labs/lab90-one/profile.py, line 10: ValueError: {message}"


def test_methods_of_stlvm_are_those_of_today(load: Load) -> None:
    [stream] = load(
        profile=profile(
            "vm = STLVM()",
            'vm.var("a", None, None, 2, "inc", value_list=[7, "0.0.0.9"], split_to_cores=False)',
            'vm.var("b", min_value=1, max_value=9, size=1, op="inc", init_value=5)',
            'vm.repeatable_random_var("c", size=2, limit=5, seed=3, max_value=99, next_var="b")',
            'vm.tuple_var("t", "198.18.0.1", "198.18.0.9", 1, 2, flags=1)',
            'vm.write_mask("b", pkt_offset="IP.tos", pkt_cast_size=1, mask=0x0f, add_val=1, byte_order="little")',
            'vm.fix_chksum_hw(l3_offset=14, l4_offset="UDP", l4_type=CTRexVmInsFixHwCs.L4_TYPE_UDP)',
            'vm.fix_chksum_hw("IP", 0, CTRexVmInsFixHwCs.L4_TYPE_IP)',
        )
    )
    first, second, third, tuples, mask, *sums = stream["vm"]["instructions"]
    assert (first["value_list"], first["split_to_cores"], first["next_var"]) == ([7, 9], False, None)
    assert (second["name"], second["limit"], second["min_value"], second["next_var"]) == ("c", 5, 0, "b")
    assert (third["name"], third["init_value"], third["split_to_cores"]) == ("b", 5, False)
    assert tuples["flags"] == 1
    assert (mask["pkt_offset"], mask["mask"], mask["add_value"], mask["is_big_endian"]) == (15, 15, 1, False)
    assert [(s["l2_len"], s["l3_len"], s["l4_type"]) for s in sums] == [(14, 20, 11), (14, 0, 17)]


@pytest.mark.parametrize("call", ["vm = [STLVmFixIcmpv6({})]", "vm = STLVM(); vm.fix_chksum_icmpv6({})"])
@pytest.mark.parametrize("offsets", ['"IPv6", "ICMPv6 Echo Request"', "l3_offset=14, l4_offset=54"])
def test_an_icmpv6_checksum_is_computed(load: Load, call: str, offsets: str) -> None:
    text = profile(call.format(offsets)).replace(
        'IP(src="198.18.0.1", dst="198.19.0.1") / UDP(sport=1025, dport=12)', "P"
    )
    streams = load(profile=text.replace("class", 'P = IPv6(src="2001:2::1") / ICMPv6EchoRequest(cksum=0)\nclass', 1))
    [frame] = expand(streams, limit=1)
    assert frame[56:58] != b"\0\0"
    assert streams[0]["vm"]["instructions"] == [{"type": "fix_checksum_icmpv6", "l2_len": 14, "l3_len": 40}]


@pytest.mark.parametrize(
    ("more", "fields"),
    [
        (", start_paused=True", {"start_paused": True, "core_id": -1}),
        (", core_id=0", {"start_paused": False, "core_id": 0}),
        (", flow_stats=STLFlowStats(7)", {"stream_id": 7, "rule_type": "stats", "vxlan": False}),
        (", flow_stats=STLFlowStats(7, True)", {"rule_type": "stats", "vxlan": True}),
        (", flow_stats=STLFlowLatencyStats(pg_id=7, vxlan=True)", {"rule_type": "latency", "vxlan": True}),
    ],
)
def test_streams_have_the_arguments_of_today(load: Load, more: str, fields: dict[str, Any]) -> None:
    [stream] = load(profile=profile(more=more))
    found = {**stream, **stream["flow_stats"]}
    assert {name: found[name] for name in fields} == fields


@pytest.mark.parametrize("given", ["cache_size=9", "None, 9", '"v", 9', 'split_by_field="v", cache_size=9', "9"])
def test_a_program_may_be_cached_in_the_words_of_any_client(load: Load, given: str) -> None:
    program = f"vm = STLScVmRaw([STLVmFlowVar('v'), STLVmWrFlowVar('v', 'IP.src')], {given})"
    assert load(profile=profile(program))[0]["vm"]["cache"] == 9


def test_random_values_without_a_seed_are_the_same_each_time(load: Load) -> None:
    text = profile(
        *("vm = STLVM()", 'vm.repeatable_random_var("a", 2, 50)', 'vm.repeatable_random_var("b", 2, 50)'),
        *('vm.write("a", "UDP.sport")', 'vm.write("b", "UDP.dport")'),
    )
    one, other = (written(load(profile=text), slice(34, 38), 50) for _ in range(2))
    assert one == other
    assert all(ports[:4] != ports[4:] for ports in one)


def test_a_frame_without_ethernet_2_is_sent_as_it_is(load: Load) -> None:
    spanning_tree = 'Dot3(dst="01:80:c2:00:00:00", src="00:00:00:00:00:01") / LLC() / STP()'
    text = profile().replace(
        'Ether() / IP(src="198.18.0.1", dst="198.19.0.1") / UDP(sport=1025, dport=12)', spanning_tree
    )
    assert base64.b64decode(load(profile=text)[0]["packet"]["binary"])[14:17] == bytes.fromhex("424203")


def test_flow_statistics_may_mark_the_frame_in_a_tunnel(load: Load) -> None:
    inner = ' / UDP(dport=4789) / (b"\\x08" + bytes(7)) / Ether() / IP(id=5) / ("x" * 30)'
    text = profile(more=", flow_stats=STLFlowStats(7, vxlan=True)").replace(
        ' / UDP(sport=1025, dport=12) / ("x" * 18)', inner
    )
    [frame] = expand(load(profile=text), limit=1)
    assert (frame[18:20].hex(), frame[68:70].hex()) == ("0001", "ff00")
    [plain] = expand(load(profile=text.replace(", vxlan=True", "")), limit=1)
    assert (plain[18:20].hex(), plain[68:70].hex()) == ("ff00", "0005")
    with pytest.raises(BadInput, match="stream 1: the packet has no VXLAN tunnel"):
        expand(load(profile=profile(more=", flow_stats=STLFlowStats(7, vxlan=True)")), limit=1)


# Errors

BASE = """from trex_stl_lib.api import *

class Base:
    def get_streams(self, **kwargs):
        size = {}
        return []
"""
HEIR = "from base import Base\ndef register():\n    return Base()\n"


@pytest.mark.parametrize(
    "read", ['kwargs["size"]', 'kwargs.pop("size")', '{"size": kwargs["size"]}["size"]', 'int(kwargs["size"])']
)
def test_a_missing_tunable_is_named_with_its_line(load: Load, read: str) -> None:
    error = refused(load, profile=HEIR, base=BASE.format(read))
    assert error.message == "labs/lab90-one/base.py, line 5: KeyError: 'size', a tunable that is not given"
    assert error.hint == "give the tunable size in lab.yml, as `tunables: { size: … }`"


def test_a_missing_tunable_is_named_where_a_helper_reads_it(load: Load) -> None:
    text = BASE.format("self.read(kwargs)") + "    def read(self, options):\n        return options['size']\n"
    error = refused(load, profile=HEIR, base=text)
    assert error.message.startswith("labs/lab90-one/base.py, line 8: KeyError: 'size', a tunable")


def test_another_missing_key_is_no_tunable(load: Load) -> None:
    for read in ('{"a": 1}[kwargs.get("mode", "b")]', "{}['size']", 'locals()["size"]'):
        error = refused(load, profile=HEIR, base=BASE.format(read))
        assert error.message.startswith("labs/lab90-one/base.py, line 5: KeyError: ")
        assert error.hint == "fix labs/lab90-one/base.py, line 5"


def test_a_tunable_without_a_default_is_asked_for(load: Load) -> None:
    text = profile().replace("direction=0, **kwargs", "size, direction=0")
    error = refused(load, profile=text)
    assert error.message == "labs/lab90-one/profile.py: get_streams needs the tunable 'size'"
    assert len(load(profile=text, tunables={"size": 1})) == 1


def test_a_mistake_in_an_imported_module_is_found_there(load: Load) -> None:
    for text, what in (
        ("x = (\n", "SyntaxError: '(' was never closed"),
        ("1 / 0\n", "ZeroDivisionError: division by zero"),
    ):
        error = refused(load, profile=HEIR, base=text)
        assert error.message == f"labs/lab90-one/base.py, line 1: {what}"


@pytest.mark.parametrize(
    ("call", "what"),
    [
        ("STLTXCont(percentage=200)", "STLArgumentError: Argument: 'percentage' invalid value: '200'"),
        ("STLTXCont(pps=1, bps_L1=1)", "STLError: exactly one parameter"),
        ("STLPktBuilder(pkt=7)", "STLTypeError: Argument: 'pkt' invalid type: 'int'"),
        ('STLVmFlowVar("v", size=3)', "CTRexPacketBuildException: Flow var has invalid size 3"),
        ('STLVmFlowVar("v", sise=4)', "TypeError: STLVmFlowVar.__init__() got an unexpected keyword argument 'sise'"),
    ],
)
def test_exceptions_of_the_api_are_told_in_one_line(load: Load, call: str, what: str) -> None:
    error = refused(load, profile=HEAD + "\n" + call)
    assert error.message.startswith(f"labs/lab90-one/profile.py, line 3: {what}")
    assert "\n" not in error.message


def test_an_exception_that_cannot_be_shown_is_named(load: Load) -> None:
    text = "class Silent(Exception):\n    def __str__(self):\n        raise ValueError\nraise Silent\n"
    assert refused(load, profile=text).message == "labs/lab90-one/profile.py, line 4: Silent"


@pytest.mark.parametrize(
    ("imports", "what"),
    [
        ("from trex.astf.api import *", "an ASTF profile"),
        ("import trex.astf.api", "an ASTF profile"),
        ("from trex.astf import api", "an ASTF profile"),
        ("from trex import astf", "an ASTF profile"),
        ("from trex_astf_lib.api import *", "an ASTF profile"),
        ("import astf_path", "an ASTF profile"),
        ("from trex.emu.api import *", "a profile of TRex's EMU"),
        ("from trex.stl.trex_stl_hltapi import STLHltStream", "a profile in TRex's HLT API"),
        ("from trex_stl_lib.trex_stl_hltapi import *", "a profile in TRex's HLT API"),
    ],
)
def test_profiles_of_other_kinds_are_named(load: Load, imports: str, what: str) -> None:
    for files in ({"profile": f"{imports}\n"}, {"profile": HEIR, "base": f"{imports}\n"}):
        error = refused(load, **files)
        assert error.message == f"labs/lab90-one/{[*files][-1]}.py, line 1: {what}, which is not read here"
    assert ("connections:" in error.hint) == ("ASTF" in what)


def test_an_astf_profile_is_known_by_its_object(load: Load) -> None:
    text = "class Web:\n    def get_profile(self, tunables=()):\n        pass\ndef register():\n    return Web()\n"
    error = refused(load, profile=text)
    assert error.message == "labs/lab90-one/profile.py: an ASTF profile, which is not read here"
    assert error.hint == "declare `connections:` in lab.yml instead (guides/traffic.md#tcp-connections)"


def test_an_object_without_streams_is_named(load: Load) -> None:
    error = refused(load, profile="def register():\n    pass\n")
    assert error.message == "labs/lab90-one/profile.py: register() returns a NoneType, which has no get_streams"


@pytest.mark.parametrize(
    "name", ["stateful.yaml", "streams.json", "profile.txt", "profile", "capture.pcap", "profile.pyc"]
)
def test_a_file_that_is_not_python_is_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / "labs/lab90-one" / name
    path.parent.mkdir(parents=True)
    path.write_text(profile())
    with pytest.raises(BadInput) as refused:
        load_profile(Project(tmp_path), path)
    assert refused.value.message == f"labs/lab90-one/{name}: not a Python profile"
    assert ".py" in refused.value.hint
    assert ("fwlab traffic expand" in refused.value.hint) == name.endswith(".json")


def test_a_profile_in_another_encoding_is_no_traceback(tmp_path: Path) -> None:
    path = tmp_path / "labs/lab90-one/profile.py"
    path.parent.mkdir(parents=True)
    text = profile(more=", flow_stats=STLTaggedPktGroup(7)") + "name = 'ä'\n"
    path.write_bytes(b"# coding: latin-1\n" + text.encode("latin-1"))
    with pytest.raises(BadInput, match="line 8: stream 1: flow_stats: tagged packet groups are not supported"):
        load_profile(Project(tmp_path), path)
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(BadInput, match="profile.py.*: SyntaxError: "):
        load_profile(Project(tmp_path), path)
