# SPDX-License-Identifier: GPL-2.0-or-later
"""How a Linux DUT loads each kind of file, what it records before that, and how a reset undoes the file."""

from collections.abc import Iterable
from subprocess import CompletedProcess

import pytest

from fwlab.dut.linux.agent.agent import Agent
from fwlab.dut.linux.agent.rulesets import Rulesets
from fwlab.dut.linux.agent.start_state import StartState
from fwlab.rulesets.kinds.ethtool import EthtoolLoader
from fwlab.rulesets.kinds.rps import RpsLoader
from fwlab.rulesets.registry import KINDS
from tests.fakes.fake_kernel import FakeKernel

NETWORKD = "systemctl stop systemd-networkd.socket systemd-networkd.service"
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


def calls(kernel: FakeKernel, kind: str, text: str) -> list[tuple[list[str], str | None]]:
    return list(KINDS[kind].loader(kernel).calls(f"x.{kind}", text, each=False))


# ---- loading --------------------------------------------------------------------------------------------------


def test_features_are_recorded_as_they_were_requested() -> None:
    kernel = FakeKernel()
    kernel.answers["ethtool -k eth0"] = FEATURES
    loader = EthtoolLoader(kernel)
    loader.calls("x", "eth0 -K gro off\n", each=False)
    assert loader.before["eth0", "-K"] == {
        "tx-checksumming": "off",
        "tx-checksum-ip-generic": "off",
        "scatter-gather": "off",
        "generic-segmentation-offload": "on",
        "generic-receive-offload": "on",
    }


def test_link_settings_are_recorded_once_and_restored() -> None:
    kernel = FakeKernel()
    kernel.answers["ethtool -g eth0"] = RINGS
    loader = EthtoolLoader(kernel)
    planned = loader.calls("x", "# rings\neth0 -G rx 64\neth0 -G tx 32  # small\n", each=False)
    assert planned == [
        (["ethtool", "-G", "eth0", "rx", "64"], None),
        (["ethtool", "-G", "eth0", "tx", "32"], None),
    ]
    assert loader.before == {("eth0", "-G"): {"rx": "512", "tx": "256", "tx-push": "off"}}
    assert kernel.called == ["ethtool -g eth0"]
    kernel.answers["ethtool -g eth0"] = RINGS.replace("512", "64")
    loader.undo(True)
    assert "ethtool -G eth0 rx 512" in kernel.called
    assert not [call for call in kernel.called if call.startswith("ethtool -G eth0 tx")], "it was not changed"
    assert loader.before == {}


QUEUE = "/sys/class/net/{}/queues/rx-{}"


def test_rps_is_off_on_every_queue_after_a_reset_also_if_another_agent_has_set_it() -> None:
    kernel = FakeKernel()
    queues = [QUEUE.format(*queue) for queue in (("eth0", 0), ("eth0", 1), ("eth1", 0))]
    for path in queues:
        kernel.files[path + "/rps_flow_cnt"] = kernel.files[path + "/rps_cpus"] = "0\n"
    loader = RpsLoader(kernel)
    loader.undo(False)
    assert kernel.written == {}
    loader.undo(True)
    assert kernel.written == {f"{path}/{name}": "0\n" for path in queues for name in ("rps_flow_cnt", "rps_cpus")}


PART = """*raw
:PREROUTING {policy} [0:0]
:LIST - [0:0]
-A PREROUTING -j LIST
[5:420] -A LIST -s 198.18.1.{host} -j DROP
COMMIT
"""


@pytest.mark.parametrize("kind", ["iptables", "ip6tables", "iptables-nft"])
def test_files_of_one_table_add_up(kind: str) -> None:
    """The tool would empty the table, and each chain that is declared again. Only a policy to drop is said again."""
    loader = KINDS[kind].loader(FakeKernel())
    tool = loader.tool[0]

    def loaded(policy: str, host: int) -> tuple[list[str], str | None]:
        (call,) = loader.calls(f"{host}.{kind}", PART.format(policy=policy, host=host), each=False)
        return call

    for _ in range(2):  # the same after the ruleset was taken away
        assert loaded("ACCEPT", 1) == ([tool], PART.format(policy="ACCEPT", host=1))
        without = PART.replace(":LIST - [0:0]", "")
        assert loaded("DROP", 2) == ([tool, "--noflush"], without.format(policy="DROP", host=2))
        without = without.replace(":PREROUTING {policy} [0:0]", "")
        assert loaded("ACCEPT", 3) == ([tool, "--noflush"], without.format(host=3))
        loader.undo(True)


def test_files_of_different_tables_replace_nothing() -> None:
    loader = KINDS["iptables"].loader(FakeKernel())
    for table in ("raw", "filter", "mangle"):
        text = f"*{table}\n-N LIST\n-A OUTPUT -j LIST\nCOMMIT\n"
        assert loader.calls("x.iptables", text, each=False) == [(["iptables-legacy-restore"], text)]
    text = "*nat\n-N LIST\nCOMMIT\n*raw\n-N LIST\n-N OTHER\n-A LIST -j OTHER\nCOMMIT\n"
    (call,) = loader.calls("y.iptables", text, each=False)
    assert call == (["iptables-legacy-restore", "--noflush"], text.replace("*raw\n-N LIST\n", "*raw\n\n"))


def test_an_update_empties_the_chains_that_it_declares() -> None:
    loader, text = KINDS["iptables"].loader(FakeKernel()), "*raw\n:LIST - [0:0]\nCOMMIT\n"
    loader.calls("rules.iptables", text, each=False)
    assert loader.calls("update.iptables", text, each=False) == [(["iptables-legacy-restore", "--noflush"], text)]


# ---- undoing --------------------------------------------------------------------------------------------------


def rulesets(kernel: FakeKernel, loaded: Iterable[str] = (), first: bool = False) -> Rulesets:
    """`first`: nothing has been undone yet, so an earlier agent may have left something behind."""
    made = Rulesets(kernel, KINDS)
    if not first:
        made.undo()
        kernel.called.clear()
    made.own |= set(loaded)
    return made


def test_undoing_on_an_untouched_dut_calls_nothing() -> None:
    kernel = FakeKernel()
    kernel.there = ["ip_tables", "x_tables"]
    rulesets(kernel).undo()
    assert kernel.called == []


def test_tables_are_emptied_and_their_policies_restored() -> None:
    kernel = FakeKernel()
    kernel.files["/proc/net/ip6_tables_names"] = "raw\nfilter\n"
    rulesets(kernel).undo()
    assert kernel.fed["ip6tables-legacy-restore"] == (
        "*raw\n:PREROUTING ACCEPT\n:OUTPUT ACCEPT\nCOMMIT\n"
        "*filter\n:INPUT ACCEPT\n:FORWARD ACCEPT\n:OUTPUT ACCEPT\nCOMMIT\n"
    )
    assert "iptables-legacy-restore" not in kernel.fed


def test_what_was_loaded_is_removed() -> None:
    kernel = FakeKernel()
    kernel.there = ["act_gact", "cls_u32"]
    loaded = rulesets(kernel, {"tc", "xdp-filter"})
    loaded.undo()
    assert "xdp-filter unload --all" in kernel.called
    assert "rm -rf /sys/fs/bpf/xdp" in kernel.called
    lines = kernel.fed["tc -force -batch -"].splitlines()
    assert {"qdisc del dev eth0 clsact", "qdisc del dev eth1 root"} <= set(lines)
    assert "tc actions flush action gact" in kernel.called
    assert not loaded.own
    kernel.called.clear()
    loaded.undo()
    assert kernel.called == [], "nothing is left to take away"


@pytest.mark.parametrize(
    ("failing", "called"),
    [(set(), ["ipset destroy"]), ({"ipset destroy"}, ["ipset destroy", "ipset flush", "ipset destroy"])],
)
def test_a_set_that_is_a_member_of_another_set_is_removed(failing: set[str], called: list[str]) -> None:
    kernel = FakeKernel()
    loaded = rulesets(kernel)
    kernel.there, kernel.failing = ["ip_set"], failing
    loaded.undo()
    assert kernel.called == called


def test_rules_are_removed_before_the_sets_that_they_name() -> None:
    kernel = FakeKernel()
    kernel.there = ["nf_tables", "ip_set", "ip_tables"]
    kernel.files["/proc/net/ip_tables_names"] = "raw\n"
    rulesets(kernel, {"tc"}).undo()
    order = [
        kernel.called.index(line) for line in ("tc -force -batch -", "nft flush ruleset", "iptables-legacy-restore")
    ]
    assert order == sorted(order)
    assert order[-1] < kernel.called.index("ipset destroy")


@pytest.mark.parametrize(("loaded", "compared"), [({"sysctl"}, True), ({"nft", "tc"}, False)])
def test_sysctls_are_compared_only_after_a_sysctl_file(loaded: set[str], compared: bool) -> None:
    made = rulesets(FakeKernel(), first=True)
    made.undo()
    assert made.changed_sysctls(), "an agent before may have loaded one"
    made.own |= loaded
    made.undo()
    assert made.changed_sysctls() == compared
    assert not made.changed_sysctls()


# ---- modules --------------------------------------------------------------------------------------------------


class Started(StartState):
    """A DUT that started with these modules and whose network does not change."""

    def recorded(self) -> dict[str, object]:
        return {"modules": ["virtio_net", "x_tables"], "sysctls": {}, "network": {}, "killed": 0}

    def restore(self, *, sysctls_changed: bool, loaded: bool) -> list[str]:
        return []


def agent(kernel: FakeKernel) -> Agent:
    return Agent(kernel, KINDS, Started(kernel))


def test_modules_are_unloaded_in_one_call_the_youngest_first() -> None:
    class Holding(FakeKernel):
        """One module is in use."""

        def call(self, argv: list[str], text: str | None = None) -> CompletedProcess[str]:
            if argv[0] == "rmmod":
                self.there = [name for name in self.there if name not in argv or name == "nfnetlink"]
            return super().call(argv, text)

    kernel = Holding()
    kernel.there = ["xt_set", "ip_set_hash_ip", "ip_set", "nfnetlink", "virtio_net", "x_tables"]
    assert agent(kernel).reset({}) == {"stuck_modules": ["nfnetlink"], "differences": []}
    assert "rmmod xt_set ip_set_hash_ip ip_set nfnetlink" in kernel.called


@pytest.mark.parametrize(
    ("there", "tables", "next_tables", "stays"),
    [
        (["nf_tables", "ip_set", "nft_limit"], "", [], True),
        (["iptable_raw"], "raw\n", ["iptables raw", "iptables filter"], True),
        (["iptable_raw"], "raw\n", ["ip6tables raw"], False),
        (["iptable_raw", "iptable_filter"], "raw\nfilter\n", ["iptables raw"], False),
        (["iptable_raw"], "raw\n", [], False),
        (["nf_tables", "nf_conntrack"], "", [], False),
        (["act_gact"], "", [], False),
    ],
)
def test_modules_stay_only_where_they_cost_nothing(
    there: list[str], tables: str, next_tables: list[str], stays: bool
) -> None:
    """An empty table is a hook that every packet visits, and connections are tracked until their module is unloaded."""
    kernel = FakeKernel()
    kernel.there, kernel.files["/proc/net/ip_tables_names"] = there, tables
    agent(kernel).reset({"next_tables": next_tables})
    assert ("rmmod " + " ".join(there) in kernel.called) == (not stays)


def test_which_tables_cost_every_packet() -> None:
    text = "# *nat\n*raw\nCOMMIT\n*filter\n-A X -j Y\nCOMMIT\n"
    assert KINDS["iptables"].hooks(text) == ["iptables raw", "iptables filter"]
    assert KINDS["ip6tables"].hooks("*raw\nCOMMIT\n") == ["ip6tables raw"]
    assert not KINDS["iptables-nft"].hooks(text)
    assert not KINDS["nft"].hooks("table ip t {\n}\n")
