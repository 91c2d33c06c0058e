# SPDX-License-Identifier: GPL-2.0-or-later
"""Loading profiles: which ones run, their streams by the API of any of TRex's clients, and errors with their line."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scapy.config import conf

from fwlab.checkout.project import Project
from fwlab.generator.traffic_profile import load_profile
from fwlab.model.errors import BadInput
from fwlab.traffic import expand
from fwlab.traffic.frame_loop import build_table

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
LAYERS = 'IP(src="198.18.0.1", dst="198.19.0.1") / UDP(sport=1025, dport=12)'
SCAPY = "from scapy.all import Ether, IP, UDP\n"
HEIR = "from base import Published\ndef register():\n    return Published()\n"
Load = Callable[..., Any]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Write a lab's files and load the first of them."""

    def write_and_load(lab: str = "labs/lab90-one", tunables: Any = None, **files: str) -> Any:
        folder = tmp_path / lab
        folder.mkdir(parents=True, exist_ok=True)
        (tmp_path / "labs").mkdir(exist_ok=True)
        for name, text in files.items():
            (folder / f"{name}.py").write_text(text)
        return load_profile(Project(tmp_path), folder / f"{next(iter(files))}.py", tunables)

    return write_and_load


def profile(*lines: str, head: str = HEAD, more: str = "") -> str:
    return head + PROFILE.format(program="\n        ".join(lines or ("vm = []",)), more=more)


def refused(load: Load, *args: Any, **files: Any) -> BadInput:
    with pytest.raises(BadInput) as error:
        load(*args, **files)
    assert error.value.hint
    return error.value


def size(streams: list[dict[str, Any]]) -> int:
    return len(base64.b64decode(streams[0]["packet"]["binary"]))


# Streams


def test_a_profile_becomes_streams_in_the_rpc_form(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    load(profile=profile())  # the client's scapy
    monkeypatch.setattr(conf.neighbor, "resolve", lambda *_: pytest.fail("scapy looked for an address"))
    text = profile(
        "vm = STLScVmRaw([",
        '    STLVmFlowVar(name="source", min_value="198.18.0.1", max_value="198.18.0.4", size=4, op="inc"),',
        '    STLVmWrFlowVar(fv_name="source", pkt_offset="IP.src"), STLVmFixIpv4(offset="IP")])',
    )
    [stream] = load(profile=text)
    assert stream["mode"] == {"type": "continuous", "rate": {"type": "pps", "value": 2}}
    variable, write, fix = stream["vm"]["instructions"]
    assert (variable["min_value"], write["pkt_offset"], fix["pkt_offset"]) == (0xC6120001, 26, 14)
    assert base64.b64decode(stream["packet"]["binary"])[:12].hex() == "000000010000000000020000"
    assert [frame[29] for frame in expand([stream], limit=5)] == [1, 2, 3, 4, 1]


def test_names_of_chains_are_kept(load: Load) -> None:
    chain = (
        "packet = STLPktBuilder(pkt=Ether())",
        'first = STLStream(name="a", next="b", packet=packet, mode=STLTXSingleBurst(total_pkts=2))',
        'last = STLStream(name="b", self_start=False, packet=packet, mode=STLTXSingleBurst(total_pkts=3))',
        "return [first, last]",
    )
    streams = load(profile=profile(*chain))
    assert [stream.get("next") for stream in streams] == ["b", None]
    assert len(expand(streams, limit=100)) == 5


def test_fields_are_found_behind_tags_and_in_inner_headers(load: Load) -> None:
    inner = 'IP(src="198.18.0.1", dst="198.19.0.1") / UDP()'
    text = profile(
        "vm = STLScVmRaw([",
        '    STLVmFlowVar(name="v", min_value=1, max_value=9, size=2, op="inc"),',
        '    STLVmWrFlowVar(fv_name="v", pkt_offset="802|1Q.vlan"),',
        '    STLVmWrMaskFlowVar(fv_name="v", pkt_offset="IP:1.frag", pkt_cast_size=2, mask=0x1fff),',
        '    STLVmTupleGen(name="t", ip_min="198.18.0.1", ip_max="198.18.0.9", port_min=5, port_max=6),',
        '    STLVmWrFlowVar(fv_name="t.ip", pkt_offset="IP:1.src"),',
        '    STLVmFixChecksumHw(l3_offset="IP", l4_offset="UDP", l4_type=CTRexVmInsFixHwCs.L4_TYPE_UDP)])',
    ).replace(LAYERS, f"Dot1Q(vlan=5) / IP(options=[IPOption_NOP()] * 4) / UDP() / {inner}")
    program = load(profile=text)[0]["vm"]["instructions"]
    assert [ins.get("pkt_offset") for ins in program] == [None, 14, 50 + 6, None, 50 + 12, None]
    assert program[-1] == {"type": "fix_checksum_hw", "l2_len": 18, "l3_len": 24, "l4_type": 11}


PARSER = ("vm = []", "import argparse", "parser = argparse.ArgumentParser(prog='p')")
PARSER += ('parser.add_argument("--pps", type=int)', "options = parser.parse_args({})")


@pytest.mark.parametrize(
    ("parameters", "lines", "pps"),
    [
        ("speed, direction=0", (), "speed"),
        ("direction=0, speed=1, **kwargs", (), "speed"),
        ("direction=0, **kwargs", (), "kwargs.get('speed', 1)"),
        ("tunables, **kwargs", PARSER, "options.pps"),
        ("args, **kwargs", PARSER, "options.pps"),
    ],
)
def test_tunables_reach_the_profile(load: Load, parameters: str, lines: tuple[str, ...], pps: str) -> None:
    """By name, or as a list for argparse."""
    text = profile(*(line.format(parameters.partition(",")[0]) for line in lines))
    text = text.replace("direction=0, **kwargs", parameters).replace("pps=2", f"pps={pps}")
    assert load(tunables={"pps" if lines else "speed": 55}, profile=text)[0]["mode"]["rate"]["value"] == 55


def test_modules_are_imported_from_a_labs_own_folder(load: Load, tmp_path: Path) -> None:
    assert load(profile=HEIR, base=profile()) == load(profile=profile())
    other = profile(head="from trex.stl.api import *\n").replace('"x" * 18', '"x" * 99')
    assert size(load("labs/lab91-two", profile=HEIR, base=other)) == 141
    assert not list(tmp_path.rglob("__pycache__"))


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
    text = profile(call.format(offsets)).replace(LAYERS, "P")
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
    one, other = ([frame[34:38] for frame in expand(load(profile=text), limit=50)] for _ in range(2))
    assert one == other
    assert all(ports[:2] != ports[2:] for ports in one)


def test_a_frame_without_ethernet_2_is_sent_as_it_is(load: Load) -> None:
    spanning_tree = 'Dot3(dst="01:80:c2:00:00:00", src="00:00:00:00:00:01") / LLC() / STP()'
    text = profile().replace(f"Ether() / {LAYERS}", spanning_tree)
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


@pytest.mark.parametrize("lab", [".", "submissions/17", "labs", "labs/lab90-one/work/1", "link"])
def test_profiles_outside_the_labs_are_refused_unread(load: Load, tmp_path: Path, lab: str) -> None:
    name = "labs/lab90-one/profile.py"
    if lab == "link":
        (tmp_path / "labs/lab90-one").mkdir(parents=True)
        (tmp_path / name).symlink_to(tmp_path / "elsewhere.py")
    else:
        name = os.path.normpath(f"{lab}/profile.py")
    error = refused(load, str(Path(name).parent), profile=f"open({str(tmp_path / 'ran')!r}, 'w')\n" + profile())
    assert error.message == f"{name}: not run, because it is not a lab's own profile"
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("name", "message", "hint"),
    [
        ("other.py", "no such profile", "ls labs/lab90-one"),
        ("streams.json", "not a Python profile", "`fwlab traffic expand labs/lab90-one/streams.json` expands streams"),
        ("capture.pcap", "not a Python profile", "in a file that ends in .py"),
        ("profile", "not a Python profile", "in a file that ends in .py"),
    ],
)
def test_a_file_that_is_no_profile_is_named(tmp_path: Path, name: str, message: str, hint: str) -> None:
    path = tmp_path / "labs/lab90-one" / name
    path.parent.mkdir(parents=True)
    if message.startswith("not"):
        path.write_text(profile())
    with pytest.raises(BadInput) as error:
        load_profile(Project(tmp_path), path)
    assert error.value.message == f"labs/lab90-one/{name}: {message}"
    assert hint in error.value.hint


def program(*instructions: str, **more: str) -> str:
    return profile(f"vm = STLScVmRaw([{', '.join(instructions)}])", **more)


VARIABLE = 'STLVmFlowVar("v")'
JUMP = (
    HEAD
    + """
class STLVmJump(STLVmFixIpv4):
    def get_obj(self):
        instruction = super().get_obj()
        instruction.type = "jump"
        return instruction
"""
)
LATENCY = ", flow_stats=STLFlowLatencyStats(7, ieee_1588=True)"
BROKEN = [
    ("x = 1\n", ": no function register()"),
    ("def register():\n    pass\n", ": register() returns a NoneType, which has no get_streams"),
    (profile("return []"), ": get_streams returns no streams"),
    (profile("return [7]"), ": stream 1 is a int, not an STLStream"),
    (profile().replace("pps=2", "pps=0"), ": stream 1: mode.rate: invalid rate 0 pps; give at least 1e-06"),
    ("import os\nos._exit = None\nraise SystemExit(3)\n", ": it exited with status 3"),
    ("\n\nraise RuntimeError('too  late')\n", ", line 3: RuntimeError: too late"),
    ("class E(Exception):\n    def __str__(self):\n        raise ValueError\nraise E\n", ", line 4: E"),
    (program("STLVmFixEverything(14)"), ", line 5: NameError: name 'STLVmFixEverything' is not defined"),
    (program(VARIABLE, 'STLVmWrFlowVar("v", "IP.sauce")'), ", line 7: ValueError: layer IP:0 has no field sauce"),
    (program(VARIABLE, 'STLVmWrFlowVar("v", "TCP.sport")'), ", line 7: ValueError: the packet has no layer TCP:0"),
    (profile(more=LATENCY), ", line 7: stream 1: flow_stats: IEEE 1588 time stamps are not supported"),
    (program("STLVmJump(14)", head=JUMP), ", line 11: stream 1, instruction 1: unknown instruction 'jump'; use one of"),
    (HEAD + "STLTXCont(percentage=200)", ", line 2: STLArgumentError: Argument: 'percentage' invalid value: '200'"),
    (HEAD + "STLTXCont(pps=1, bps_L1=1)", ", line 2: STLError: exactly one parameter"),
    (HEAD + "STLPktBuilder(pkt=7)", ", line 2: STLTypeError: Argument: 'pkt' invalid type: 'int'"),
    (HEAD + 'STLVmFlowVar("v", size=3)', ", line 2: CTRexPacketBuildException: Flow var has invalid size 3"),
    (HEAD + 'STLVmFlowVar("v", sise=4)', ", line 2: TypeError: STLVmFlowVar.__init__() got an unexpected keyword"),
]


def chain(next_vars: dict[str, str | None]) -> str:
    return profile("vm = STLVM()", *(f'vm.var("{v}", 0, 3, 1, "inc", next_var={n!r})' for v, n in next_vars.items()))


BROKEN += [
    (chain({"a": "b", "b": "a", "c": None}), ", line 10: ValueError: next_var leads in a circle"),
    (chain({"a": "a", "b": None, "c": None}), ", line 10: ValueError: next_var leads in a circle"),
    (chain({"a": "c", "b": "c", "c": None}), ", line 10: ValueError: 'c' is the next_var of two variables"),
    (chain({"a": "d", "b": None, "c": None}), ", line 10: ValueError: next_var 'd' of 'a' is not declared"),
]


@pytest.mark.parametrize(("text", "message"), BROKEN, ids=[message for _, message in BROKEN])
def test_an_error_names_the_line(load: Load, text: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "_exit", os._exit)  # put back what a profile replaces in this process
    error = refused(load, profile=text)
    assert error.message.startswith(f"labs/lab90-one/profile.py{message}")
    assert "\n" not in error.message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = (\n", "SyntaxError: '(' was never closed"),
        ("1 / 0\n", "ZeroDivisionError: division by zero"),
        ("from trex.astf.api import *", "an ASTF profile, which is not read here"),
        ("import trex.astf.api", "an ASTF profile, which is not read here"),
        ("from trex import astf", "an ASTF profile, which is not read here"),
        ("from trex_astf_lib.api import *", "an ASTF profile, which is not read here"),
        ("import astf_path", "an ASTF profile, which is not read here"),
        ("from trex.emu.api import *", "a profile of TRex's EMU, which is not read here"),
        ("from trex.stl.trex_stl_hltapi import STLHltStream", "a profile in TRex's HLT API, which is not read here"),
        ("from trex_stl_lib.trex_stl_hltapi import *", "a profile in TRex's HLT API, which is not read here"),
    ],
)
def test_a_mistake_is_found_in_the_module_that_makes_it(load: Load, text: str, message: str) -> None:
    for files in ({"profile": text}, {"profile": HEIR, "base": text}):
        error = refused(load, **files)
        assert error.message == f"labs/lab90-one/{[*files][-1]}.py, line 1: {message}"
        assert ("connections:" in error.hint) == ("ASTF" in message)


def test_an_astf_profile_is_known_by_its_object(load: Load) -> None:
    text = "class Web:\n    def get_profile(self, tunables=()):\n        pass\ndef register():\n    return Web()\n"
    error = refused(load, profile=text)
    assert error.message == "labs/lab90-one/profile.py: an ASTF profile, which is not read here"
    assert error.hint == "declare `connections:` in lab.yml instead (guides/traffic.md#tcp-connections)"


def reading(expression: str) -> str:
    return profile(f"size = {expression}")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (reading('kwargs["size"]'), 5),
        (reading('kwargs.pop("size")'), 5),
        (reading('{"size": kwargs["size"]}["size"]'), 5),
        (reading('int(kwargs["size"])'), 5),
        (reading("self.read(kwargs)") + "Published.read = lambda self, options: options['size']\n", 11),
    ],
)
def test_a_missing_tunable_is_named_with_its_line(load: Load, text: str, line: int) -> None:
    error = refused(load, profile=HEIR, base=text)
    assert error.message == f"labs/lab90-one/base.py, line {line}: KeyError: 'size', a tunable that is not given"
    assert error.hint == "give the tunable size in lab.yml, as `tunables: { size: … }`"


@pytest.mark.parametrize("read", ['{"a": 1}[kwargs.get("mode", "b")]', "{}['size']", 'locals()["size"]'])
def test_another_missing_key_is_no_tunable(load: Load, read: str) -> None:
    error = refused(load, profile=HEIR, base=reading(read))
    assert error.message.startswith("labs/lab90-one/base.py, line 5: KeyError: ")
    assert error.hint == "fix labs/lab90-one/base.py, line 5"


@pytest.mark.parametrize(
    ("text", "tunables", "message"),
    [
        (profile().replace("direction=0", "size"), {}, "get_streams needs the tunable 'size'"),
        (profile().replace("direction=0", "size=1"), {"sise": 9}, "unknown tunable 'sise'; there are: size"),
        (
            profile(*PARSER).format("tunables").replace("direction=0", "tunables"),
            {"speed": 1},
            "p: error: unrecognized arguments: --speed 1",
        ),
    ],
)
def test_tunables_that_do_not_fit_are_named(load: Load, text: str, tunables: dict, message: str) -> None:
    assert refused(load, tunables=tunables, profile=text).message == f"labs/lab90-one/profile.py: {message}"


def test_a_profile_in_another_encoding_is_no_traceback(load: Load, tmp_path: Path) -> None:
    load(profile=profile())
    path = tmp_path / "labs/lab90-one/profile.py"
    text = profile(more=", flow_stats=STLTaggedPktGroup(7)") + "name = 'ä'\n"
    path.write_bytes(b"# coding: latin-1\n" + text.encode("latin-1"))
    with pytest.raises(BadInput, match="line 8: stream 1: flow_stats: tagged packet groups are not supported"):
        load_profile(Project(tmp_path), path)
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(BadInput, match="profile.py.*: SyntaxError: "):
        load_profile(Project(tmp_path), path)
