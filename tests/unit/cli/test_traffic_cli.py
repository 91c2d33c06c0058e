# SPDX-License-Identifier: GPL-2.0-or-later
"""The commands `fwlab traffic expand` and `fwlab traffic show`."""

import json
import shutil

import pytest
from typer.testing import CliRunner

from fwlab.cli.traffic import app
from fwlab.model.errors import BadInput
from tests import DATA, ROOT
from tests.fakes.captures import read_pcap
from tests.fakes.traffic_forms import stream, variable, write

VECTORS = DATA / "trex-vectors"
LAB = """
id: lab90-test
title: A lab for tests
minutes: 5
classes: { low: { src: 198.18.0.0/31 }, high: { src: 198.18.0.0/24 } }
traffic:
  flood: { profile: profile.py, tunables: { last: 3 } }
  stray: { profile: profile.py, tunables: { target: 10.0.0.1 } }
  web: { connections: { clients: 198.18.32.0/24, servers: 198.19.32.0/28, object_bytes: 300, concurrent: 40 } }
  pressed: { connections: { port: 8080, background: flood, background_pps: 2000 } }
baseline: one
cases: [{ id: one, title: One, ruleset: one, traffic: flood }]
"""
PROFILE = """
from trex_stl_lib.api import *

class Flood:
    def get_streams(self, direction=0, last=3, target="198.19.0.9", **kwargs):
        program = STLScVmRaw([
            STLVmFlowVar(name="v", min_value=1, max_value=last, size=1, op="inc"),
            STLVmWrFlowVar(fv_name="v", pkt_offset=29),
        ])
        headers = Ether() / IP(src="198.18.0.0", dst=target) / UDP(sport=1025, dport=12)
        packet = STLPktBuilder(pkt=headers / bytes(18), vm=program)
        return [STLStream(packet=packet, mode=STLTXCont(pps=1000))]

def register():
    return Flood()
"""
TWO_VARIABLES = """
from trex_stl_lib.api import *

class Flood:
    def get_streams(self, direction=0, last=3, again=2, **kwargs):
        program = STLScVmRaw([
            STLVmTupleGen(name="t", ip_min="198.18.1.1", ip_max=f"198.18.1.{again}", port_min=1, port_max=last),
            STLVmWrFlowVar(fv_name="t.ip", pkt_offset="IP.src"),
            STLVmWrFlowVar(fv_name="t.port", pkt_offset="UDP.sport"),
        ])
        headers = Ether() / IP(src="198.18.0.0", dst="198.19.0.9") / UDP(sport=1025, dport=12)
        packet = STLPktBuilder(pkt=headers / bytes(18), vm=program)
        return [STLStream(packet=packet, mode=STLTXCont(pps=1000))]

def register():
    return Flood()
"""


def run(*arguments):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None:
        raise result.exception
    return result.output


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    folder = tmp_path / "labs/lab90-test"
    folder.mkdir(parents=True)
    shutil.copy(ROOT / "topology.yml", tmp_path)
    (folder / "lab.yml").write_text(LAB)
    (folder / "profile.py").write_text(PROFILE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_expand_writes_the_same_capture_as_trex(tmp_path):
    run("expand", VECTORS / "udp_1pkt_range_clients.json", "--pcap", tmp_path / "a.pcap")
    assert read_pcap(tmp_path / "a.pcap") == read_pcap(VECTORS / "udp_1pkt_range_clients.pcap")


def test_expand_takes_the_limit_from_the_file_or_the_command(tmp_path):
    form = {"streams": [stream(variable(), write())], "packet_limit": 7}
    (tmp_path / "a.json").write_text(json.dumps(form))
    assert json.loads(run("expand", tmp_path / "a.json", "--json"))["frames"] == 7
    told = json.loads(run("expand", tmp_path / "a.json", "--limit", "3", "--json"))
    assert told == {
        "frames": 3,
        "seconds": 0.002,
        "bytes": 180,
        "streams": [{"stream": 1, "name": None, "mode": "continuous", "pps": 1000.0, "mean_bytes": 60, "frames": 3}],
        "pcap": None,
    }
    (tmp_path / "a.json").write_text(json.dumps([stream()]))
    assert json.loads(run("expand", tmp_path / "a.json", "--json"))["frames"] == 5000, "as TRex"


def test_expand_uses_the_macs_of_the_other_port(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps({"streams": [stream()], "direction": 1}))
    run("expand", tmp_path / "a.json", "--limit", "1", "--pcap", tmp_path / "a.pcap")
    assert read_pcap(tmp_path / "a.pcap")[0][0][:12] == b"\x20" * 6 + b"\x28" * 6


def test_expand_prints_a_summary():
    output = run("expand", VECTORS / "burst_3st_loop_x_times.json")
    assert "12 frames in 0.600010 s, 720 bytes" in output
    assert "single_burst" in output


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot be read: No such file or directory"),
        ("{", "invalid JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
        ("{}", "contains no streams"),
        ("7", "contains no streams"),
        ('{"streams": [], "packet_limit": 0}', "invalid packet_limit 0: must be a number of at least 1"),
        ('{"streams": [{}]}', "stream 1: field 'mode' is missing"),
        ('[{"mode": 7}]', "stream 1: mode: Input should be a valid dictionary or instance of Mode"),
        (json.dumps([stream({"type": "jump"})]), "stream 1, instruction 1: unknown instruction 'jump'"),
    ],
)
def test_expand_refuses_other_files(tmp_path, content, message):
    if content is not None:
        (tmp_path / "a.json").write_text(content)
    with pytest.raises(BadInput) as error:
        run("expand", tmp_path / "a.json", "--pcap", tmp_path / "a.pcap")
    assert error.value.message.startswith(f"{tmp_path}/a.json: {message}")
    assert not (tmp_path / "a.pcap").exists()


def test_show_prints_classes_rates_and_first_frames(checkout):
    output = run("show", "lab90-test", "flood")
    assert "lab90-test flood: profile.py last=3" in output
    assert "3 frames, repeated every 0.003 s at the profile's own rates" in output
    assert "classes: low 1, high 2" in output
    assert "0.001000  stream 1     60 bytes  Ether / IP / UDP 198.18.0.2:1025 > 198.19.0.9:12" in output
    told = json.loads(run("show", "lab90-test", "flood", "--json"))
    [flood] = told["traffic"]
    assert (told["lab"], flood["frames"], flood["exact_loop"]) == ("lab90-test", 3, True)
    assert flood["classes"] == {"low": 1, "high": 2, "other": 0}
    assert flood["streams"][0]["pps"] == 1000


def test_show_writes_what_would_be_sent(checkout):
    run("show", "lab90-test", "flood", "--pcap", "a.pcap", "--limit", "5")
    frames, times = read_pcap(checkout / "a.pcap")
    assert [frame[29] for frame in frames] == [1, 2, 3, 1, 2]
    assert times == [0, 1_000_000, 2_000_000, 3_000_000, 4_000_000]
    assert frames[0][:12].hex(":", 6) == "525400120001:525400120002"  # from the generator to the DUT


def test_show_prints_declared_connections(checkout):
    assert run("show", "lab90-test", "web").splitlines() == [
        "lab90-test web: TCP connections, one object each",
        "  clients     198.18.32.0/24, 256 addresses",
        "  servers     198.19.32.0/28, 16 addresses, port 80",
        "  object      300 bytes",
        "  concurrent  40 open at a time",
        "  background  none",
    ]
    pressed = run("show", "lab90-test", "pressed")
    assert "16 addresses, port 8080" in pressed
    assert "  background  the traffic flood, 2000 packets/s of the generator's clock" in pressed
    [told] = json.loads(run("show", "lab90-test", "pressed", "--json"))["traffic"]
    assert told["id"] == "pressed"
    assert told["connections"]["background_pps"] == 2000


def test_show_prints_frames_and_connections_alike(checkout):
    declared = (checkout / "labs/lab90-test/lab.yml").read_text()
    kept = [line for line in declared.splitlines() if "stray" not in line]
    (checkout / "labs/lab90-test/lab.yml").write_text("\n".join(kept))
    told = json.loads(run("show", "lab90-test", "--json"))["traffic"]
    assert [one["id"] for one in told] == ["flood", "web", "pressed"]
    assert "lab90-test flood" in run("show", "lab90-test")
    assert "lab90-test web" in run("show", "lab90-test")


def test_a_case_that_fills_the_dut_makes_the_table_longer(checkout):
    path = checkout / "labs/lab90-test/lab.yml"
    path.write_text(
        path.read_text()
        .replace("last: 3 }", "last: 50000, again: 2 }")
        .replace("flood }]", "flood, state_packets: 100000 }]")
    )
    (checkout / "labs/lab90-test/profile.py").write_text(TWO_VARIABLES)
    [flood] = json.loads(run("show", "lab90-test", "flood", "--json"))["traffic"]
    assert flood["frames"] == 100000
    assert flood["exact_loop"] is True


def test_show_takes_tunables_as_trex_does(checkout):
    assert "flood: profile.py last=2" in run("show", "lab90-test", "flood", "-t", "last=2")
    [told] = json.loads(run("show", "lab90-test", "flood", "--json", "-t", "last=2,target=198.19.7.7"))["traffic"]
    assert told["tunables"] == {"last": 2, "target": "198.19.7.7"}
    assert told["frames"] == 2
    assert "> 198.19.7.7:" in told["first_frames"][0]["summary"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["lab90-test", "-t", "last=2"], "-t applies to one traffic with a profile, not to flood, stray, web, pressed"),
        (["lab90-test", "web", "-t", "last=2"], "-t applies to one traffic with a profile, not to web"),
        (["lab90-test", "flood", "-t", "last"], "-t last: not NAME=VALUE"),
        (["lab91-none"], "unknown lab lab91-none; there are: lab90-test"),
        (["lab90-test", "fog"], "lab90-test: unknown traffic fog; there are: flood, stray, web, pressed"),
        (["lab90-test", "--pcap", "a.pcap"], "--pcap requires one traffic; lab90-test has flood, stray, web, pressed"),
        (["lab90-test", "flood", "--limit", "0"], "invalid limit 0: must be at least 1"),
        (
            ["lab90-test", "web", "--pcap", "a.pcap"],
            "lab90-test web: TCP connections have no predetermined frames to capture",
        ),
        (
            ["lab90-test", "stray"],
            "labs/lab90-test/profile.py: stream 1, frame 1: destination 10.0.0.1 is not a lab address",
        ),
    ],
)
def test_show_refuses(checkout, arguments, message):
    with pytest.raises(BadInput) as error:
        run("show", *arguments)
    assert error.value.message == message
    assert error.value.hint
    assert not (checkout / "a.pcap").exists()
