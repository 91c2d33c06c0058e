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


def profile_of(text: str, tunables: list[str], monkeypatch: pytest.MonkeyPatch) -> Noted:
    api = types.ModuleType("trex.astf.api")
    api.__getattr__ = lambda name: type(name, (Noted,), {})
    for name in ("trex", "trex.astf"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setitem(sys.modules, "trex.astf.api", api)
    module: dict[str, Any] = {}
    exec(compile(text, "profile.py", "exec"), module)
    return module["register"]().get_profile(tunables)


def ends_of(profile: Noted) -> tuple[Noted, Noted]:
    template = profile.made_with["templates"]
    return template.made_with["client_template"], template.made_with["server_template"]


def test_it_opens_the_declared_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    client, server = ends_of(profile_of(astf_profile("lab90-test", "web", SMALL), [], monkeypatch))
    assert {name: client.made_with[name] for name in ("port", "limit", "cont", "cps")} == {
        "port": 8080,
        "limit": 3,
        "cont": True,
        "cps": 1000,
    }
    addresses = client.made_with["ip_gen"].made_with
    assert addresses["dist_client"].made_with["ip_range"] == ["198.18.40.8", "198.18.40.15"]
    assert addresses["dist_server"].made_with["ip_range"] == ["198.19.40.9", "198.19.40.9"]
    assert addresses["glob"].made_with == {"ip_offset": "0.0.0.0"}
    assert server.made_with["assoc"].made_with["rules"].made_with == {"port": 8080}


def test_requests_and_responses_are_those_of_wrk_and_nginx(monkeypatch: pytest.MonkeyPatch) -> None:
    client, server = (
        end.made_with["program"].calls
        for end in ends_of(profile_of(astf_profile("lab90-test", "web", SMALL), [], monkeypatch))
    )
    [(_, request)] = [call for call in client if call[0] == "send"]
    [(_, answer)] = [call for call in server if call[0] == "send"]
    assert client == [("send", request), ("recv", len(answer)), ("wait_for_peer_close",)]
    assert server == [("recv", len(request)), ("send", answer)]
    assert request.startswith("GET / HTTP/1.1\r\nHost: 198.19.40.9:8080\r\n")
    assert request.endswith("\r\n\r\n")
    head, _, body = answer.partition("\r\n\r\n")
    assert body == "x" * 7
    assert len(answer) - len(str(len(body))) == NGINX_HEAD - len("512") + len(body)
    assert "Content-Length: 7" in head
    assert "Connection: close" in head
    assert "Server: nginx\r\n" in head


def test_the_longest_response_fits_one_packet(monkeypatch: pytest.MonkeyPatch) -> None:
    """With an MTU of 1500 and TCP timestamps."""
    text = astf_profile("lab90-test", "web", Connections(object_bytes=1280))
    _, server = ends_of(profile_of(text, [], monkeypatch))
    [answer] = [call[1] for call in server.made_with["program"].calls if call[0] == "send"]
    assert len(answer) <= 1500 - 20 - 32


def test_tunables_change_rate_and_number(monkeypatch: pytest.MonkeyPatch) -> None:
    text = astf_profile("lab90-test", "web", SMALL)
    client, _ = ends_of(profile_of(text, ["--cps", "2.5", "--concurrent", "90"], monkeypatch))
    assert (client.made_with["cps"], client.made_with["limit"]) == (2.5, 90)


def test_fwlabs_own_clients_send_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    client, _ = ends_of(profile_of(astf_profile("lab90-test", "web", SMALL), [], monkeypatch))
    [(_, request), (_, length), _] = client.made_with["program"].calls
    form = astf_form(SMALL, length, cps=50, limit=300, repeat=False)
    assert base64.b64decode(form["buf_list"][0]) == request.encode()
    names = [command["name"] for command in form["program_list"][0]["commands"]]
    assert names == ["delay", "tx", "rx", "delay"], "it closes by itself: nginx's end comes with the answer"
    assert form["program_list"][0]["commands"][2]["min_bytes"] == length
    own = form["templates"][0]["client_template"]
    assert (own["port"], own["cps"], own["limit"], own["cont"]) == (8080, 50, 300, False)


def test_it_mentions_the_background_traffic() -> None:
    assert "its traffic flood in the background, 2000 packets per second" in astf_profile("lab90-test", "web", SMALL)
    assert "beside" not in astf_profile("lab90-test", "web", Connections())


def test_command_prints_the_profile_and_nothing_else() -> None:
    declared = lab_named("lab02-conntrack").traffic["web"].connections
    done = CliRunner().invoke(app, ["astf", "lab02-conntrack", "web"])
    assert (done.exit_code, done.output) == (0, astf_profile("lab02-conntrack", "web", declared))


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (
            ["lab02-conntrack", "known"],
            "lab02-conntrack known: not TCP connections; lab02-conntrack has: web, web-watched",
            "fwlab traffic astf lab02-conntrack web",
        ),
        (
            ["lab03-ipset", "flood"],
            "lab03-ipset flood: not TCP connections; lab03-ipset has: none",
            "fwlab traffic show lab03-ipset flood",
        ),
    ],
)
def test_packets_are_refused(words: list[str], message: str, hint: str) -> None:
    refused = CliRunner().invoke(app, ["astf", *words]).exception
    assert isinstance(refused, BadInput)
    assert (refused.message, refused.hint) == (message, hint)


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
