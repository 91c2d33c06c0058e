# SPDX-License-Identifier: GPL-2.0-or-later
"""Validates ruleset files before they are loaded."""

import re
from collections.abc import Iterator, Sequence

from fwlab.model.errors import BadInput
from fwlab.model.ruleset import RulesetFile
from fwlab.rulesets.registry import KINDS

#: Some programs take these for line ends and others do not. No ruleset needs them.
CONTROL = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")

#: A line that only a shell could run. In a file of nft, words such as `tc` may begin a line.
SHELL = re.compile(r"^[ \t]*(sudo|ip6?tables(-\w+)*+|ipset|nft|tc|ethtool|sysctl|xdp-filter|pfctl)[ \t]", re.MULTILINE)
SHELL_IN_NFT = re.compile(r"^[ \t]*(sudo|nft)[ \t]", re.MULTILINE)


def validate(file: RulesetFile) -> None:
    """Raises BadInput with the file's name and line for the first thing that its kind does not allow."""
    control = CONTROL.search(file.text)
    if control:
        number = file.text.count("\n", 0, control.start()) + 1
        raise BadInput(f"{file.name}:{number}: a control character ({control[0]!r})", "save it with Unix line ends")
    command = (SHELL_IN_NFT if file.kind == "nft" else SHELL).search(file.text)
    if command:
        number = file.text.count("\n", 0, command.start(1)) + 1
        message = f"{file.name}:{number}: `{command[1]}` is a command, and no shell reads this file"
        raise BadInput(
            message, "leave it out; guides/student.md says which tool reads a file, and the start how it looks"
        )
    for number, fault, hint in KINDS[file.kind].validate(file.text.split("\n")):
        raise BadInput(f"{file.name}:{number}: {fault}", hint)


def validate_together(files: Sequence[RulesetFile]) -> None:
    """Raises BadInput if files that are allowed one by one are too much for the DUT together."""
    for kind in KINDS.values():
        several = [file for file in files if file.kind == kind.name] if kind.cumulative else []
        text = "\n".join(file.text for file in several)
        for _, fault, hint in kind.validate(text.split("\n")) if len(several) > 1 else ():
            names = ", ".join(file.name for file in several)
            raise BadInput(f"{names} together: {fault}", hint)


def remarks(files: Sequence[RulesetFile]) -> Iterator[str]:
    """What is worth saying of files that are allowed, such as that they add up."""
    for kind in KINDS.values():
        yield from kind.remarks({file.name: file.text for file in files if file.kind == kind.name})
