# SPDX-License-Identifier: GPL-2.0-or-later
"""ipset: what entries take, what costs nothing, and names of hosts."""

from __future__ import annotations

import pytest

from fwlab.model.errors import BadInput
from fwlab.rulesets.render import ruleset_file

FULL = "the sets take more than 256 MiB of the DUT's memory"


def faults(text: str) -> str:
    try:
        ruleset_file("a.ipset", text)
    except BadInput as refused:
        return refused.message
    return ""


@pytest.mark.parametrize("most", [65536, 4_194_305, 10_000_000, 4_000_000_000])
def test_a_large_maxelem_takes_no_memory(most: int) -> None:
    assert faults(f"create customers hash:ip maxelem {most}\nadd customers 198.18.0.1\n") == ""


def test_what_is_added_takes_memory_whatever_the_set_may_hold() -> None:
    assert faults("create a hash:ip maxelem 10000000\nadd a 10.0.0.0-10.63.0.0\n") == ""
    assert faults("create a hash:ip maxelem 10000000\nadd a 10.0.0.0-10.64.0.0\n") == f"a.ipset:2: {FULL}"
    assert faults("create a hash:ip\nadd a 10.0.0.0/8\n") == "", "the kernel stops at 65536 entries"
    assert faults("add elsewhere 10.0.0.0/8\n") == f"a.ipset:1: {FULL}"


def test_each_entry_has_its_comment() -> None:
    create = "create a hash:ip comment maxelem 10000000\n"
    assert faults(f'{create}add a 10.0.0.0/10 comment "{"x" * 4}"\n') == f"a.ipset:2: {FULL}"
    assert faults(f'{create}add a 10.0.0.0/12 comment "{"x" * 100}"\n') == ""
    assert faults(f'{create}add a 10.0.0.0/12 comment "{"x" * 200}"\n') == f"a.ipset:2: {FULL}"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("web.example.org", "create a hash:ip\nadd a web.example.org\n"),
        ("web", "create a hash:ip\n-exist add a web\n"),
        ("localhost", "create a hash:net\nadd a localhost/24\n"),
        ("web", "-N a iphash\n-A a web\n"),
        ("web.example.org", "create a hash:ip,port\nadd a web.example.org,tcp:80\n"),
        ("web", "create a hash:ip,port,net\nadd a 198.18.0.1,tcp:80,web\n"),
        ("web.example.org", "create a hash:net,iface\nadd a web.example.org,eth0\n"),
        ("my-web.example.org", "create a hash:ip\nadd a [my-web.example.org]\n"),
        ("web.example.org", "create a hash:ip\ndel a web.example.org\n"),
        ("web.example.org", "add elsewhere web.example.org\n"),
        ("web.example.org", "create a bitmap:ip range web.example.org/24\n"),
    ],
)
def test_a_name_of_a_host_is_refused(name: str, text: str) -> None:
    assert f": the name {name}: a ruleset must not ask a name server" in faults(text)


@pytest.mark.parametrize(
    "text",
    [
        "create web.example.org hash:ip\nadd web.example.org 198.18.0.1-198.18.0.9\n",
        "create a hash:net,iface\nadd a 198.18.0.0/24,lan.home\n",
        "create a hash:ip,port family inet6\nadd a 2001:2::1,tcp:http\n",
        "create a bitmap:port range http-https\nadd a http\n",
        "create a hash:mac\nadd a 00:11:22:33:44:55\n",
        "create b hash:ip\ncreate a list:set\nadd a b\n",
        "create a hash:ip,mark\nadd a 198.18.0.1,0xff\n",
        'create a hash:ip comment\nadd a 198.18.0.1 comment "web.example.org"\n',
        "create a hash:ip timeout 60\nadd a 198.18.0.0/30 timeout 5\n",
        "swap web.example.org a.b\n",
    ],
)
def test_another_name_is_none_of_a_host(text: str) -> None:
    assert faults(text) == ""
