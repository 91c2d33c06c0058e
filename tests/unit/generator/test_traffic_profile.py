# SPDX-License-Identifier: GPL-2.0-or-later
"""Loading profiles: which ones are run, their streams, and errors with file and line."""

from __future__ import annotations

import base64
import os
from textwrap import dedent

import pytest
from scapy.config import conf

from fwlab.checkout.project import Project
from fwlab.generator.traffic_profile import load_profile
from fwlab.model.errors import BadInput
from fwlab.traffic import expand

HEAD = """
from trex_stl_lib.api import *
"""
FLOOD = (
    HEAD
    + """
class Flood:
    def get_streams(self, direction=0, size=60, **kwargs):
        headers = Ether() / IP(src="198.18.0.9", dst="198.19.0.9") / UDP(sport=1025, dport=12)
        program = STLScVmRaw([
            STLVmFlowVar(name="source", min_value="198.18.0.1", max_value="198.18.0.4", size=4, op="inc"),
            STLVmWrFlowVar(fv_name="source", pkt_offset="IP.src"),
            STLVmFixIpv4(offset="IP"),
        ])
        packet = STLPktBuilder(pkt=headers / bytes(size - len(headers)), vm=program)
        return [STLStream(packet=packet, mode=STLTXCont(pps=1000))]

def register():
    return Flood()
"""
)


@pytest.fixture
def project(tmp_path):
    (tmp_path / "labs/lab90-test/work").mkdir(parents=True)
    return Project(tmp_path)


@pytest.fixture
def profile(project):
    """Write a profile and load it."""

    def load(text, tunables=None, name="labs/lab90-test/profile.py"):
        path = project.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text))
        return load_profile(project, path, tunables)

    return load


def fault(load, *args, **options):
    with pytest.raises(BadInput) as error:
        load(*args, **options)
    return error.value


def program_of(stream):
    return {ins["type"]: ins for ins in stream["vm"]["instructions"]}


def test_a_profile_becomes_streams_in_the_rpc_form(profile):
    [stream] = profile(FLOOD)
    assert stream["mode"] == {"type": "continuous", "rate": {"type": "pps", "value": 1000}}
    program = program_of(stream)
    assert program["write_flow_var"]["pkt_offset"] == 26
    assert program["fix_checksum_ipv4"]["pkt_offset"] == 14
    assert program["flow_var"]["min_value"] == 0xC6120001
    sources = [frame[26:30] for frame in expand([stream], limit=5)]
    assert sources == [bytes([198, 18, 0, last]) for last in (1, 2, 3, 4, 1)]


def test_tunables_reach_the_profile(profile):
    [stream] = profile(FLOOD, {"size": 124})
    assert len(base64.b64decode(stream["packet"]["binary"])) == 124


@pytest.mark.parametrize("parameter", ["tunables", "args"])
def test_newer_profiles_get_tunables_as_a_list(profile, parameter):
    [stream] = profile(
        HEAD
        + f"""
import argparse

class New:
    def get_streams(self, {parameter}, **kwargs):
        parser = argparse.ArgumentParser()
        parser.add_argument("--pps", type=int, default=1)
        packet = STLPktBuilder(pkt=Ether() / IP() / UDP())
        return STLStream(packet=packet, mode=STLTXCont(pps=parser.parse_args({parameter}).pps))

def register():
    return New()
""",
        {"pps": 77},
    )
    assert stream["mode"]["rate"]["value"] == 77


def test_names_of_chains_are_kept(profile):
    streams = profile(
        HEAD
        + """
class Chain:
    def get_streams(self, **kwargs):
        packet = STLPktBuilder(pkt=Ether() / IP() / UDP())
        return [
            STLStream(name="a", next="b", packet=packet, mode=STLTXSingleBurst(total_pkts=2)),
            STLStream(name="b", self_start=False, packet=packet, mode=STLTXSingleBurst(total_pkts=3)),
        ]

def register():
    return Chain()
"""
    )
    assert [stream.get("next") for stream in streams] == ["b", None]
    assert len(expand(streams, limit=100)) == 5


def test_fields_are_found_behind_tags_and_in_inner_headers(profile):
    [stream] = profile(
        HEAD
        + """
class Tunnel:
    def get_streams(self, **kwargs):
        inner = IP(src="198.18.0.1", dst="198.19.0.1") / UDP()
        layers = Ether() / Dot1Q(vlan=5) / IP(options=[IPOption_NOP()] * 4) / UDP() / inner
        program = STLScVmRaw([
            STLVmFlowVar(name="v", min_value=1, max_value=9, size=2, op="inc"),
            STLVmWrFlowVar(fv_name="v", pkt_offset="802|1Q.vlan"),
            STLVmWrMaskFlowVar(fv_name="v", pkt_offset="IP:1.frag", pkt_cast_size=2, mask=0x1fff),
            STLVmTupleGen(name="t", ip_min="198.18.0.1", ip_max="198.18.0.9", port_min=5, port_max=6),
            STLVmWrFlowVar(fv_name="t.ip", pkt_offset="IP:1.src"),
            STLVmFixChecksumHw(l3_offset="IP", l4_offset="UDP", l4_type=CTRexVmInsFixHwCs.L4_TYPE_UDP),
        ])
        return [STLStream(packet=STLPktBuilder(pkt=layers, vm=program), mode=STLTXCont(pps=1))]

def register():
    return Tunnel()
"""
    )
    places = [ins.get("pkt_offset") for ins in stream["vm"]["instructions"]]
    assert places == [None, 14, 50 + 6, None, 50 + 12, None]
    assert program_of(stream)["fix_checksum_hw"] == {
        "type": "fix_checksum_hw",
        "l2_len": 18,
        "l3_len": 24,
        "l4_type": 11,
    }


def test_loading_a_profile_sends_nothing(profile, monkeypatch):
    def ask(*_):
        raise AssertionError("a profile made scapy look for an address")

    monkeypatch.setattr(conf.neighbor, "resolve", ask)
    [stream] = profile(FLOOD)
    assert base64.b64decode(stream["packet"]["binary"])[:12].hex() == "000000010000000000020000"


def test_a_profile_may_import_modules_from_its_folder(profile, project):
    (project.root / "labs/lab90-test/fwlab_test_sizes.py").write_text("SIZE = 99\n")
    [stream] = profile("from fwlab_test_sizes import SIZE\n" + FLOOD.replace("size=60", "size=SIZE"))
    assert len(base64.b64decode(stream["packet"]["binary"])) == 99
    assert not list(project.root.rglob("__pycache__"))


@pytest.mark.parametrize(
    "name",
    ["profile.py", "submissions/17/profile.py", "labs/profile.py", "labs/lab90-test/work/1/profile.py"],
)
def test_profiles_outside_the_labs_are_refused_unread(profile, project, name):
    error = fault(profile, f"open({str(project.root / 'ran')!r}, 'w')\n" + FLOOD, name=name)
    assert error.message == f"{name}: not run, because it is not a lab's own profile"
    assert error.hint == "use a profile in the lab's folder; submissions may contain rulesets only"
    assert not (project.root / "ran").exists()


def test_a_symbolic_link_to_outside_the_labs_is_refused(project):
    (project.root / "elsewhere.py").write_text(FLOOD)
    link = project.root / "labs/lab90-test/profile.py"
    link.symlink_to(project.root / "elsewhere.py")
    assert "not a lab's own profile" in fault(load_profile, project, link).message


def test_a_missing_profile_is_named(project):
    error = fault(load_profile, project, project.root / "labs/lab90-test/other.py")
    assert error.message == "labs/lab90-test/other.py: no such profile"
    assert error.hint == "ls labs/lab90-test"


BROKEN = [
    ("x = 1\n", ": no function register()"),
    ("x = (\n", ", line 1: SyntaxError: '(' was never closed"),
    ("\n\nraise RuntimeError('too  late')\n", ", line 3: RuntimeError: too late"),
    ("def register():\n    return missing\n", ", line 2: NameError: name 'missing' is not defined"),
    (
        FLOOD.replace("STLVmFixIpv4", "STLVmFixEverything"),
        ", line 10: NameError: name 'STLVmFixEverything' is not defined",
    ),
    (FLOOD.replace("IP.src", "IP.sauce"), ", line 12: ValueError: layer IP:0 has no field sauce"),
    (FLOOD.replace("IP.src", "TCP.sport"), ", line 12: ValueError: the packet has no layer TCP:0"),
    (
        FLOOD.replace("pps=1000", "pps=0"),
        ": stream 1: mode.rate: invalid rate 0 pps; give at least 1e-06",
    ),
    (FLOOD.replace("return [STLStream", "return []; [STLStream"), ": get_streams returns no streams"),
    (FLOOD.replace("return [STLStream", "return [7]; [STLStream"), ": stream 1 is a int, not an STLStream"),
    (
        FLOOD.replace("pps=1000))", "pps=1000), flow_stats=STLFlowLatencyStats(7, ieee_1588=True))"),
        (
            ", line 13: stream 1: flow_stats: IEEE 1588 time stamps are not supported; "
            "use STLFlowStats or STLFlowLatencyStats"
        ),
    ),
    ("import os\nos._exit = None\nraise SystemExit(3)\n", ": it exited with status 3"),
]


@pytest.mark.parametrize(("text", "message"), BROKEN, ids=[message for _, message in BROKEN])
def test_an_error_names_the_line(profile, text, message, monkeypatch):
    monkeypatch.setattr(os, "_exit", os._exit)  # put back what a profile replaces in this process
    error = fault(profile, text)
    assert error.message == f"labs/lab90-test/profile.py{message}"
    assert error.hint


def test_an_unknown_instruction_is_reported_with_its_line(profile):
    text = FLOOD.replace(
        "def register",
        """class STLVmJump(STLVmFixIpv4):
    def get_obj(self):
        instruction = super().get_obj()
        instruction.type = "jump"
        return instruction

def register""",
    ).replace("STLVmFixIpv4(offset", "STLVmJump(offset")
    error = fault(profile, text)
    what = "labs/lab90-test/profile.py, line 10: stream 1, instruction 3: unknown instruction 'jump'; use one of: "
    assert error.message.startswith(what)


def test_a_misspelt_tunable_is_named(profile):
    error = fault(profile, FLOOD, {"sise": 99})
    assert error.message == "labs/lab90-test/profile.py: unknown tunable 'sise'; there are: size"
    assert error.hint == "give only tunables that get_streams accepts"


def test_a_tunable_may_be_taken_from_kwargs(profile):
    [stream] = profile(FLOOD.replace("pps=1000", "pps=kwargs.get('speed', 1)"), {"speed": 55})
    assert stream["mode"]["rate"]["value"] == 55


def test_a_tunable_that_argparse_does_not_know_is_named(profile):
    text = HEAD + "import argparse\nclass New:\n    def get_streams(self, tunables, **kwargs):\n"
    text += "        argparse.ArgumentParser(prog='p').parse_args(tunables)\ndef register():\n    return New()\n"
    error = fault(profile, text, {"speed": 1})
    assert error.message == "labs/lab90-test/profile.py: p: error: unrecognized arguments: --speed 1"
