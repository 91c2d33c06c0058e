# SPDX-License-Identifier: GPL-2.0-or-later
"""How files are read: words and statements, several files together, and at a cost that their length explains.

What each kind accepts and refuses: tests/contract/kinds.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from fwlab.checkout.project import Project, load_topology
from fwlab.grading.confined import Send, run_confined
from fwlab.model.errors import BadInput
from fwlab.rulesets.files import render, ruleset_file, student_ruleset
from fwlab.rulesets.kinds import iptables, sysctl
from fwlab.rulesets.kinds.iptables import words
from fwlab.rulesets.kinds.nft import declared_tables
from fwlab.rulesets.kinds.pf import _expanded_rules, statements, validate
from fwlab.rulesets.registry import KINDS
from tests import ROOT
from tests.contract.kinds.nft import HOOK, INGRESS
from tests.fakes.fake_kernel import FakeKernel

# ---- words and statements -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ('-A  X\t-j "A B"C', ["-A", "X", "-j", "A B", "C"]),
        ('-A"X" -j D"RO\\"P"', ["-AX", "-j", 'DRO"P']),
        ('--comment "" -j \\x', ["--comment", "", "-j", "\\x"]),
        ('--comment "a b', ["--comment", "a b"]),
        ('"a\\', ["a"]),
        ("-A X\u00a0Y", ["-A", "X\u00a0Y"]),
    ],
)
def test_words(line: str, found: list[str]) -> None:
    assert words(line) == found


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("pass all # comment \\\n still\nblock", [["pass", "all"], ["block"]]),
        ("pass \\\n all\n", [["pass", "all"]]),
        ("pass from {\n a\n b }\nblock\n", [["pass", "from", "{", "a", "b", "}"], ["block"]]),
        ('anchor "a" {\npass\n}\nblock\n', [["anchor", "a", "{"], ["pass"], ["}"], ["block"]]),
        ("anchor a on {\nb }\n", [["anchor", "a", "on", "{", "b", "}"]]),
        ("x = a\npass $x $y\n", [["x", "=", "a"], ["pass", "a"]]),
        ("x = a b\ny = $x c\npass $y\n", [["x", "=", "a", "b"], ["y", "=", "a", "b", "c"], ["pass", "a", "b", "c"]]),
        ("x = '{ a }'\npass $x\n", [["x", "=", "{ a }"], ["pass", "{", "a", "}"]]),
        ("x = a\nx = b\npass $x\n", [["x", "=", "a"], ["x", "=", "b"], ["pass", "b"]]),
        ("label 'one\ntwo'", [["label", "onetwo"]]),
        ("pass it's port!=1", [["pass", "it's", "port", "!", "=", "1"]]),
        ("pass(a)<b>c#d", [["pass", "(", "a", ")", "<", "b", ">", "c"]]),
    ],
)
def test_how_pfctl_reads(text: str, read: list[list[str]]) -> None:
    assert [[token.text for token in statement] for statement in statements(text)] == read


@pytest.mark.parametrize(
    ("rule", "count"),
    [
        ("pass", 1),
        ("pass from { 1.1.1.1, 1.1.1.2 }", 2),
        ("pass on { vtnet0 vtnet1 } proto { tcp udp } from { <a>, 10.0.0.0/8, !1.1.1.1 } to port { 1, 2 >< 5 }", 24),
        ("table <a> { 1.1.1.1 1.1.1.2 }", 0),
        ("set skip on { lo0 vtnet1 }", 0),
    ],
)
def test_rules_that_lists_make(rule: str, count: int) -> None:
    assert _expanded_rules(next(statements(rule))) == count


@pytest.mark.parametrize(
    ("text", "tables", "rules"),
    [
        ("table t { chain c { drop; accept } }", {"ip t"}, {"ip t": 2}),
        ("table inet t {\n set s { type ipv4_addr; elements = { 1.1.1.1, 2.2.2.2 } }\n}", {"inet t"}, {}),
        ("table t {\n chain c {\n  ip saddr {\n 1.1.1.1,\n 2.2.2.2\n } drop\n  accept\n }\n}", {"ip t"}, {"ip t": 2}),
        ('table t {\n chain c {\n  comment "a {"; policy drop;\n  counter comment "; {"\n }\n}', {"ip t"}, {"ip t": 1}),
        ("add table t\nadd chain t c { type filter hook input priority 0; }\nadd rule t c drop", {"ip t"}, {"ip t": 1}),
        ("add table t\nadd rule t c ip saddr { 1.1.1.1 } \\\n drop\ninsert rule t c accept", {"ip t"}, {"ip t": 2}),
        ("table t { chain c { drop } }\nflush ruleset\ntable ip6 u { chain c { drop } }", {"ip6 u"}, {"ip6 u": 1}),
        ("table t {}\ntable ip6 u {}\nflush ruleset ip6\n", {"ip t"}, {}),
        ("table t {}\ndelete table t\n", set(), {}),
        ("table t { chain c { drop } }\ndelete rule t c handle 4\n", {"ip t"}, {}),
        ("define x = 1.1.1.1\nadd element t s { $x }\n# table u {}\n", set(), {}),
        ("}}}{{{ table", set(), {}),
        ('table t { chain c { log prefix "', set(), {}),
    ],
)
def test_contents_of_an_nft_file(text: str, tables: set[str], rules: dict[str, int]) -> None:
    found, counted = declared_tables(text)
    assert {" ".join(table) for table in found} == tables
    assert {" ".join(table): count for table, count in counted.items() if count} == rules


def test_a_sweep_is_rendered_from_a_template() -> None:
    """As many rules as the case asks for, none of which pfctl can join with its neighbour."""
    topology = load_topology(Project(ROOT))
    text = "{% for address in addresses(rules) %}\nblock in quick on vtnet0 from {{ address }}\n{% endfor %}\npass\n"
    made = render("pf.conf.j2", text, {"rules": 1000}, topology)
    assert [made.count("block in quick"), made.splitlines()[1]] == [1000, "block in quick on vtnet0 from 10.0.0.3"]
    assert ruleset_file("pf.conf", made).text == made


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


def test_a_setting_that_the_kernel_may_lack_is_left_out_where_it_does() -> None:
    kernel = FakeKernel()
    kernel.files["/proc/sys/net/core/somaxconn"] = "4096\n"
    text = "; both\n -net.core.no_such = 1\n-net.core.somaxconn = 1\nnet.core.unknown = 1\n"
    calls = sysctl.SysctlLoader(kernel).calls("a.sysctl", text, each=False)
    assert [sent for _, sent in calls] == ["; both\n-net.core.somaxconn = 1\nnet.core.unknown = 1\n"]


# ---- several files --------------------------------------------------------------------------------------------


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


# ---- memory and time ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "bytes_taken"),
    [
        ("-A PREROUTING -m u32 --u32 0=0 -j DROP", 2272),
        ("-A PREROUTING" + " -m comment --comment x" * 40, 11_776),
        ("-A PREROUTING --match=cgroup --path x", 4416),
        ("-A PREROUTING -mudp -j DROP", 384),
        ("-N c", 256),
        (":c - [0:0]", 256),
        ("-A out -s 198.18.0.1 -j DROP", 256),
    ],
)
def test_matches_rules_and_chains_count_in_the_memory(
    rule: str, bytes_taken: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(iptables, "MAX_BYTES", 1 << 20)
    most = (1 << 20) // bytes_taken
    ruleset_file("a.iptables", "*raw\n" + f"{rule}\n" * most)
    message = f"a.iptables:{most + 2}: the rules take more than 1 MiB of the DUT's memory"
    with pytest.raises(BadInput, match=message):
        ruleset_file("a.iptables", "*raw\n" + f"{rule}\n" * (most + 1))


MANY = 5_000


HEAD = "table ip t {\n chain c { type filter hook forward priority 0;\n"


COSTLY_NFT = {
    "words in jumps": "define a = " + " ".join(f"c{n}" for n in range(MANY)) + "\n" + HEAD + " jump $a\n" * MANY,
    "verdicts in maps": "define a = { "
    + ", ".join(f"{n} : jump c{n}" for n in range(MANY))
    + " }\n"
    + HEAD
    + " tcp dport vmap $a\n" * MANY,
    "definitions without end": "device define a={" * MANY,
    "sets in a rule": HEAD + "jump x" + " { 1 }" * 10 * MANY,
    "braces": HEAD + "jump x" + "{" * 5 * MANY,
    "variables of variables": "".join(f"define a{n + 1} = {{ $a{n}, eth0 }}\n" for n in range(MANY))
    + "table netdev t {\n"
    + "".join(f"chain c{n} {{ {HOOK} devices = $a{MANY - n} priority 0; }}\n" for n in range(MANY)),
    "a map asked often": INGRESS
    + "fwd to meta mark map @m\n" * MANY
    + "}\n map m { type mark : ifname; elements = { "
    + ", ".join(f"{n} : eth0" for n in range(MANY)),
    "a word of a megabyte": HEAD + "ip saddr " + "a" * 1_000_000 + " jump " + "1." * 500_000,
    "blanks behind a sign": "jump $" + " " * 1_000_000,
    "colons": "jump x " + "a:" * 500_000,
}
COSTLY = [
    *(("a.nft", text) for text in COSTLY_NFT.values()),
    *(
        ("a.iptables", "*raw\n" + f"{line}\n" * 150)
        for line in ('"' * 9000, "\\" * 4500 + '"' + "\\" * 4500, "-A a " * 1800, "- " * 4500)
    ),
    ("a.tc", "aaaaaaaa\\\n" * 200_000),
    ("pf.conf", 'm = "' + "a " * 15_000 + '"\n' + "pass from $m\n" * 5_000),
    ("pf.conf", 'm = "' + "a" * 60_000 + '"\n' + "pass from $m\n" * 20_000),
    ("pf.conf", "pass from " + "{ 1 2 } to " * 20_000 + "\n"),
    ("pf.conf", "pass from x." + "a" * 1_000_000 + ".1\n"),
    ("pf.conf", "#" + "\\\n" * 500_000),
]


def said(name: str, text: str) -> str:
    """What is wrong with the file, "" if nothing is. Reading it may cost what a student's files may."""

    def read(send: Send) -> None:
        try:
            ruleset_file(name, text)
            send("")
        except BadInput as error:
            send(error.message)

    report = run_confined(read)
    assert (report.limit, report.bug) == (None, None)
    [message] = report.values
    return str(message)


@pytest.mark.parametrize(("name", "text"), COSTLY, ids=[f"{name} {place}" for place, (name, _) in enumerate(COSTLY)])
def test_a_small_file_is_read_quickly(name: str, text: str) -> None:
    """Each took minutes or gigabytes, or would have if it were ten times as long."""
    said(name, text)


def test_a_variable_of_many_verdicts_in_many_tables_is_too_much() -> None:
    verdicts = "define a = { " + ", ".join(f"{n} : jump c{n}" for n in range(2000)) + " }\n"
    tables = "".join(f"table ip t{n} {{\n chain c {{ tcp dport vmap $a; }}\n}}\n" for n in range(600))
    assert said("a.nft", verdicts + tables).startswith("a.nft:1: chains and verdict maps branch")


def test_a_table_of_a_hundred_thousand_addresses_is_validated_in_seconds() -> None:
    addresses = [f"  10.{n >> 16}.{n >> 8 & 255}.{n & 255}" for n in range(0, 200_000, 2)]
    began = time.process_time()
    assert list(validate(["table <listed> const {", *addresses, "}", "block in from <listed>"])) == []
    assert time.process_time() - began < 20
