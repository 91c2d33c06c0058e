# SPDX-License-Identifier: GPL-2.0-or-later
"""Files of somebody's own rules: their kinds, and what is wrong with them in one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from fwlab.model.errors import BadInput
from fwlab.own.files import kind_of, own_files

IPTABLES = "*filter\n:FORWARD DROP [0:0]\n[3:180] -A FORWARD -s 192.0.2.1/32 -j ACCEPT\nCOMMIT\n"


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("rules.v4", IPTABLES, "iptables"),
        ("rules.v6", IPTABLES.replace("192.0.2.1/32", "2001:db8::1/128"), "ip6tables"),
        ("ip6tables.save", IPTABLES.replace("-s 192.0.2.1/32 ", ""), "ip6tables"),
        ("nftables.conf", "#!/usr/sbin/nft -f\nflush ruleset\n\ntable inet f {\n}\n", "nft"),
        ("sets", "create s hash:ip family inet\nadd s 192.0.2.1\n", "ipset"),
    ],
)
def test_a_file_is_recognised_by_what_it_says(name: str, text: str, kind: str) -> None:
    assert kind_of(name, text) == kind


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("\n\n", "the file is empty"),
        ("hello\n", "no tool prints rules like these"),
        ("block in all\npass out quick\n", "rules of pf"),
        (IPTABLES.replace("COMMIT\n", ""), "no COMMIT"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "rules").write_text(text)
    with pytest.raises(BadInput, match=says) as error:
        own_files([tmp_path / "rules"])
    assert "\n" not in error.value.message


def test_a_folder_stands_for_its_files(tmp_path: Path) -> None:
    (tmp_path / "a.v4").write_text(IPTABLES)
    (tmp_path / "b.nft").write_text("table inet f {\n}\n")
    assert [(file.name, file.kind) for file in own_files([tmp_path])] == [("a.v4", "iptables"), ("b.nft", "nft")]


def test_what_is_not_there_or_not_text_is_named(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    for name, says in (("none", "No such file"), ("binary", "not text")):
        with pytest.raises(BadInput, match=says):
            own_files([tmp_path / name])
