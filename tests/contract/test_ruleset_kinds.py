# SPDX-License-Identifier: GPL-2.0-or-later
"""Every ruleset kind, a plug-in's too, accepts, refuses, loads, undoes and misses what its samples say (kinds/)."""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fwlab.model.errors import BadInput
from fwlab.model.registry import IncompleteKind, Registry, discover, required_by
from fwlab.model.ruleset import RulesetFile
from fwlab.rulesets import files, registry
from fwlab.rulesets.files import ruleset_file, validate
from fwlab.rulesets.kind import Refusal, RulesetKind
from fwlab.rulesets.kinds.nft import KIND as NFT
from fwlab.rulesets.registry import with_distinct_suffixes
from tests.contract.kinds import all_samples
from tests.contract.plugin.greylist import KIND as GREYLIST
from tests.fakes.fake_kernel import FakeKernel

#: The kinds of fwlab, and one from elsewhere.
KINDS = with_distinct_suffixes(
    Registry(
        "ruleset kind",
        [*((registry.KINDS.origins[name], kind) for name, kind in registry.KINDS.items()), ("greylist:KIND", GREYLIST)],
        required_by(RulesetKind),
    )
)
ALL = {samples.name: samples for samples in all_samples()}


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (files, registry):
        monkeypatch.setattr(module, "KINDS", KINDS)


every_kind = pytest.mark.parametrize("name", ALL)
with_loader = pytest.mark.parametrize("name", [name for name, kind in KINDS.items() if kind.loader is not None])


def named(name: str) -> str:
    """A file's name."""
    suffix = KINDS[name].suffix
    return f"rules{suffix}" if suffix.startswith(".") else suffix


class Printing:
    """The DUT's tools; they print what is given, and nothing or 0 for any other command."""

    def __init__(self, printed: Mapping[str, str]) -> None:
        self.printed = printed

    def run(self, command: str, *arguments: str) -> str:
        line = command % arguments if arguments else command
        return self.printed.get(line, "0\n" if "| " in line else "")

    check_output = run


def missing(name: str, text: str, printed: Mapping[str, str]) -> str | None:
    lines = [line for line in text.split("\n") if line and not line.startswith("#")]
    return KINDS[name].missing_from_kernel(Printing(printed), lines)


def test_every_kind_has_samples() -> None:
    assert set(ALL) == set(KINDS)
    for name, samples in ALL.items():
        assert samples.accepted, name
        assert samples.refused, name
        assert samples.missing, name


def complaint(name: str, text: str) -> str:
    """The message of BadInput, behind the file's name; "" if the text is accepted."""
    try:
        assert ruleset_file(named(name), text).kind == name
    except BadInput as error:
        refused = error
    else:
        return ""
    assert refused.hint, text
    assert refused.message.startswith(f"{named(name)}:"), refused.message
    return refused.message.partition(":")[2]


@every_kind
def test_what_is_accepted(name: str) -> None:
    said = {text: complaint(name, text + "\n") for text in ALL[name].accepted}
    assert {text: words for text, words in said.items() if words} == {}


@every_kind
def test_what_is_refused_says_where_and_why(name: str) -> None:
    for text, begins in ALL[name].refused:
        said = complaint(name, text)
        assert (said if begins[0].isdigit() else said.partition(": ")[2]).startswith(begins), (text, said)


@pytest.mark.parametrize(
    "word", ["sudo iptables", "iptables", "iptables-legacy", "ipset", "nft", "tc", "sysctl", "xdp-filter"]
)
def test_a_command_of_the_shell_is_named(word: str) -> None:
    name = "nft" if word == "nft" else "ipset" if word == "tc" else "tc"
    assert complaint(name, f"# notes\n  {word} -w x\n").startswith(
        f"2: `{word.split(maxsplit=1)[0]}` is a command, and no shell"
    )


@every_kind
def test_unusual_line_separators_are_refused(name: str) -> None:
    """Otherwise a comment to our validation could be an instruction to the tool, or vice versa."""
    for character in "\r\x0b\x0c\x1c\x85\u2028\0":
        assert complaint(name, f"# one\n# two{character}include\n").startswith("2: a control character")


@every_kind
def test_whatever_is_written_is_accepted_or_refused(name: str) -> None:
    """Samples whose words and marks were doubled, dropped, exchanged or cut: no other error, and no file that hangs."""
    drawn = random.Random(name)
    short = [text for text in (*ALL[name].accepted, *(text for text, _ in ALL[name].refused)) if len(text) < 2000]
    for _ in range(300):
        words = re.split(r"(\W)", drawn.choice(short))
        place, other = drawn.randrange(len(words)), drawn.choice(re.split(r"(\W)", drawn.choice(short)))
        words[place : place + drawn.randrange(3)] = [other] * drawn.randrange(4)
        complaint(name, "".join(words)[: drawn.randrange(1, 3000)])


@with_loader
def test_how_a_file_is_loaded(name: str) -> None:
    kind: Any = KINDS[name]
    for text, calls in ALL[name].loaded:
        planned = kind.loader(FakeKernel()).calls(named(name), kind.sent(text), each=False)
        assert [(" ".join(call[0]), call[1]) for call in planned if not callable(call)] == calls


@with_loader
def test_how_a_file_is_loaded_line_by_line(name: str) -> None:
    """No line reaches a shell: what one would execute is an argument."""
    loader: Any = KINDS[name].loader
    for text, calls in ALL[name].each:
        assert [*loader(FakeKernel()).calls(named(name), text, each=True)] == [([*words], None) for words in calls]
    if not ALL[name].each and ALL[name].loaded:
        text, kernel = KINDS[name].sent(ALL[name].loaded[0][0]), FakeKernel()
        try:
            planned = loader(kernel).calls(named(name), text, each=True)
        except Refusal as error:
            said = str(error)
        else:
            assert planned == loader(kernel).calls(named(name), text, each=False)
            return
        assert said == f"{named(name)}: such a file can only be loaded whole"


@with_loader
def test_what_is_undone(name: str) -> None:
    """Nothing on an untouched DUT, and all that an earlier agent may have left."""
    kernel = FakeKernel()
    loader: Any = KINDS[name].loader
    loader(kernel).undo(False)
    assert kernel.called == []
    loader(kernel).undo(True)
    assert [(line, kernel.fed.get(line)) for line in kernel.called] == [*ALL[name].undone]
    assert loader(kernel).entries() == 0


@every_kind
def test_what_the_kernel_does_not_hold_is_named(name: str) -> None:
    for text, printed, expected in ALL[name].missing:
        assert missing(name, text, printed) == expected, text


@every_kind
def test_every_kind_is_missing_on_an_empty_dut(name: str) -> None:
    assert ruleset_file(named(name), ALL[name].held).kind == name
    assert missing(name, ALL[name].held, {}) is not None


def test_a_file_of_an_unknown_kind_is_not_passed_unchecked() -> None:
    with pytest.raises(KeyError):
        validate(RulesetFile("rules.x", "no-such-kind", "anything\n"))


def test_a_file_belongs_to_one_kind() -> None:
    other: RulesetKind = replace(NFT, name="other", suffix=".my.nft")
    with pytest.raises(IncompleteKind, match=r"ruleset kinds other and nft both claim \*\.my\.nft"):
        with_distinct_suffixes(Registry("ruleset kind", [("a", NFT), ("b", other)], required_by(RulesetKind)))


@pytest.mark.parametrize("zipped", [False, True])
def test_kinds_are_found_in_a_folder_and_in_a_zip_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, zipped: bool
) -> None:
    kind = "from types import SimpleNamespace\nKIND = SimpleNamespace(name={!r}, position={})\n"
    modules = {"__init__": "", "late": kind.format("late", 2), "early": kind.format("early", 1), "helper": ""}
    package = f"found_{'zipped' if zipped else 'plain'}"
    (tmp_path / package).mkdir()
    for name, text in modules.items():
        (tmp_path / package / f"{name}.py").write_text(text)
    if zipped:
        shutil.make_archive(str(tmp_path / "kinds"), "zip", tmp_path, package)
        shutil.rmtree(tmp_path / package)
    monkeypatch.syspath_prepend(tmp_path / "kinds.zip" if zipped else tmp_path)
    found: Registry[Any] = discover("kind", package, "KIND", None, object)
    assert list(found.origins.items()) == [("early", f"{package}.early"), ("late", f"{package}.late")]


def test_settings_of_the_machine_are_loaded_first_or_last() -> None:
    """A link that is set up loses its filters, and only a rule creates the settings of connection tracking."""
    settings = [name for name, kind in KINDS.items() if kind.machine_setting]
    first, last = [name for name in settings if name != "sysctl"], ["sysctl"]
    assert list(KINDS)[: len(first)] == first
    assert list(KINDS)[-1:] == last
