# SPDX-License-Identifier: GPL-2.0-or-later
"""What a ruleset of each kind may contain: it runs no program, writes no file and leaves nothing behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from fwlab.model.errors import BadInput
from fwlab.rulesets.files import student_ruleset
from fwlab.rulesets.registry import KINDS, in_loading_order
from fwlab.rulesets.render import ruleset_file

ALLOWED = {
    "routes": [
        "route add 198.19.7.0/24 via 198.19.0.2 dev eth1",
        "route replace 198.18.3.9 via 198.18.0.2",
        "route add blackhole 198.19.255.0/24",
        "-6 route add 2001:2:0:1301::/64 via 2001:2:0:13::2 dev eth1 metric 5",
        "route add 2001:2::/48 dev eth1 mtu 1400",
        "-4 route add 198.18.0.0/15 dev eth0  # all of it",
        "\t # a comment",
        "",
    ],
    "ethtool": ["eth0 -K gro off", "eth1 -K tx-checksum-ipv4 on sg on", "eth0 -G rx 512 tx 256", "eth0 -C rx-usecs 10"],
    "xdp-filter": [
        "load eth0 -m native -p allow -f ipv4,udp",
        "load eth1 --mode skb",
        "ip 198.18.1.1 -m src",
        "ip 2001:2::1",
        "port 53 -m dst -p udp",
        "ether 52:54:00:12:00:02 -m src",
    ],
    "tc": [
        "qdisc add dev eth0 clsact",
        "filter add dev eth0 ingress protocol ip prio 1 u32 match ip src 198.18.1.0/24 flowid :1 action drop",
        "filter add dev eth0 ingress protocol ip flower src_ip 198.18.1.1 ip_tos 0x10/0xff action gact drop",
        "filter add dev eth1 egress matchall action police rate 1mbit burst 10kb conform-exceed drop/pipe",
        "class add dev eth1 parent 1: classid 1:1 htb rate 10mbit",
        "actions add action gact drop index 7",
        'filter add dev eth0 ingress protocol ip basic match "ipset(blacklist src)" action drop',
        "filter add dev eth0 ingress protocol ip basic match 'ipset(blacklist src)' action drop",
        "filter add dev eth0 ingress protocol ip flower \\\n  src_ip 198.18.1.1 \\\n  action drop # as in its manual",
    ],
    "ipset": [
        "create blacklist hash:ip family inet hashsize 1024 maxelem 65536",
        "add blacklist 198.18.1.1",
        "add ranges 198.18.1.1-198.18.1.9 -exist",
        "-N old iphash --maxelem 4",
        "COMMIT",
    ],
    "nft": [
        'add table ip t { comment "include nothing" ; }  # include "that"',
        "add set ip t included { type ipv4_addr; }",
    ],
    "ip6tables": ["*raw", "*raw\n-A PREROUTING -s 2001:2::1 -m mac --mac-source 52:54:00:00:00:01 -j DROP\nCOMMIT"],
}


@pytest.mark.parametrize(("kind", "line"), [(kind, line) for kind, lines in ALLOWED.items() for line in lines])
def test_accepted_rulesets(kind: str, line: str) -> None:
    assert ruleset_file(f"rules.{kind}", line + "\n").kind == kind


REFUSED = {
    "routes": [
        "route add default via 198.18.0.2",
        "route add 0.0.0.0/0 dev eth0",
        "route add 10.0.2.0/24 dev eth0",
        "route add 198.0.0.0/8 dev eth0",
        "route add 198.18.0.0/14 dev eth0",
        "route add 198.022.0.1 dev eth0",
        "route add 198.0x12.0.1 dev eth0",
        "route add 198.18 dev eth0",
        "route add 198.18.256.1 dev eth0",
        "route add 2001:2:1::/48 dev eth0",
        "route add 2001::/16 dev eth0",
        "route add 198.18.1.0/24 dev eth2",
        "route add 198.18.1.0/24 via 10.0.2.2",
        "route add 198.18.1.0/24 dev eth0 table local",
        "route add 198.18.1.0/24 dev eth0 proto kernel",
        "route add 198.18.1.0/24 encap bpf in obj x.o dev eth0",
        "route add 198.18.1.0/24 dev",
        "route add",
        "route add local 198.18.1.1 dev eth0",
        "route del 198.18.0.0/16",
        "route flush table all",
        "r a 198.18.1.0/24 dev eth0",
        "-6 rule add to 2001:2::/48 prohibit",
        "-batch /etc/passwd",
        "-force route add 198.18.1.1 dev eth0",
        "link set eth2 down",
        "netns exec x reboot",
        "vrf exec x reboot",
        "'route' add 198.18.1.0/24 dev eth0",
    ],
    "ethtool": [
        "eth2 -K gro off",
        "lo -K gro off",
        "-K eth0 gro off",
        "eth0 -K gro",
        "eth0 -K gro maybe",
        "eth0 -K gro off sg",
        "eth0 -E magic 1",
        "eth0 -f file 1",
        "eth0 -s speed 10",
        "eth0 -G rx all",
        "eth0 -G rx -1",
        "eth0 -G rx 64",
        "eth0 -G rx 512 tx 16",
        "eth0",
        "ethtool -K eth0 gro off",
    ],
    "xdp-filter": [
        "load eth2 -m native",
        "load eth0 -m hw",
        "load eth0 -m native -p allow -f ipv4,quic",
        "load eth0 --dev eth2",
        "load",
        "unload eth0",
        "unload --all",
        "status",
        "poll",
        "ip 198.18.1.1 -m both",
        "ip 198.18.1 -m src",
        "ip fe80::1%eth0",
        "port 0",
        "port 65536",
        "port 53 -p icmp",
        "port 53 -m",
        "ether 52:54:00",
    ],
    "tc": [
        "exec bpf import /tmp/x",
        "filter add dev eth0 ingress bpf obj /tmp/x.o sec y",
        "filter add dev eth0 ingress bpf object-pinned x",
        "filter add dev eth0 ingress bpf bytecode-file x",
        "filter add dev eth0 ingress matchall action bpf obj x.o",
        "filter add dev eth0 ingress matchall action xt -j DROP",
        "filter add dev eth0 ingress matchall object x.o",
        "filter add dev eth0 ingress pinned x",
        "filter add dev eth0 ingress ../../tmp/x match",
        "filter add dev eth0 ingress a/b/c",
        "qdisc add dev eth2 clsact",
        "qdisc add dev lo clsact",
        "filter add dev eth0 ingress matchall action mirred egress redirect d eth2",
        "qdisc show dev eth0",
        "-batch /etc/passwd",
        "monitor",
        'filter add dev eth0 ingress match"all"',
        'filter add dev eth0 ingress "matchall',
        'filter add dev eth0 ingress "matchall action xt" -j DROP',
        'qdisc add dev "eth2" clsact',
        "filter add dev eth0 ingress matchall action x\\\nt",
        "qdisc add dev \\\neth2 clsact",
        "filter add dev eth0 \\ ",
        "qdisc",
    ],
    "ipset": [
        "save -f /etc/passwd",
        "list -file /etc/cron.d/x",
        "restore -file /etc/shadow",
        "add blacklist 198.18.1.1 -f /etc/cron.d/x",
        "add blacklist 198.18.1.1 --file /etc/cron.d/x",
        'add blacklist 198.18.1.1 "-f" /etc/cron.d/x',
        "add blacklist 198.18.1.1 \\-file /etc/cron.d/x",
        "create x hash:ip -o xml",
        "list",
        "-S x",
        "quit",
        "version",
    ],
    "nft": [
        'include "/etc/shadow"',
        'include"/etc/shadow"',
        'add table ip t; include "x"',
        "table ip t { include 'x' }",
        'add table ip t { comment "a" ; } include "x"',
        "monitor",
    ],
    "iptables": ["-A INPUT -m bpf --object-pinned /sys/fs/bpf/x -j DROP", "-A INPUT -m bpf --obj x -j DROP"],
    "ip6tables": ["-A INPUT --modprobe=/bin/sh -j DROP", "-A INPUT -M /bin/sh"],
}


@pytest.mark.parametrize(("kind", "line"), [(kind, line) for kind, lines in REFUSED.items() for line in lines])
def test_refused_rulesets_are_reported_with_the_line(kind: str, line: str) -> None:
    fine = ALLOWED[kind][0] if kind in ALLOWED else "*filter"
    with pytest.raises(BadInput, match=rf"^rules\.{kind}:3: .") as refused:
        ruleset_file(f"rules.{kind}", f"{fine}\n# mine\n{line}\n{fine}\n")
    assert refused.value.hint


@pytest.mark.parametrize("kind", [kind.name for kind in KINDS.values() if kind.suffix[0] == "."])
@pytest.mark.parametrize("character", ["\r", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\0"])
def test_unusual_line_separators_are_refused(kind: str, character: str) -> None:
    """Otherwise a comment to our validation could be an instruction to the tool, or vice versa."""
    with pytest.raises(BadInput, match=rf"^rules\.{kind}:2: a control character"):
        ruleset_file(f"rules.{kind}", f"# one\n# two{character}include\n")


def test_a_string_over_several_lines_hides_no_include() -> None:
    with pytest.raises(BadInput, match=r"(?m)^rules\.nft:4: a ruleset must not include another file$"):
        ruleset_file("rules.nft", 'add table ip t { comment "one\ntwo" ; }\n# "\ninclude "x" # "\n')


def test_settings_are_loaded_last_and_links_first() -> None:
    """Settings of connection tracking exist only once a rule has loaded it. A link that is set up loses its filters."""
    endings = ["sysctl", "nft", "ethtool", "ipset", "iptables", "tc", "xdp-filter", "routes", "ip6tables"]
    names = [f"{'abcdefghi'[place]}.{ending}" for place, ending in enumerate(endings)]
    ordered = [file.name for file in in_loading_order([ruleset_file(name, "") for name in names])]
    assert ordered[0] == "c.ethtool"
    assert ordered[-1] == "a.sysctl"
    assert ordered.index("d.ipset") < ordered.index("e.iptables")


def test_limits_apply_to_all_files_together(tmp_path: Path) -> None:
    """A jump bomb, or sets that fill the memory, split over several files."""
    (tmp_path / "a.nft").write_text("add table ip t\n" + "".join(calls(n) for n in range(4)))
    (tmp_path / "b.nft").write_text("".join(calls(n) for n in range(4, 8)) + "add rule ip t c8 accept\n")
    hooked = "add chain ip t c { type filter hook input priority 0; }\nadd rule ip t c jump c0\n"
    (tmp_path / "c.nft").write_text(hooked)
    with pytest.raises(BadInput, match=r"^a\.nft, b\.nft, c\.nft together: a packet may pass more than 300000 rules"):
        student_ruleset(tmp_path)
    (tmp_path / "b.nft").unlink()
    assert len(student_ruleset(tmp_path)) == 2
    for name in "xyz":
        (tmp_path / f"{name}.ipset").write_text(f"create {name} hash:ip hashsize 16777216\n")
    with pytest.raises(BadInput, match=r"^x\.ipset, y\.ipset, z\.ipset together: the sets take more than 256 MiB"):
        student_ruleset(tmp_path)


def test_files_of_one_table_are_validated_together(tmp_path: Path) -> None:
    """They add up on the DUT, whatever stands behind the table's name."""
    jumps = [f"-A c{number} -j c{number + 1}\n" * 10 for number in range(8)]
    (tmp_path / "a.iptables").write_text(f"*filter\n-A FORWARD -j c0\n{''.join(jumps[:4])}COMMIT\n")
    (tmp_path / "b.iptables").write_text(f"*filter again\n{''.join(jumps[4:])}-A c8 -j DROP\n-N c8\nCOMMIT\n")
    with pytest.raises(BadInput, match=r"^a\.iptables, b\.iptables together: a packet may pass more than 300000 rules"):
        student_ruleset(tmp_path)
    (tmp_path / "b.iptables").write_text((tmp_path / "b.iptables").read_text().replace("filter", "mangle"))
    assert len(student_ruleset(tmp_path)) == 2


def calls(number: int) -> str:
    return f"add rule ip t c{number} jump c{number + 1}\n" * 10
