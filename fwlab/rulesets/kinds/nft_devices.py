# SPDX-License-Identifier: GPL-2.0-or-later
"""Devices of an nftables file: those of hooks and flowtables, and targets of fwd and dup.

None may be the management NIC. What a rule only matches may have any name.
"""

import itertools
import re
from collections.abc import Iterator

from fwlab.rulesets.kinds.lines import LINKS, other_link
from fwlab.rulesets.kinds.nft_tokens import VERBS, Token

#: Devices that may have hooks and be sent packets. The loopback device does no harm.
_DEVICES = {*LINKS, "lo"}
_ADDRESS = re.compile(r"[0-9a-fA-F]*[.:][0-9a-fA-F.:]*")
#: After these words the target is computed, and a map names the devices.
_COMPUTED = {
    *("ip", "ip6", "meta", "symhash", "jhash", "numgen", "ct", "tcp", "udp", "th"),
    *("iif", "iifname", "oif", "oifname", "mark", "vlan", "ether"),
}
#: Marks, a set, and a variable that is not defined: nft refuses them as devices.
_NO_DEVICE = tuple("{}()[],:;=<>!&|^+/*.-\n@$")


class Devices:
    """Reads a file token by token, as a Reader.

    _wanted  what comes next: "" anything; "to" that word; "target", "device" or "devices" (after =) a device; "list"
             devices until the brace closes; "computed" a map, until the statement ends
    """

    def __init__(self) -> None:
        self._wanted = self._before = self._head = self._map = ""
        self._at = self._depth = 0
        #: Of each open brace: "map" the block of a map with a name, "data" its elements, or "".
        self._braces: list[str] = []
        #: Of each map with a name, the values that may be devices; and the maps that name targets.
        self._data: dict[str, list[Token]] = {}
        self._asked: list[tuple[str, int]] = []
        self._seen: dict[int, list[Token]] = {}
        self._found: list[tuple[int, str]] = []

    @staticmethod
    def concerned(text: str) -> bool:
        return any(word in text for word in ("device", "fwd", "dup"))

    def take(self, token: Token) -> None:
        self._read_map(token)
        if self._wanted == "computed":
            self._computed(token)
        elif self._wanted:
            self._device(token)
        if token.is_mark("device", "devices", "fwd", "dup"):
            self._wanted = "to" if token.text in ("fwd", "dup") else token.text
            self._at = token.at
        if not token.is_mark("\n"):
            self._before = "" if token.quoted else token.text

    def faults(self) -> Iterator[tuple[int, str, str]]:
        for name, at in self._asked:
            for token in self._data.pop(name, ()):
                self._check(token, at)
        for at, device in sorted(self._found):
            yield at, *other_link(device)

    def _device(self, token: Token) -> None:
        wanted, self._wanted = self._wanted, ""
        if wanted == "to":
            self._wanted = "target" if token.is_mark("to") else "to" if token.is_mark("ip", "ip6") else ""
        elif wanted == "devices" and token.is_mark("=", "{"):
            self._wanted = "devices" if token.text == "=" else "list"
        elif wanted == "target" and token.is_mark("("):
            self._wanted = "target"
        elif wanted == "target" and token.is_mark(*_COMPUTED):
            self._wanted, self._depth = "computed", 0
        elif wanted != "list" or not token.is_mark("}"):
            self._check(token, self._at)
            self._wanted = "list" if wanted == "list" else ""

    def _computed(self, token: Token) -> None:
        self._depth += token.is_mark("{") - token.is_mark("}")
        if self._depth <= 0 and token.is_mark(";", "\n", "}"):
            self._wanted = ""
        elif self._before == ":":
            self._check(token, self._at)
        elif self._before == "map" and token.text[:1] == "@":
            self._asked.append((token.text[1:], self._at))
        elif self._before == "map" and token.value is not None:
            for colon, value in itertools.pairwise(token.value):
                if colon.is_mark(":"):
                    self._check(value, self._at)

    def _read_map(self, token: Token) -> None:
        """Keep the values of maps with names; a rule that comes before may ask the map."""
        if token.is_mark("{"):
            inside = self._braces[-1:] == ["map"] or self._head == "element"
            self._braces.append("data" if inside else "map" if self._head == "map" else "")
            if not inside or self._head == "element":
                self._map = self._before
        elif token.is_mark("}") and self._braces:
            self._braces.pop()
        elif self._before == ":" and self._braces[-1:] == ["data"]:
            self._data.setdefault(self._map, []).append(token)
        if token.is_mark("{", "}", ";", "\n"):
            self._head = ""
        elif not self._head and token.text not in VERBS:
            self._head = token.text

    def _check(self, token: Token, at: int) -> None:
        """Record a device that is none of the lab's. `at` is where it is used."""
        for word in token.spread(self._seen):
            name = word.text.partition(",")[0].strip()
            known = name in _DEVICES or name == "" or _ADDRESS.fullmatch(name)
            if not known and (word.quoted or not name.startswith(_NO_DEVICE)):
                self._found.append((at, name))
