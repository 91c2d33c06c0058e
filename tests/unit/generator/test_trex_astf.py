# SPDX-License-Identifier: GPL-2.0-or-later
"""The profile for TRex's advanced stateful mode: what it requests, and that TRex's own library accepts it.

No package registry has TRex's library, so most tests use a fake that records its calls.
"""

from __future__ import annotations

import base64
import ipaddress
import json
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from fwlab.checkout.project import find_project, lab_ids
from fwlab.cli.traffic import app
from fwlab.generator.tcp_config import first_address
from fwlab.generator.trex.astf import CPS, astf_form, astf_profile
from fwlab.measure.labs import load_lab
from fwlab.model.declared_traffic import Connections
from fwlab.model.errors import BadInput
from tests.checkout import lab_named

SMALL = Connections(
    clients="198.18.40.8/29",
    servers="198.19.40.9/32",
    port=8080,
    object_bytes=7,
    concurrent=3,
    background="flood",
    background_pps=2000,
)
#: A response of Debian 12's nginx with the configuration in tcp_config.py: 663 bytes.
NGINX_HEAD = 151


class Noted:
    """Replaces any class of the API and records its arguments and calls."""

    def __init__(self, *_: Any, **made_with: Any) -> None:
        assert not _, "the profile says by name what it means"
        self.made_with, self.calls = made_with, []

    def __getattr__(self, name: str) -> Any:
        return lambda *given: self.calls.append((name, *given))


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Noted, Noted]]:
    """The client's and the server's template of the profile for these connections."""
    api = types.ModuleType("trex.astf.api")
    api.__getattr__ = lambda name: type(name, (Noted,), {})
    for name in ("trex", "trex.astf"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setitem(sys.modules, "trex.astf.api", api)

    def made(connections: Connections = SMALL, *tunables: str) -> tuple[Noted, Noted]:
        module: dict[str, Any] = {}
        exec(compile(astf_profile("lab90-test", "web", connections), "profile.py", "exec"), module)
        template = module["register"]().get_profile(list(tunables)).made_with["templates"]
        return template.made_with["client_template"], template.made_with["server_template"]

    return made


Ends = Callable[..., tuple[Noted, Noted]]


@pytest.mark.parametrize(
    ("tunables", "cps", "limit"), [((), 1000, 3), (("--cps", "2.5", "--concurrent", "90"), 2.5, 90)]
)
def test_it_opens_the_declared_connections(ends: Ends, tunables: tuple[str, ...], cps: float, limit: int) -> None:
    client, server = ends(SMALL, *tunables)
    opened = {"port": 8080, "limit": limit, "cont": True, "cps": cps}
    assert {name: client.made_with[name] for name in opened} == opened
    addresses = client.made_with["ip_gen"].made_with
    assert addresses["dist_client"].made_with["ip_range"] == ["198.18.40.8", "198.18.40.15"]
    assert addresses["dist_server"].made_with["ip_range"] == ["198.19.40.9", "198.19.40.9"]
    assert addresses["glob"].made_with == {"ip_offset": "0.0.0.0"}
    assert server.made_with["assoc"].made_with["rules"].made_with == {"port": 8080}


@pytest.mark.parametrize("size", [7, 1280])
def test_requests_and_responses_are_those_of_wrk_and_nginx(ends: Ends, size: int) -> None:
    declared = SMALL.model_copy(update={"object_bytes": size})
    client, server = (end.made_with["program"].calls for end in ends(declared))
    [(_, request), (_, length), _] = client
    [_, (_, answer)] = server
    assert client == [("send", request), ("recv", len(answer)), ("wait_for_peer_close",)]
    assert server == [("recv", len(request)), ("send", answer)]
    assert request.startswith("GET / HTTP/1.1\r\nHost: 198.19.40.9:8080\r\n")
    assert request.endswith("\r\n\r\n")
    head, _, body = answer.partition("\r\n\r\n")
    assert body == "x" * size
    assert len(answer) == NGINX_HEAD - len("512") + len(str(size)) + size
    assert len(answer) <= 1500 - 20 - 32, "it fits one packet, with TCP time stamps"
    for field in (f"Content-Length: {size}", "Connection: close", "Server: nginx"):
        assert field in head.splitlines()
    form = astf_form(declared, length, cps=50, limit=300, repeat=False)
    assert base64.b64decode(form["buf_list"][0]) == request.encode(), "fwlab's own clients send the same"
    names = [command["name"] for command in form["program_list"][0]["commands"]]
    assert names == ["delay", "tx", "rx", "delay"], "it closes by itself: nginx's end comes with the answer"
    assert form["program_list"][0]["commands"][2]["min_bytes"] == length
    own = form["templates"][0]["client_template"]
    assert (own["port"], own["cps"], own["limit"], own["cont"]) == (8080, 50, 300, False)


def test_it_mentions_the_background_traffic() -> None:
    assert "its traffic flood in the background, 2000 packets per second" in astf_profile("lab90-test", "web", SMALL)
    assert "background" not in astf_profile("lab90-test", "web", Connections())


def test_command_prints_the_profile_and_nothing_else() -> None:
    declared = lab_named("lab02-conntrack").traffic["web"].connections
    done = CliRunner().invoke(app, ["astf", "lab02-conntrack", "web"])
    assert (done.exit_code, done.output) == (0, astf_profile("lab02-conntrack", "web", declared))


@pytest.mark.parametrize(
    ("lab", "traffic", "there", "hint"),
    [
        ("lab02-conntrack", "known", "web, web-watched", "fwlab traffic astf lab02-conntrack web"),
        ("lab03-ipset", "flood", "none", "fwlab traffic show lab03-ipset flood"),
    ],
)
def test_packets_are_refused(lab: str, traffic: str, there: str, hint: str) -> None:
    refused = CliRunner().invoke(app, ["astf", lab, traffic]).exception
    assert isinstance(refused, BadInput)
    assert refused.message == f"{lab} {traffic}: not TCP connections; {lab} has: {there}"
    assert refused.hint == hint


_LOAD = """
import json, sys
try:
    from trex.astf.trex_astf_profile import ASTFProfile
except ImportError:
    sys.exit(5)
print(json.dumps(ASTFProfile.load(sys.argv[1], tunables=[]).to_json()))
"""


def test_trexs_own_library_accepts_every_declaration(tmp_path: Path) -> None:
    """In a separate process, because TRex contains its own scapy."""
    project = find_project()
    labs = [load_lab(project, lab) for lab in lab_ids(project)]
    declared = {f"{lab.id} {name}": entry.connections for lab in labs for name, entry in lab.traffic.items()}
    for name, connections in {"lab90-test web": SMALL, **declared}.items():
        if connections is None:
            continue
        lab, traffic = name.split()
        (tmp_path / "connections.py").write_text(astf_profile(lab, traffic, connections))
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", _LOAD, "connections.py"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        if done.returncode == 5:
            pytest.skip("TRex's own library is not installed")
        assert done.returncode == 0, done.stderr
        form = json.loads(done.stdout)
        [template] = form["templates"]
        assert template["client_template"]["limit"] == connections.concurrent
        assert form["ip_gen_dist_list"][1]["ip_start"] == first_address(connections.servers)
        assert form["ip_gen_dist_list"][0]["ip_end"] == str(ipaddress.IPv4Network(connections.clients)[-1])
        length = NGINX_HEAD - len("512") + len(str(connections.object_bytes)) + connections.object_bytes
        own = astf_form(connections, length, cps=CPS, limit=connections.concurrent, repeat=True)
        assert own["templates"][0] == template, "what fwlab sends by itself is the same"
        assert own["ip_gen_dist_list"] == form["ip_gen_dist_list"]
        assert own["buf_list"][0] == form["buf_list"][0]
        assert own["program_list"][0]["commands"][1:3] == form["program_list"][0]["commands"][:2]
