# SPDX-License-Identifier: GPL-2.0-or-later
"""iptables files are read as iptables-restore reads them: counters, blanks, quotes, abbreviated options."""

from __future__ import annotations

from functools import partial

import pytest

from fwlab.model.errors import BadInput
from fwlab.rulesets.kinds import iptables
from fwlab.rulesets.kinds.iptables_lines import words
from fwlab.rulesets.render import ruleset_file
from tests.fakes.bounded import said

COMMANDS = [
    "[0:0] -A {}",
    "[12:3456]-A {}",
    "  -A {}",
    "\t-I {} 1",
    "-I{}",
    "-D {} 1",
    "-R {} 1",
    "-F {}",
    "--append {}",
    "--app {}",
    "--append={}",
    "--rep {} 1",
    "--ins {}",
    "-vA {}",
    '-A "{}"',
    '"-A" {}',
    '-A"{}"',
    "-j ACCEPT -A {}",
    '-m comment --comment "-A OUTPUT" -A {}',
    "-m comment --comment -AOUTPUT -A {}",
]


def faults(text: str, name: str = "a.iptables") -> str:
    try:
        ruleset_file(name, text)
    except BadInput as refused:
        return refused.message
    return ""


@pytest.mark.parametrize("ending", ["iptables", "ip6tables", "iptables-nft"])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_chain_that_the_table_lacks_in_any_form(command: str, ending: str) -> None:
    wrong, right = command.format("FORWARD"), command.format("PREROUTING")
    assert faults(f"*raw\n{wrong} -s 198.18.0.1\nCOMMIT\n", f"a.{ending}").endswith(
        "the table raw has no chain FORWARD"
    )
    assert faults(f"*raw\n{right}\nCOMMIT\n", f"a.{ending}") == ""
    assert faults(f"# mine\n{right}\n", f"a.{ending}") == f"a.{ending}:2: a rule outside of a table"


@pytest.mark.parametrize(
    "text",
    [
        "*raw\n:FORWARD - [0:0]\n-A FORWARD -j DROP\nCOMMIT\n",
        "*raw\n-N FORWARD\n-A FORWARD -j DROP\nCOMMIT\n",
        "*raw\n-6 -A FORWARD -s 2001:2::1\nCOMMIT\n",
        "*raw\n-6A FORWARD -s 2001:2::1\nCOMMIT\n",
        "*raw\n#-A FORWARD\nCOMMIT\n",
        '*raw\n-A PREROUTING -m comment --comment "FORWARD" -j DROP\nCOMMIT\n*filter\n-A FORWARD -j DROP\nCOMMIT\n',
    ],
)
def test_a_chain_that_is_there_or_is_not_asked(text: str) -> None:
    assert faults(text) == ""


def test_a_line_of_the_own_family_is_read() -> None:
    assert faults("*raw\n-4 -A FORWARD\nCOMMIT\n").endswith("no chain FORWARD")
    assert faults("*raw\n-6 -A FORWARD\nCOMMIT\n", "a.ip6tables").endswith("no chain FORWARD")
    assert faults("*raw\n-4 -A FORWARD\nCOMMIT\n", "a.ip6tables") == ""


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


# ---- names of hosts -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["web.example.org", "web-1.example.org.", "localhost", "web"])
@pytest.mark.parametrize(
    "options",
    [
        "-s {}",
        "! -s {}",
        "--source {}",
        "--src={}",
        "--so {}",
        "-d {}/24",
        "--dst 198.18.0.1,{}",
        '--destination "{}"',
        "-4d {}",
        "-m conntrack --ctorigsrc {}",
        "-j DNAT --to-destination {}:80",
    ],
)
def test_a_name_of_a_host_is_refused(options: str, name: str) -> None:
    text = f"*filter\n-A FORWARD {options.format(name)}\nCOMMIT\n"
    assert faults(text) == f"a.iptables:2: the name {name}: a ruleset must not ask a name server"


@pytest.mark.parametrize(
    "options",
    [
        "-s 198.18.0.1/24,198.18.7.0/255.255.255.0",
        "-d 10",
        "-m iprange --src-range 198.18.0.1-198.18.0.9",
        "-m string --algo bm --string web.example.org --to 100",
        '-m comment --comment "-s web.example.org"',
        "-m comment --comment -sweb",
        "-m set --match-set web.example.org src",
        "-i lan.home -o lan+ -p tcp --dport http -j web.example.org",
        "-m addrtype --src-type LOCAL --dst-type UNICAST",
        "-j DNAT --to-destination 198.18.0.1-198.18.0.9:80-90",
        "-j REDIRECT --to-ports 8080",
        "-j LOG --log-prefix see.example.org",
    ],
)
def test_another_name_is_none_of_a_host(options: str) -> None:
    assert faults(f"*nat\n:web.example.org - [0:0]\n-A PREROUTING {options}\nCOMMIT\n") == ""


def test_addresses_of_ipv6() -> None:
    assert faults("*filter\n-A FORWARD -s 2001:2::/48 -d dead::beef\nCOMMIT\n", "a.ip6tables") == ""
    assert ": the name dead.beef: " in faults("*filter\n-A FORWARD -s dead.beef\nCOMMIT\n", "a.ip6tables")


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
    assert faults("*raw\n" + f"{rule}\n" * most) == ""
    message = "the rules take more than 1 MiB of the DUT's memory"
    assert faults("*raw\n" + f"{rule}\n" * (most + 1)) == f"a.iptables:{most + 2}: {message}"


@pytest.mark.parametrize("line", ['"' * 9000, "\\" * 4500 + '"' + "\\" * 4500, "-A a " * 1800, "- " * 4500])
def test_odd_lines_are_read_quickly(line: str) -> None:
    assert "too costly" not in said(partial(ruleset_file, "a.iptables", "*raw\n" + f"{line}\n" * 300))
