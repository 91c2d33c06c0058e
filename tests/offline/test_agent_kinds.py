# SPDX-License-Identifier: GPL-2.0-or-later
"""How the DUT's agent loads each kind of file, what it notes before, and how a reset puts that back."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest

from fwlab.dut.linux.agent import counters, links, loading, network_state, start_state
from fwlab.rulesets.kinds.routes import marked
from fwlab.rulesets.registry import KINDS


class FakeTools:
    """Tools that answer what they are told to; `called` has every call, `fed` what went to standard input."""

    def __init__(self) -> None:
        self.called: list[str] = []
        self.fed: dict[str, str] = {}
        self.answers: dict[str, str] = {}
        self.failing: set[str] = set()

    def __call__(self, *argv: str, text: str | None = None) -> SimpleNamespace:
        line = " ".join(argv)
        self.called.append(line)
        if text is not None:
            self.fed[line] = text
        return SimpleNamespace(stdout=self.answers.get(line, ""), returncode=int(line in self.failing))


@pytest.fixture
def tools(monkeypatch: pytest.MonkeyPatch) -> FakeTools:
    found = FakeTools()
    for module in (links, network_state, start_state, counters):
        monkeypatch.setattr(module, "quiet", found)
    monkeypatch.setattr(links, "changed_links", {})
    monkeypatch.setattr(start_state, "changed_sysctls", {})
    for name in ("loaded_kinds", "left_behind", "touched"):
        monkeypatch.setattr(start_state, name, set())
    noted = {"modules": ["virtio_net", "x_tables"], "sysctls": {}, "network": {}, "killed": 0}
    monkeypatch.setattr(start_state, "noted", noted)
    monkeypatch.setattr(start_state, "compare", list)
    return found


FEATURES = """Features for eth0:
rx-checksumming: off [fixed]
tx-checksumming: off
\ttx-checksum-ip-generic: off
scatter-gather: off
generic-segmentation-offload: off [requested on]
generic-receive-offload: on
"""
RINGS = """Ring parameters for eth0:
Pre-set maximums:
RX:\t\t1024
TX:\t\t256
Current hardware settings:
RX:\t\t512
RX Mini:\tn/a
TX:\t\t256
TX Push:\toff
"""


def test_features_are_read_as_they_were_asked_for(tools: FakeTools) -> None:
    tools.answers["ethtool -k eth0"] = FEATURES
    assert links.settings("eth0", "-K") == {
        "tx-checksumming": "off",
        "tx-checksum-ip-generic": "off",
        "scatter-gather": "off",
        "generic-segmentation-offload": "on",
        "generic-receive-offload": "on",
    }


def test_rings_are_read_as_they_are_now(tools: FakeTools) -> None:
    tools.answers["ethtool -g eth0"] = RINGS
    assert links.settings("eth0", "-G") == {"rx": "512", "tx": "256", "tx-push": "off"}


def test_link_settings_are_noted_once_and_put_back(tools: FakeTools) -> None:
    tools.answers["ethtool -g eth0"] = RINGS
    calls = list(links.link_calls("# rings\neth0 -G rx 64\neth0 -G tx 32  # small\n"))
    assert calls == [["ethtool", "-G", "eth0", "rx", "64"], ["ethtool", "-G", "eth0", "tx", "32"]]
    assert tools.called == ["ethtool -g eth0"]
    tools.answers["ethtool -g eth0"] = RINGS.replace("512", "64")
    links.restore_links()
    assert "ethtool -G eth0 rx 512" in tools.called
    assert not [call for call in tools.called if call.startswith("ethtool -G eth0 tx")], "it was not changed"
    assert links.changed_links == {}


def test_every_route_is_marked(tools: FakeTools) -> None:
    text = "# many\nroute add 198.19.7.0/24 dev eth1\n\n -6 route replace 2001:2:0:1301::/64 dev eth1 # one\n"
    ((argv, batch),) = loading.calls("x.routes", "routes", marked(text), each=False)
    assert argv == ["ip", "-batch", "-"]
    assert [" ".join(line.split()) for line in batch.splitlines() if line and not line.startswith("#")] == [
        "route add 198.19.7.0/24 dev eth1 proto 200",
        "route replace 2001:2:0:1301::/64 dev eth1 proto 200",
    ]
    assert "systemctl stop systemd-networkd.socket systemd-networkd.service" in tools.called


def test_xdp_filter_gets_line_by_line(tools: FakeTools) -> None:
    text = "load eth0 -m native\n\n# one\nip 198.18.1.1 -m src\n"
    calls = loading.calls("x.xdp-filter", "xdp-filter", text, each=False)
    assert calls == [
        (["xdp-filter", "load", "eth0", "-m", "native"], None),
        (["xdp-filter", "ip", "198.18.1.1", "-m", "src"], None),
    ]


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """What the kernel holds, as flush() asks for it."""

    def holds(modules: list[str], **files: str) -> None:
        monkeypatch.setattr(start_state, "modules", lambda: modules)

        def read(path: str) -> str:
            name = path.rpartition("/")[2]
            if name not in files:
                raise FileNotFoundError(path)
            return files[name]

        monkeypatch.setattr(start_state, "read", read)
        monkeypatch.setattr(start_state.glob, "glob", lambda _pattern: ["/sys/class/net/eth0", "/sys/class/net/eth1"])

    return holds


def test_flush_of_an_untouched_dut_calls_nothing(tools: FakeTools, kernel: Callable[..., None]) -> None:
    kernel(["ip_tables", "x_tables"])
    start_state.flush()
    assert tools.called == []


def test_tables_are_emptied_and_their_policies_put_back(tools: FakeTools, kernel: Callable[..., None]) -> None:
    kernel([], ip6_tables_names="raw\nfilter\n")
    start_state.flush()
    assert tools.fed == {
        "ip6tables-legacy-restore": "*raw\n:PREROUTING ACCEPT\n:OUTPUT ACCEPT\nCOMMIT\n"
        "*filter\n:INPUT ACCEPT\n:FORWARD ACCEPT\n:OUTPUT ACCEPT\nCOMMIT\n"
    }


def test_what_was_loaded_is_taken_away(tools: FakeTools, kernel: Callable[..., None]) -> None:
    kernel(["act_gact", "cls_u32"])
    start_state.loaded_kinds.update({"tc", "xdp-filter"})
    start_state.flush()
    assert "xdp-filter unload --all" in tools.called
    lines = tools.fed["tc -force -batch -"].splitlines()
    assert {"qdisc del dev eth0 clsact", "qdisc del dev eth1 root"} <= set(lines)
    assert "tc actions flush action gact" in tools.called
    assert not start_state.loaded_kinds
    tools.called.clear()
    start_state.flush()
    assert tools.called == [], "nothing is left to take away"


@pytest.mark.parametrize(
    ("failing", "called"),
    [(set(), ["ipset destroy"]), ({"ipset destroy"}, ["ipset destroy", "ipset flush", "ipset destroy"])],
)
def test_a_set_that_another_set_holds_goes_too(
    tools: FakeTools, kernel: Callable[..., None], failing: set[str], called: list[str]
) -> None:
    kernel(["ip_set"])
    tools.failing = failing
    start_state.flush()
    assert tools.called == called


def test_what_an_agent_before_left_behind_is_taken_away(tools: FakeTools, kernel: Callable[..., None]) -> None:
    kernel([])
    start_state.left_behind.update({"tc", "xdp-filter", "routes"})
    start_state.flush()
    assert tools.called == [
        "tc -force -batch -",
        "xdp-filter unload --all",
        "ip -4 route flush proto 200",
        "ip -6 route flush proto 200",
    ]


def test_modules_go_in_one_call_the_youngest_first(
    tools: FakeTools, kernel: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    there = ["xt_set", "ip_set_hash_ip", "ip_set", "nfnetlink", "virtio_net", "x_tables"]
    kernel(there)

    def rmmod(*argv: str, text: str | None = None) -> SimpleNamespace:
        if argv[0] == "rmmod":
            there[:] = [name for name in there if name not in argv or name == "nfnetlink"]  # one is held on to
        return tools(*argv, text=text)

    monkeypatch.setattr(start_state, "quiet", rmmod)
    assert start_state.reset({}) == {"left": ["module nfnetlink"]}
    assert "rmmod xt_set ip_set_hash_ip ip_set nfnetlink" in tools.called


@pytest.mark.parametrize(
    ("there", "tables", "ahead", "stays"),
    [
        (["nf_tables", "ip_set", "nft_limit"], "", [], True),
        (["iptable_raw"], "raw\n", ["iptables raw", "iptables filter"], True),
        (["iptable_raw"], "raw\n", ["ip6tables raw"], False),
        (["iptable_raw", "iptable_filter"], "raw\nfilter\n", ["iptables raw"], False),
        (["iptable_raw"], "raw\n", [], False),
        (["nf_tables", "nf_conntrack"], "", [], False),
    ],
)
def test_modules_stay_only_where_they_cost_nothing(
    tools: FakeTools, kernel: Callable[..., None], there: list[str], tables: str, ahead: list[str], stays: bool
) -> None:
    """An empty table is a hook that every packet visits; connections are tracked until their module goes."""
    kernel(there, ip_tables_names=tables)
    start_state.reset({"ahead": ahead})
    assert ("rmmod " + " ".join(there) in tools.called) == (not stays)


def test_which_tables_cost_every_packet() -> None:
    text = "# *nat\n*raw\nCOMMIT\n*filter\n-A X -j Y\nCOMMIT\n"
    assert KINDS["iptables"].hooks(text) == ["iptables raw", "iptables filter"]
    assert KINDS["ip6tables"].hooks("*raw\nCOMMIT\n") == ["ip6tables raw"]
    assert not KINDS["iptables-nft"].hooks(text)
    assert not KINDS["nft"].hooks("table ip t {\n}\n")


# ---- connections ----------------------------------------------------------------------------------------------

SLABINFO = """slabinfo - version: 2.1
# name            <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab> : tunables <l> <b> <s> : slabdata
nf_conntrack_expect      0      0    208   19    1 : tunables    0    0    0 : slabdata      0      0      0
nf_conntrack       1000   1008    256   16    1 : tunables    0    0    0 : slabdata     63     63      0
"""


def test_memory_of_the_connection_table() -> None:
    assert counters.slabs(SLABINFO, "nf_conntrack") == (256, 63 * 4096)
    assert counters.slabs(SLABINFO, "nf_conn") == (0, 0)


def test_a_dut_that_tracks_nothing_holds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counters, "modules", lambda: ["x_tables"])
    assert set(counters.states({}).values()) == {0}


def test_buckets_take_whole_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    files = {f"nf_conntrack_{name}": number for name, number in (("count", "7"), ("max", "1000"), ("buckets", "1000"))}
    files["slabinfo"] = SLABINFO
    monkeypatch.setattr(counters, "modules", lambda: ["nf_conntrack"])
    monkeypatch.setattr(counters, "read", lambda path: files[path.rpartition("/")[2]])
    found = counters.states({})
    assert (found["held"], found["most"], found["buckets"], found["bucket_bytes"]) == (7, 1000, 1000, 8192)
