# SPDX-License-Identifier: GPL-2.0-or-later
"""Host names in an nftables file: nft asks the resolver for each word that stands where an address belongs.

That is a word behind `saddr`, `daddr` or the `to` of NAT, one in a set of addresses, and elsewhere in a rule or a list
a word with dots that is no other name.
"""

import re
from collections.abc import Iterator

from fwlab.rulesets.kinds.lines import asks_for, is_address, is_host_name
from fwlab.rulesets.kinds.nft_tokens import FAMILIES, VERBS, Token

_TYPES = {"ipv4_addr", "ipv6_addr"}
#: What may stand between an address's place and the address.
_BEFORE_A_VALUE = {
    *("=", "!", "<", ">", "&", "|", "^", "(", "eq", "ne", "lt", "gt", "le", "ge", "and", "or", "xor", "not"),
    *("set", "ip", "ip6", "map", "vmap"),
}
#: Other words that may follow there: they compute an address, or the statement goes on.
_OTHERS = {
    *("saddr", "daddr", "lshift", "rshift", "map", "vmap", "mod", "seed", "offset", "timeout", "expires", "comment"),
    *("counter", "limit", "quota", "ct", "last", "meter", "type", "check", "iif", "oif", "iifname", "oifname", "mark"),
    *("ether", "device", "accept", "drop", "return", "jump", "goto", "continue", "reject", "queue", "log", "random"),
    *("fully-random", "persistent", "prefix", "exists", "missing", "interval", "addr", "port", "tcp", "udp", "th"),
    *("meta", "numgen", "jhash", "symhash", "arp", "vlan", "fib", "rt", "socket", "osf", "ipsec", "icmp", "icmpv6"),
    *("snat", "dnat", "notrack", "masquerade", "redirect", "synproxy", "tproxy", "dup", "fwd", "flow", "add", "update"),
}
_INTERFACES = {"iif", "oif", "iifname", "oifname", "ibrname", "obrname", "ibriport", "obriport"}
#: The word behind one of these is another name, and may have dots.
_NAMING = _INTERFACES | {
    *("jump", "goto", "device", "devices", "comment", "prefix", "name", "helper", "label", "timeout", "expectation"),
    *("secmark", "level", "meter", "table", "set"),
}
#: Without any of these, a text names no host: a dot before letters, a word where an address belongs or in a list, a
#: text in quotes, a variable, or a line that goes on.
_MAY_BE_NAMED = re.compile(
    r"""["$\\]|\.[\d_-]*[a-z]|(?:addr|\bto)[\s=!<>&|^({]*(?!v?map\b)[a-z_]|(?:=|map)\s*\{\s*[a-z_]|,\s*[a-z_]"""
    r"|\d[ \t]*-[ \t]*[a-z_]|element(?:\s+[\w./-]+){1,4}\s*\{\s*[a-z_]",
    re.ASCII | re.IGNORECASE,
)


class Names:
    """Reads a file token by token, as a Reader.

    _braces  of each open brace: table, chain, set (a set or map with a name), address (a list of addresses), list, or
             other
    _place   what the next token of a rule is: address, interface, or ""
    """

    def __init__(self) -> None:
        self._braces: list[str] = []
        self._seen: dict[str, dict[int, list[Token]]] = {"address": {}, "list": {}}
        self._found: list[tuple[int, str]] = []
        #: What the elements of each set and map with a name are; the one that is being declared, and whether the first
        #: part of its key was read.
        self._sets: dict[str, str] = {}
        self._set, self._keyed = "", False
        self._begin()

    def _begin(self) -> None:
        """Begin a statement."""
        self._head = self._before = self._place = ""
        self._left = 2  # names of a rule: its table and its chain
        self._nat = self._joined = False

    @staticmethod
    def concerned(text: str) -> bool:
        return _MAY_BE_NAMED.search(text) is not None

    def take(self, token: Token) -> None:
        block = self._braces[-1] if self._braces else "top"
        in_list = block in ("address", "list", "other")
        if token.is_mark("\n", ";"):
            if not in_list:
                self._begin()
            return
        if token.is_mark("{"):
            self._braces.append(block if in_list else self._opened(block))
            if self._braces[-1] in ("table", "chain", "set"):
                self._begin()
        elif token.is_mark("}"):
            if self._braces and self._braces.pop() in ("table", "chain", "set"):
                self._begin()
        elif in_list:
            self._element(token, block)
        else:
            if not self._head and token.text not in VERBS:
                self._head = token.text
            if block == "chain" or self._head == "rule":
                self._rule(token)
            elif block == "set":
                self._declaration(token)
        self._before = "" if token.quoted else token.text

    def faults(self) -> Iterator[tuple[int, str, str]]:
        for at, name in sorted(self._found):
            yield at, *asks_for(name)

    def _opened(self, block: str) -> str:
        """What the brace encloses."""
        if block in ("top", "table") and self._head != "rule":
            if self._head == "element":
                return self._sets.get(self._before, "list")
            if self._head in ("set", "map"):
                self._set, self._keyed = self._before, False
                return "set"
            return self._head if self._head in ("table", "chain") else "other"
        if block == "set":
            return self._sets.get(self._set, "list")
        if self._before in ("jump", "goto"):
            return "chain"
        return "other" if self._place == "interface" else self._place or "list"

    def _declaration(self, token: Token) -> None:
        """`type` or `typeof`: whether a key is an address, or an address is part of a key or a value."""
        if self._head not in ("type", "typeof"):
            return
        address = token.text in _TYPES or (token.text in ("saddr", "daddr") and self._before != "ether")
        before = self._sets.setdefault(self._set, "other")
        if address:
            self._sets[self._set] = "list" if self._keyed else "address"
        elif token.is_mark(".", ":"):
            self._keyed = True
            if token.text == "." and before == "address":
                self._sets[self._set] = "list"

    def _rule(self, token: Token) -> None:
        if self._head == "rule" and self._left and self._braces == []:
            self._left -= token.text not in (*FAMILIES, *VERBS, "rule")
            return
        place, self._place = self._place, ""
        if place and token.is_mark(*_BEFORE_A_VALUE):
            self._place = place
        elif place == "address" and (token.quoted or token.value is not None or token.is_word):
            self._check(token, place)
        elif place == "address" and token.text.rstrip().endswith("-"):
            self._place = place
        elif place != "interface" and self._before not in _NAMING:
            self._check(token, "list")
        if token.is_mark("."):
            self._joined = True
        elif token.is_mark("saddr", "daddr") and self._before != "ether" and not self._joined:
            self._place = "address"
        elif token.is_mark(*_INTERFACES):
            self._place = "interface"
        elif token.is_mark("snat", "dnat", "tproxy"):
            self._nat = True
        elif token.is_mark("to") and self._nat:
            self._place = "address"

    def _element(self, token: Token, block: str) -> None:
        if block == "address" and self._before.rstrip()[-1:] in ("{", ",", "-"):
            self._check(token, block)
        elif block != "other" and self._before not in _NAMING:
            self._check(token, "list")

    def _check(self, token: Token, place: str) -> None:
        """Record the names that the token holds. In a list of anything, only a word with dots is taken for one."""
        before = "{"
        for word in (token,) if token.value is None else token.spread(self._seen[place]):
            if place == "address" and before[-1:] in ("{", ",", "-"):
                known = not word.quoted and (word.text in _OTHERS or not word.is_word)
                wrong = not known and not is_address(word.text)
            else:
                wrong = word.is_word and is_host_name(word.text)
            if wrong:
                self._found.append((word.at, word.text))
            before = "" if word.quoted else word.text.rstrip()
