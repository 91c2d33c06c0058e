# SPDX-License-Identifier: GPL-2.0-or-later
"""tc, pf.conf and sysctl files are read as their tools read them, and at a cost that their length explains."""

from __future__ import annotations

from functools import partial

import pytest

from fwlab.model.errors import BadInput
from fwlab.rulesets.kinds import sysctl
from fwlab.rulesets.registry import KINDS
from fwlab.rulesets.render import ruleset_file
from tests.fakes.bounded import said
from tests.fakes.fake_kernel import FakeKernel


def faults(name: str, text: str) -> str:
    try:
        ruleset_file(name, text)
    except BadInput as refused:
        return refused.message
    return ""


# ---- tc -------------------------------------------------------------------------------------------------------

FILTER = "filter add dev eth0 ingress protocol ip"


@pytest.mark.parametrize(
    "rest",
    ["flower src_ip {} action drop", "flower dst_ip {}", "u32 match ip src {}", "pedit munge ip dst set {}"],
)
def test_tc_names_no_host(rest: str) -> None:
    fault = "a.tc:1: the name web.example.org: a ruleset must not ask a name server"
    assert faults("a.tc", f"{FILTER} {rest.format('web.example.org')}\n") == fault
    assert faults("a.tc", f"{FILTER} {rest.format('198.18.0.1')}\n") == ""


def test_tc_names_no_host_of_one_word() -> None:
    for rest in ("flower src_ip localhost", "u32 match ip dst web"):
        assert ": a ruleset must not ask a name server" in faults("a.tc", f"{FILTER} {rest} action drop\n")


@pytest.mark.parametrize(
    "line",
    [
        "qdisc add dev eth0 root tbf rate 1.5mbit burst 10.5kb latency 50ms",
        'filter add dev eth0 ingress basic match "ipset(web.example.org src)" action drop',
        "filter add dev eth0 ingress flow map key dst and 0xff divisor 16",
        f"{FILTER} u32 match ip src 198.18.0.0/24 action pedit munge ip src set 198.18.0.1",
        f"{FILTER} flower src_ip 2001:2::/48 action drop",
    ],
)
def test_other_words_of_tc_are_no_hosts(line: str) -> None:
    assert faults("a.tc", line + "\n") == ""


def test_a_line_of_tc_may_go_on_for_long() -> None:
    assert faults("a.tc", "qdisc add \\\ndev eth0 \\\n\\\n root pfifo # \\\nfilter\n") == (
        "a.tc:5: the tc command filter is not allowed"
    )
    assert "too costly" not in said(partial(ruleset_file, "a.tc", "aaaaaaaa\\\n" * 200_000))


# ---- pf -------------------------------------------------------------------------------------------------------


def test_pf_knows_the_group_of_the_loopback() -> None:
    assert faults("pf.conf", "set skip on lo\nantispoof quick for lo\npass on { vtnet0 lo lo0 }\n") == ""
    for group in ("vtnet", "egress", "lo1"):
        assert faults("pf.conf", f"pass on {group}\n") == f"pf.conf:1: {group} is not one of the DUT's test links"


def test_a_macro_means_the_same_however_often_it_is_used() -> None:
    text = 'if = "vtnet1"\nboth = "{ vtnet0" $if "}"\npass on $both from $nothing any\n'
    assert faults("pf.conf", text) == ""
    assert faults("pf.conf", text.replace("vtnet1", "vtnet2")) == "pf.conf:3: vtnet2 is not one of the DUT's test links"


@pytest.mark.parametrize(
    "text",
    [
        'm = "' + "a " * 30_000 + '"\n' + "pass from $m\n" * 10_000,
        'm = "' + "a" * 60_000 + '"\n' + "pass from $m\n" * 100_000,
        "pass from " + "{ 1 2 } to " * 20_000 + "\n",
        "pass from x." + "a" * 1_000_000 + ".1\n",
        "#" + "\\\n" * 500_000,
    ],
)
def test_a_pf_conf_is_read_quickly(text: str) -> None:
    assert "too costly" not in said(partial(ruleset_file, "pf.conf", text))


def test_macros_have_a_limit() -> None:
    text = 'm = "' + "a " * 30_000 + '"\n' + "pass from $m\n" * 10
    assert faults("pf.conf", text) == "pf.conf:10: macros that stand for more than 512 KiB"


# ---- sysctl ---------------------------------------------------------------------------------------------------

PATTERN = "# mine\n-net.ipv4.conf.*.rp_filter = 1\nnet/ipv6/conf/*/accept_ra=0\n"
DEVICES = ("all", "default", "eth0", "eth1")


def test_a_setting_of_every_device_is_one_of_the_links() -> None:
    file = ruleset_file("a.sysctl", PATTERN)
    names = [f"net.ipv4.conf.{device}.rp_filter" for device in DEVICES]
    assert KINDS["sysctl"].named_in(file.text) == [*names, *(f"net.ipv6.conf.{device}.accept_ra" for device in DEVICES)]
    sent = KINDS["sysctl"].sent(file.text)
    lines = [f"-net.ipv4.conf.{device}.rp_filter = 1" for device in DEVICES]
    assert sent.split("\n")[:5] == ["# mine", *lines]
    assert sent.split("\n")[5:] == [*(f"net/ipv6/conf/{device}/accept_ra=0" for device in DEVICES), ""]


def test_a_setting_of_every_device_is_restored() -> None:
    kernel = FakeKernel()
    paths = [f"/proc/sys/net/ipv4/conf/{device}/rp_filter" for device in DEVICES]
    kernel.files.update(dict.fromkeys(paths, "2\n"))
    loader = sysctl.SysctlLoader(kernel)
    loader.calls("a.sysctl", sysctl.expanded("net.ipv4.conf.*.rp_filter=1\n"), each=False)
    assert list(loader.before) == paths


class KernelView:
    def __init__(self, other: str = "") -> None:
        self.other = other

    def run(self, command: str, *arguments: str) -> str:
        return "0\n" if arguments[0] == self.other else "1\n"


def test_every_device_is_asked_for_its_setting() -> None:
    lines = ["net.ipv4.conf.*.rp_filter = 1"]
    assert sysctl.missing_from_kernel(KernelView(), lines) is None
    assert (
        sysctl.missing_from_kernel(KernelView("net.ipv4.conf.eth1.rp_filter"), lines)
        == "net.ipv4.conf.eth1.rp_filter = 1 (it is 0)"
    )
    assert sysctl.missing_from_kernel(KernelView(), []) is None


@pytest.mark.parametrize(
    "line",
    ["net.ipv4.*.rp_filter=1", "net.ipv4.conf.eth*.rp_filter=1", "net.*=1", "net.ipv4.conf.*=1", "net.ipv4.conf.*.*=1"],
)
def test_other_patterns_are_refused(line: str) -> None:
    assert faults("a.sysctl", line + "\n").endswith("is not a network setting")


def test_what_cannot_be_read_is_not_set_by_a_pattern_either() -> None:
    secret = "net.ipv6.conf.*.stable_secret = 2001:2::1\n"
    assert faults("a.sysctl", secret).endswith("stable_secret cannot be read, so it could not be restored")
