# SPDX-License-Identifier: GPL-2.0-or-later
"""Submitted files are read as they are, never rendered and never executed. Odd ones are refused by name."""

import json
import os
import socket
from pathlib import Path
from types import SimpleNamespace

import pytest

from fwlab.measure.plan import work_spec
from fwlab.model.errors import BadInput
from fwlab.rulesets import files
from fwlab.rulesets.files import (
    MAX_FILES,
    MAX_NAMED,
    lab_ruleset,
    not_loaded,
    render,
    ruleset_file,
    student_ruleset,
    with_reasons,
)
from tests.checkout import TOPOLOGY

CONTROL = r"a control character ('\r')"
RULES = "*raw\n-A PREROUTING -s 198.18.20.66 -j DROP\nCOMMIT\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A student's folder of one exercise."""
    made = tmp_path / "ada" / "ex1-block"
    made.mkdir(parents=True)
    return made


# ---- one folder -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "{{ 7*7 }}\n",
        "{% for i in range(9) %}x{% endfor %}\n",
        "{{ ''.__class__.__mro__ }}\n",
        "# {# gone? #}\n",
        "a\n\n\n",
    ],
)
def test_template_syntax_reaches_the_tool_unchanged(folder: Path, setting: SimpleNamespace, text: str) -> None:
    (folder / "rules.nft").write_text(text)
    (exercise,) = setting.lab.exercises
    (file,) = work_spec(setting, exercise, folder).files
    assert (file.name, file.kind, file.text) == ("rules.nft", "nft", text)


def test_a_template_in_a_submission_is_not_loaded(folder: Path) -> None:
    (folder / "rules.nft.j2").write_text("{{ 7*7 }}\n")
    assert student_ruleset(folder) == []
    assert not_loaded(folder) == ["rules.nft.j2"]


#: What students hand in beside rulesets, and why it is not loaded.
BESIDE = {
    "#rules.iptables#": "a backup",
    "rules.iptables.bak": "a backup",
    "rules.iptables.orig": "a backup",
    "rules.iptables~": "a backup",
    ".rules.iptables.swp": "hidden: it begins with a dot",
    "Makefile": "no tool loads a file without a suffix",
    "RULES.NFT": "no tool loads *.NFT; nft loads *.nft",
    "rules.ntf": "no tool loads *.ntf; nft loads *.nft",
    "set.ips": "no tool loads *.ips; ipset loads *.ipset",
    "iptables-save.txt": "no tool loads *.txt; iptables-legacy-restore loads *.iptables",
    "rules.iptables-nft.txt": "no tool loads *.txt; iptables-nft-restore loads *.iptables-nft",
    "my-pf.conf": "no tool loads *.conf; pf loads pf.conf",
    "nftables.conf": "no tool loads *.conf; nft loads *.nft",
    "run.sh": "no tool loads *.sh",
}


@pytest.mark.parametrize(("name", "why"), BESIDE.items())
def test_what_no_tool_loads_is_named(folder: Path, setting: SimpleNamespace, name: str, why: str) -> None:
    """With a ruleset, a remark names it; alone, it fails the exercise."""
    (folder / name).write_text("echo\n")
    (exercise,) = setting.lab.exercises
    with pytest.raises(BadInput) as refused:
        work_spec(setting, exercise, folder)
    assert refused.value.message == f"ex1-block has nothing to load: {name} ({why})"
    assert "*.iptables *.ip6tables" in refused.value.hint
    (folder / "rules.iptables").write_text(RULES)
    spec = work_spec(setting, exercise, folder)
    assert [file.name for file in spec.files] == ["rules.iptables"]
    assert spec.remarks == [f"Not loaded: {name} ({why})."]


def test_files_that_fill_one_table_are_told(folder: Path, setting: SimpleNamespace) -> None:
    exercise = setting.lab.exercises[0]
    (folder / "a.iptables").write_text(RULES)
    (folder / "b.iptables").write_text(f"{RULES}*filter\nCOMMIT\n")
    (folder / "c.ip6tables").write_text("*raw\nCOMMIT\n")
    (folder / "update.iptables").write_text(RULES)  # is meant to
    assert work_spec(setting, exercise, folder).remarks == [
        "a.iptables and b.iptables add up in the table raw, in this order."
    ]
    (folder / "b.iptables").write_text(f"{RULES}{RULES}".replace("raw", "mangle"))
    assert work_spec(setting, exercise, folder).remarks == [
        "b.iptables begins the table mangle 2 times: each replaces what was before it in the file."
    ]


@pytest.mark.parametrize("kind", ["folder", "link", "pipe"])
def test_what_no_tool_loads_is_not_opened(folder: Path, setting: SimpleNamespace, kind: str) -> None:
    path = folder / "old.d"
    path.mkdir() if kind == "folder" else path.symlink_to("/dev/null") if kind == "link" else os.mkfifo(path)
    (folder / "rules.iptables").write_text(RULES)
    spec = work_spec(setting, setting.lab.exercises[0], folder)
    told = "old.d/ (a folder)" if kind == "folder" else "old.d (no tool loads *.d)"
    assert spec.remarks == [f"Not loaded: {told}."]


def test_only_some_of_many_notes_are_named() -> None:
    told = with_reasons([f"{number}.txt" for number in range(MAX_NAMED + 3)])
    assert told.count("(") == MAX_NAMED
    assert told.endswith(", and 3 more")


#: Settings that are not the network's, however they are spelled.
OTHER_SETTINGS = [
    "kernel.core_pattern = |/bin/sh",
    "vm.overcommit_memory=1",
    "-kernel.panic=1",
    "kernel/panic=1",
    "net=1",
    "netfilter.x=1",
    "net/../kernel/core_pattern = |/bin/sh",
    "net..kernel.panic=1",
    "net.ipv4.conf.*.forwarding=0",
]
#: iptables runs, as root, the program that --modprobe names.
RUNS_A_PROGRAM = ["-M /bin/sh", "-M/bin/sh", "-4M /bin/sh", "--modprobe=/bin/sh", "--modpr /bin/sh", '"-M" /bin/sh']


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        *(("a.sysctl", f"# mine\n{line}\n", r"a\.sysctl:2: .* is not a network setting") for line in OTHER_SETTINGS),
        *(
            (
                f"a.{kind}",
                f"*raw\n-A OUTPUT {option} -j DROP\nCOMMIT\n",
                rf"a\.{kind}:2: a ruleset must not name a program",
            )
            for option in RUNS_A_PROGRAM
            for kind in ("iptables", "iptables-nft")
        ),
    ],
)
def test_what_reaches_beyond_the_network_is_refused(name: str, text: str, said: str) -> None:
    with pytest.raises(BadInput, match=f"(?m)^{said}$"):
        ruleset_file(name, text)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        *(
            ("a.sysctl", f"{line}\n")
            for line in (
                "net.ipv4.ip_forward=1",
                "- net.core.rmem_max = 1",
                "net/ipv4/conf/eth0/rp_filter=0",
                "; x",
                "",
            )
        ),
        *(
            ("a.iptables", f"*mangle\n{rule}\n# -M is for comments\n")
            for rule in ("-m statistic --mode random --probability 0.5", "-m mac", "-j MARK", "-A MINE", "-m multiport")
        ),
    ],
)
def test_what_looks_similar_is_accepted(name: str, text: str) -> None:
    assert ruleset_file(name, text).text == text


@pytest.mark.parametrize("kind", ["link to a file", "link to nothing", "folder", "pipe", "socket"])
def test_only_plain_files_are_read(folder: Path, kind: str) -> None:
    path = folder / "rules.nft"
    match kind:
        case "link to a file":
            path.symlink_to("/etc/hostname")
        case "link to nothing":
            path.symlink_to("/no/such/file")
        case "folder":
            path.mkdir()
        case "pipe":
            os.mkfifo(path)
        case "socket":
            socket.socket(socket.AF_UNIX).bind(os.path.relpath(path))
    with pytest.raises(BadInput) as refused:
        student_ruleset(folder)
    assert refused.value.message == "rules.nft: a ruleset is plain files, no links, no folders"
    assert refused.value.hint == "remove rules.nft"


def test_folder_that_is_a_link(folder: Path, tmp_path: Path) -> None:
    (folder / "rules.iptables").write_text(RULES)
    (tmp_path / "link").symlink_to(folder)
    with pytest.raises(BadInput, match="no folder"):
        student_ruleset(tmp_path / "link")


def test_file_too_large(folder: Path) -> None:
    path = folder / "huge.ipset"
    with path.open("wb") as file:
        file.truncate(files.MAX_FILE_BYTES + 1)
    with pytest.raises(BadInput) as refused:
        student_ruleset(folder)
    assert refused.value.message == "huge.ipset: 32 MiB; a ruleset file has at most 32"


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("rules.nft", "# für\n".encode("latin-1"), "not text (byte 3): save it as UTF-8"),
        *(
            ("rules.nft", RULES.encode(encoding), "not text (byte 0): save it as UTF-8 (it seems to be UTF-16)")
            for encoding in ("utf-16", "utf-16-le", "utf-16-be", "utf-32")
        ),
        ("a.iptables", RULES.replace("\nCOMMIT", "\r-A OUTPUT -j DROP\nCOMMIT").encode(), CONTROL),
    ],
)
def test_what_is_no_text_is_refused(folder: Path, name: str, data: bytes, said: str) -> None:
    (folder / name).write_bytes(data)
    with pytest.raises(BadInput) as refused:
        student_ruleset(folder)
    assert refused.value.message.startswith(f"{name}:")
    assert said in refused.value.message


SETTINGS = {
    "links.ethtool": "eth0 -K gro off\n",
    "table.routes": "route add blackhole 198.19.7.0/24\n",
    "tune.sysctl": "net.core.netdev_budget = 600\n",
}


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_are_refused_where_the_exercise_is_about_rules(
    folder: Path, setting: SimpleNamespace, name: str
) -> None:
    (folder / name).write_text(SETTINGS[name])
    (folder / "rules.iptables").write_text(RULES)
    (exercise,) = setting.lab.exercises
    kind = name.partition(".")[2]
    with pytest.raises(BadInput) as refused:
        work_spec(setting, exercise, folder)
    assert refused.value.message == (
        f"{name}: ex1-block does not allow *.{kind} files: such settings change the cost of every packet, "
        "and the exercise is about rules"
    )
    assert refused.value.hint == f"remove {name}"
    other = exercise.model_copy(update={"settings": ["rps"]})
    with pytest.raises(BadInput, match=r"the exercise is about rules and \*\.rps\n"):
        work_spec(setting, other, folder)
    allowed = exercise.model_copy(update={"settings": [kind]})
    assert {file.name for file in work_spec(setting, allowed, folder).files} == {name, "rules.iptables"}


def test_too_many_files(folder: Path) -> None:
    for number in range(MAX_FILES):
        (folder / f"{number}.nft").write_text("# nothing\n")
    (folder / "notes.md").write_text("not counted\n")
    assert len(student_ruleset(folder)) == MAX_FILES
    (folder / "one-more.nft").write_text("# nothing\n")
    with pytest.raises(BadInput) as refused:
        student_ruleset(folder)
    assert refused.value.message == f"ex1-block: {MAX_FILES + 1} files; an exercise has at most {MAX_FILES}"


def test_total_size_is_limited(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_SUM_BYTES", 2 << 20)
    for name in ("a.nft", "b.nft"):
        (folder / name).write_text("#" * (1 << 20))
    assert len(student_ruleset(folder)) == 2
    (folder / "c.nft").write_text("#\n")
    with pytest.raises(BadInput) as refused:
        student_ruleset(folder)
    assert refused.value.message == "ex1-block: more than 2 MiB; an exercise has at most that"


@pytest.mark.parametrize("data", [RULES.replace("\n", "\r\n").encode(), b"\xef\xbb\xbf" + RULES.encode()])
def test_windows_line_endings_are_accepted(folder: Path, data: bytes) -> None:
    (folder / "rules.iptables").write_bytes(data)
    assert [file.text for file in student_ruleset(folder)] == [RULES]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        (b"\xff.bad", "\\xff.bad"),
        (b"\x1b]0;owned\x07.bad", "\\x1b]0;owned\\x07.bad"),
        (b"two\nlines.bad", "two\\nlines.bad"),
        ("\u202edab.bad".encode(), "\\u202edab.bad"),
        (b"x" * 240 + b".bad", "x" * 79 + "…" + "x" * 36 + ".bad"),
        ("für.bad".encode(), "für.bad"),
    ],
)
def test_names_are_shown_escaped(folder: Path, name: bytes, shown: str) -> None:
    """A loadable file is loaded; only the name is escaped."""
    path = folder / os.fsdecode(name)
    path.write_text("# nothing\n")
    assert with_reasons(not_loaded(folder)) == f"{shown} (no tool loads *.bad)"
    path.rename(path.with_suffix(".nft"))
    (file,) = student_ruleset(folder)
    assert file.name == shown.replace(".bad", ".nft")
    assert file.kind == "nft"
    json.dumps(file.name).encode()


# ---- a lab's own templates ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{{ rules }}", "'rules' is undefined"),
        ("{% for a in range(rules) %}{{ a }}{% endfor %}", "'rules' is undefined"),
        ("{{ addresses('many') }}", "str"),
        ("{{ addresses(2, first='255.255.255.255') }}", "IPv4 address"),
        ("{{ 1 // 0 }}", "zero"),
        ("{% for %}", "Expected an expression"),
        ("{{ links['no-such-link'].ends.dut.dev }}", "no-such-link"),
    ],
)
def test_template_that_cannot_be_rendered_is_named(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "rules.nft.j2").write_text(text)
    with pytest.raises(BadInput) as refused:
        lab_ruleset(tmp_path / "rules", {}, TOPOLOGY)
    assert refused.value.message.startswith("rules/rules.nft.j2: ")
    assert words in refused.value.message
    assert refused.value.hint


def test_templates_see_parameters_addresses_and_links() -> None:
    text = "{{ links['dut-sink'].ends.dut.dev }} {{ addresses(n) | join(' ') }}\n"
    assert render("x", text, {"n": 2}, TOPOLOGY) == f"{TOPOLOGY.end('dut-sink', 'dut').dev} 10.0.0.1 10.0.0.3\n"
