# SPDX-License-Identifier: GPL-2.0-or-later
"""A program that asks this machine's kernel what it does with packets, under rules that touch nothing else.

    python3 -S -m fwlab.own.bench

It makes a network namespace of its own, with a tap device for each interface that the rules name. A packet that is
written to a tap arrives at that interface, and the kernel has dealt with it when the write returns: what left can be
read from the other taps, and the rules that it met from the kernel's own trace (nf_tables). Requests and answers are
lines of JSON, as in fwlab.host.conversation; the namespace ends with the program. Only the standard library.

`load` gives the rules to the tools and returns how these print them. `play` plays conversations. Each begins with an
empty connection table. Its steps are dicts:

    iface, packet, out   a packet, arriving at `iface`; from there routes lead to `out`, and back
    reply, [flags]       the answer to what left in an earlier step, arriving where that left
    error                an ICMP error about what left in an earlier step, arriving likewise
    wait                 seconds

The iface "self" is the machine itself: a packet from it is sent, and one to it is addressed to it. What is sent by "lo"
arrives there.

`price` times single packets; one that the machine sends, with the socket that it is sent through. A `cut` is a place in
the rules at which they end: the timed packet is dropped there, and no other.
"""

import contextlib
import ctypes
import errno
import fcntl
import functools
import gc
import json
import os
import select
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from fwlab.dut.linux.agent import netlink
from fwlab.dut.linux.agent.perf_samples import Perf
from fwlab.own import packets
from fwlab.rulesets.kind import Refusal

SELF, LO = "self", "lo"
CLONE_NEWNET = 0x40000000
TUNSETIFF, IFF_TAP, IFF_NO_PI = 0x400454CA, 0x0002, 0x1000
SOL_NETLINK, ADD_MEMBERSHIP, GROUP_TRACE = 270, 1, 9
#: Type of netlink's messages with nf_tables' trace.
TRACE = 10 << 8 | 17
#: Attributes of a trace message.
TABLE, CHAIN, HANDLE, KIND, VERDICT, ID, MARK, POLICY = 1, 2, 3, 4, 5, 6, 14, 16
#: Those of the packet's headers and devices. A chain's first message ends with them, and nobody needs them here.
HEADERS = range(7, 14)
FAMILIES = {1: "inet", 2: "ip", 10: "ip6", 7: "bridge", 5: "netdev"}
KINDS = {1: "policy", 2: "return", 3: "rule"}
VERDICTS = {0: "drop", 1: "accept", 2: "stolen", 3: "queue", -1: "continue", -3: "jump", -4: "goto", -5: "return"}
#: Frames that the namespace itself sends: group membership, neighbour and router discovery.
OWN_TYPES = (*range(130, 137), 143)
IGMP = 2
#: The table that starts the trace and marks where a packet's way begins and ends.
MARKS = "fwlab_marks"
FIRST, LAST = -2_000_000_000, 2_000_000_000
HOOKS = ("prerouting", "input", "forward", "output", "postrouting")
#: The kernel destroys a table a moment after it is deleted (s).
SETTLED_S = 0.2
#: Times that a packet is sent before any is timed. CPython runs a function faster from its ninth call on, and the
#: kernel's first packet allocates what later ones find.
WARM_UP = 16
#: The sender of the frames that are timed; a cut drops them.
CUT = b"\x02\0\0\0\0\x0c"
#: How long a packet is sampled (s), and the functions of the kernel by which one arrives or is sent.
SAMPLED_S = 4.0
ENTRIES = ("tun_get_user", "raw_sendmsg", "rawv6_sendmsg")
#: Largest frame that is read.
FRAME = 1 << 16

SETTINGS = {
    "net.ipv4.ip_forward": 1,
    "net.ipv6.conf.all.forwarding": 1,
    "net.ipv4.conf.all.rp_filter": 0,
    "net.ipv4.conf.default.rp_filter": 0,
    "net.ipv4.conf.all.send_redirects": 0,
    "net.ipv4.conf.default.send_redirects": 0,
    # Errors that rules send are not to be limited.
    "net.ipv4.icmp_ratemask": 0,
    "net.ipv6.icmp.ratelimit": 0,
    "net.ipv6.conf.default.accept_dad": 0,
    "net.ipv6.conf.default.addr_gen_mode": 1,
    "net.ipv6.conf.default.accept_ra": 0,
    "net.ipv6.conf.default.router_solicitations": 0,
}


class Failed(Exception):
    """The bench cannot answer; the message goes to the caller."""


def call(*argv: str, text: str | None = None) -> str:
    """Standard output of a tool. Raises Failed with what it said."""
    try:
        done = subprocess.run(argv, input=text, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise Failed(f"{argv[0]} is not installed") from error
    if done.returncode:
        raise Failed(f"{argv[0]} said: {(done.stderr or done.stdout).strip()[:2000]}")
    return done.stdout


class Trace:
    """The kernel's trace of packets in this namespace."""

    def __init__(self) -> None:
        self._socket = netlink.opened()
        self._socket.setblocking(False)
        with contextlib.suppress(OSError):
            self._socket.setsockopt(socket.SOL_SOCKET, 33, 8 << 20)  # SO_RCVBUFFORCE
        self._socket.setsockopt(SOL_NETLINK, ADD_MEMBERSHIP, GROUP_TRACE)

    def read(self, *, sent: bool = False, comes_back: bool = False) -> tuple[list[tuple[Any, ...]], int]:
        """What the first packet met since the last call, and the mark that it had at the end.

        sent        the machine sends it; otherwise it arrives, and what the machine sends meanwhile is another's
        comes_back  its way goes on where it arrives again, for the kernel as another packet
        """
        found: list[tuple[Any, ...]] = []
        first, mark = None, 0
        others: set[int] = set()
        while True:
            try:
                data = self._socket.recv(FRAME)
            except BlockingIOError:
                return found, mark
            except OSError as error:
                if error.errno == errno.ENOBUFS:
                    raise Failed("the trace of one packet is longer than the kernel keeps") from error
                raise
            for kind, body in netlink.messages(data):
                if kind != TRACE:
                    continue
                event = Event.of(body)
                if first is None and not sent and event.met[1:3] == (MARKS, "output"):
                    others.add(event.packet)
                if event.packet in others:
                    continue
                if comes_back and event.packet != first and event.met[1:3] == (MARKS, HOOKS[0]):
                    first, comes_back = event.packet, False
                first = event.packet if first is None else first
                if event.packet == first:
                    mark = event.mark
                    if event.counts:
                        found.append(event.met)


class Event(NamedTuple):
    """One message of the trace: which packet, its mark, and what it met."""

    packet: int
    mark: int
    met: tuple[Any, ...]

    @property
    def counts(self) -> bool:
        """Whether it is a policy or a rule. Newer kernels end a chain with a rule that nobody wrote."""
        _, table, _, handle, kind, _, _ = self.met
        return bool(kind == "policy" or (handle and table != MARKS))

    @classmethod
    def of(cls, body: bytes) -> "Event":
        given: dict[int, bytes] = {}
        for kind, value in netlink.attributes(body, 4):
            if kind in HEADERS:
                break
            given[kind] = value
        met = _met(body[0], *map(given.get, (TABLE, CHAIN, HANDLE, KIND, VERDICT, POLICY)))
        return cls(_number(given.get(ID)), _number(given.get(MARK)), met)


@functools.cache
def _met(family: int, *given: bytes | None) -> tuple[Any, ...]:
    table, chain, handle, kind, verdict, policy = given
    inside = dict(netlink.attributes(verdict)) if verdict is not None else {}
    code = struct.unpack("!i", inside.get(1, policy or b"\0\0\0\1"))[0]
    return (
        FAMILIES.get(family, str(family)),
        _name(table),
        _name(chain),
        _number(handle),
        KINDS.get(_number(kind), "?"),
        VERDICTS.get(code & 0xFF if code > 0 else code, str(code)),
        _name(inside.get(2)),
    )


def _name(data: bytes | None) -> str:
    return "" if data is None else data.rstrip(b"\0").decode(errors="replace")


def _number(data: bytes | None) -> int:
    return 0 if data is None else int.from_bytes(data, "big")


class Table:
    """The namespace's connection table."""

    def __init__(self) -> None:
        self._socket = netlink.opened()

    @property
    def is_empty(self) -> bool:
        """Whether it has no entry. To ask is cheaper than to look for them, or to delete them, in all buckets."""
        try:
            with open("/proc/sys/net/netfilter/nf_conntrack_count") as file:
                return file.read() == "0\n"
        except OSError:
            return False

    def entries(self) -> list[str]:
        """Each entry without what differs each time."""
        if self.is_empty:
            return []
        try:
            with open("/proc/net/nf_conntrack") as file:
                lines = file.read().splitlines()
        except OSError:
            return []
        # The machine reports group membership whenever it likes.
        return sorted(self._plain(line) for line in lines if line.split()[3] != str(IGMP))

    @staticmethod
    def _plain(line: str) -> str:
        words = line.split()
        lasts = words[4].isdigit()  # not of a connection that a flow table has
        state = [word for word in words[4 + lasts :] if not word.startswith(("use=", "packets=", "bytes=", "secctx="))]
        return " ".join([words[0], words[2], *([f"{_rounded(int(words[4]))} s"] if lasts else []), *state])

    def empty(self) -> None:
        """Delete all entries. Raises OSError."""
        netlink.forget_connections(self._socket)


def _rounded(seconds: int) -> int:
    """Up, so that a moment makes no difference."""
    step = 10 if seconds < 1000 else 10 ** (len(str(seconds)) - 2)
    return -(-seconds // step) * step


class Interface:
    """One tap: a name that rules know, its number from 1, and its end outside of the namespace."""

    def __init__(self, name: str) -> None:
        self.number = 0
        self._file = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        try:
            fcntl.ioctl(self._file, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TAP | IFF_NO_PI))
        except OSError as error:
            raise Failed(f"no interface of the name {name} can be made: {error.strerror}") from error

    @property
    def mac(self) -> bytes:
        """Its address as a sender."""
        return b"\x02\0\0\0" + self.number.to_bytes(2, "big")

    def fileno(self) -> int:
        return self._file

    def write(self, data: bytes) -> None:
        os.write(self._file, data)

    def read(self) -> Iterator[packets.Packet]:
        """Packets that left by it since the last call."""
        while True:
            try:
                data = os.read(self._file, FRAME)
            except BlockingIOError:
                return
            found = packets.parse_frame(data)
            if found is not None and not _of_the_machine(found):
                yield found


def _of_the_machine(packet: packets.Packet) -> bool:
    if packet["version"] == 4:
        return bool(packet["proto"] == IGMP)
    return packet["proto"] == 0 or (packet["proto"] == packets.ICMPV6 and packet.get("type") in OWN_TYPES)


class Bench:
    """One namespace with one ruleset."""

    def __init__(self) -> None:
        if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET):
            raise Failed(f"no network namespace can be made: {os.strerror(ctypes.get_errno())}")
        self._interfaces: dict[str, Interface] = {}
        self._files: list[dict[str, str]] = []
        self._tools: dict[str, tuple[str, ...]] = _LOADED
        self._ways: tuple[str, str] | None = None
        self._rules: list[str] = []
        self._leaves = select.poll()
        self._at_devices = False
        self._broadcasts: set[str] = set()
        self._loaded = False

    # ---- requests -----------------------------------------------------------------------------------------------

    def load(self, request: dict[str, Any]) -> dict[str, Any]:
        """Load rules: `files` with name, kind and text, which name `devices` that must be there.

        Returns what nft, iptables-save and ipset print of them.

        form  of `_FORMS`: which tools load them
        """
        self._files, self._tools = request["files"], _LOADED | _FORMS[request.get("form", "")]
        for name in request.get("devices", []):
            if name not in self._interfaces:
                self._add(name)
        self._reload()
        listed = call("nft", "-j", "list", "ruleset")
        self._at_devices = '"hook": "ingress"' in listed
        saved = {kind: call(f"{kind}-nft-save", "-c") for kind in ("iptables", "ip6tables") if self._has(kind)}
        sets = call("ipset", "save") if self._has("ipset") else ""
        texts = call("nft", "-a", "list", "ruleset")
        return {"nft": listed, "texts": texts, "saved": saved, "sets": sets, "kernel": os.uname().release}

    def translate(self, request: dict[str, Any]) -> dict[str, Any]:
        """What iptables-restore-translate makes of rules: `kind` and `text`."""
        return {"text": call(f"{request['kind']}-restore-translate", "-f", "/dev/stdin", text=request["text"])}

    def prepare(self, request: dict[str, Any]) -> dict[str, Any]:
        """Make `interfaces`, by name their addresses, and addresses of the machine (`own`); then begin to trace.

        The machine joins multicast `groups`.
        """
        for setting, value in SETTINGS.items():
            with contextlib.suppress(FileNotFoundError), open("/proc/sys/" + setting.replace(".", "/"), "w") as file:
                file.write(str(value))
        lines = ["link set lo up"]
        for number, (name, given) in enumerate(request["interfaces"].items(), 1):
            found = self._interfaces.get(name) or self._add(name)
            found.number = number
            self._broadcasts |= {one.rsplit(".", 1)[0] + ".255" for one in given if ":" not in one}
            lines.append(f"link set dev {name} address {found.mac.hex(':')} arp off up")
            lines += [f"addr add {address} dev {name} nodad" for address in given if ":" in address]
            lines += [f"addr add {address} dev {name}" for address in given if ":" not in address]
            for family in ("-4", "-6"):
                lines.append(f"{family} route add default dev {name} table {1000 + number}")
        lines += [f"addr add {address} dev lo" for address in request.get("own", [])]
        for family in ("-4", "-6"):
            call("ip", family, "-batch", "-", text="".join(f"{line}\n" for line in _of_family(lines, family)))
        self._groups = [_member(group, name) for group in request.get("groups", []) for name in self._interfaces]
        self._trace, self._table = Trace(), Table()
        self._mark_ways()
        return {}

    def play(self, request: dict[str, Any]) -> dict[str, Any]:
        """Play `conversations`. The rules are loaded again before each `every` of them, if that is not 0.

        Returns for each a list of steps, and what it left in the connection table. A step is the number of a way among
        `ways`, the packets that left, each with the interface, and the mark; or null where there was nothing to answer.
        """
        ways: dict[tuple[Any, ...], int] = {}
        played = []
        for number, conversation in enumerate(request["conversations"]):
            if request["every"] and number % request["every"] == 0:
                self._reload()
                self._mark_ways()
            played.append(self._conversation(conversation, ways))
        return {"ways": list(ways), "played": played}

    def price(self, request: dict[str, Any]) -> dict[str, Any]:
        """How long the kernel takes for one packet: nanoseconds of its own clock. Stop every trace before.

        `packets` are conversations, each with the step that is timed (`place`), and with `fresh` on rules just loaded.
        Each is played `times` times over. Returns for each the times; fewer where there was nothing to answer.

        cut  a rule before which the packets are dropped, or a chain's policy: family, table, chain, handle (or 0)
        """
        cut = request.get("cut")
        inserted = self._cut(cut) if cut else ""
        gc.disable()
        try:
            sent_or_arriving = {one["steps"][one["place"]].get("iface") == SELF: one for one in request["packets"]}
            for one in sent_or_arriving.values():
                self._timed(one, WARM_UP)
            return {"ns": [self._timed(one, request["times"]) for one in request["packets"]]}
        finally:
            gc.enable()
            if cut:
                call("nft", "delete", "rule", *cut[:3], "handle", inserted)

    def sample(self, request: dict[str, Any]) -> dict[str, Any]:
        """Samples of the kernel at `rates` (Hz) while a `packet`, given as to `price`, is sent again and again.

        Returns the call stacks of its handling. One in a connection follows its conversation, which is played once.
        """
        one, place = request["packet"], request["packet"]["place"]
        self._table.empty()
        seen: list[Any] = []
        for step in one["steps"][:place]:
            seen.append(self._step(step, seen))
        perf = Perf(request["rates"])
        try:
            perf.control("enable")
            ends = time.monotonic() + SAMPLED_S
            while time.monotonic() < ends:
                if place == 0:
                    self._table.empty()
                self._step(one["steps"][place], seen)
            perf.control("disable")
        finally:
            stacks = perf.stacks()
        found: dict[str, int] = {}
        for stack, samples in stacks.items():
            begin = next((stack.index(entry) for entry in ENTRIES if entry in stack), None)
            if begin is not None:
                found[stack[begin:]] = found.get(stack[begin:], 0) + samples
        return {"stacks": found}

    def trace(self, request: dict[str, Any]) -> dict[str, Any]:
        """Stop tracing, or begin again (`on`). While any namespace traces, all packets pay for it."""
        if request["on"]:
            self._mark_ways()
        else:
            for family in ("inet", "netdev") if self._at_devices else ("inet",):
                call("nft", "delete", "table", family, MARKS)
            time.sleep(SETTLED_S)
        return {}

    # ---- how ----------------------------------------------------------------------------------------------------

    def _has(self, kind: str) -> bool:
        return any(file["kind"] == kind for file in self._files)

    def _reload(self) -> None:
        if self._loaded:
            call("nft", "flush", "ruleset")
            for file in self._files:
                if "legacy" in self._tools[file["kind"]][0]:
                    named = [line for line in file["text"].splitlines() if line.startswith("*")]
                    call(*self._tools[file["kind"]], text="".join(f"{line}\nCOMMIT\n" for line in named))
            if self._has("ipset"):
                call("ipset", "destroy")
        self._loaded = True
        for file in sorted(self._files, key=lambda file: list(_LOADED).index(file["kind"])):
            try:
                call(*self._tools[file["kind"]], text=file["text"])
            except Failed as error:
                raise Failed(f"{file['name']}: {error}") from error

    def _cut(self, cut: list[Any]) -> str:
        """Put the rule there that drops the timed packets. Returns its handle."""
        *chain, handle = cut
        where = ("insert", "rule", *chain, "position", str(handle)) if handle else ("add", "rule", *chain)
        made = call("nft", "-a", "-e", *where, f"@ll,48,48 0x{CUT.hex()}", "drop")
        return made.split("# handle ")[1].split()[0]

    def _mark_ways(self) -> None:
        """Trace every packet, and mark in the trace which hook it enters and whether it leaves the last one."""
        chains = [
            f"chain {hook} {{ type filter hook {hook} priority {-450 if hook == 'prerouting' else FIRST}; "
            f"{'meta nftrace set 1;' if hook in ('prerouting', 'output') else ''} }}"
            for hook in HOOKS
        ]
        chains += [
            f"chain {hook}_end {{ type filter hook {hook} priority {LAST}; }}" for hook in ("input", "postrouting")
        ]
        at_devices = [
            f'chain ingress_{other.number} {{ type filter hook ingress device "{name}" priority {FIRST};'
            " meta nftrace set 1; }"
            for name, other in self._interfaces.items()
        ]
        tables = {"inet": chains, **({"netdev": at_devices} if self._at_devices else {})}
        for family, inside in tables.items():
            call("nft", "-f", "-", text=f"table {family} {MARKS} {{\n" + "\n".join(inside) + "\n}\n")

    def _conversation(self, steps: list[dict[str, Any]], ways: dict[tuple[Any, ...], int]) -> list[Any]:
        if not self._table.is_empty:
            self._table.empty()
        found: list[Any] = []
        for step in steps:
            played = self._step(step, found)
            iface = step.get("iface")
            met, mark = self._trace.read(sent=iface in (SELF, LO), comes_back=iface == LO)
            found.append(played and [ways.setdefault(tuple(met), len(ways)), played[1], mark])
        return [found, self._table.entries()]

    def _timed(self, one: dict[str, Any], times: int) -> list[int]:
        found = []
        for _ in range(times):
            if one.get("fresh"):
                self._reload()
            self._table.empty()
            seen: list[Any] = []
            for step in one["steps"][: one["place"]]:
                seen.append(self._step(step, seen))
            took = self._step(one["steps"][one["place"]], seen, CUT)
            if took is not None:
                found.append(took[0])
        return found

    def _step(self, step: dict[str, Any], seen: list[Any], sender: bytes = packets.SENDER) -> list[Any] | None:
        """Play one step: how long the kernel took (ns), and what left; None if there was nothing to answer."""
        if "wait" in step:
            time.sleep(step["wait"])
            return None
        arriving = self._arriving(step, seen)
        if arriving is None:
            return None
        iface, packet = arriving
        self._drain()
        if iface in (SELF, LO):
            begun = time.perf_counter_ns()
            self._send(packet)
            took = time.perf_counter_ns() - begun
        else:
            write, data = self._interfaces[iface].write, packets.frame(packet, self._receiver(iface, packet), sender)
            begun = time.perf_counter_ns()
            write(data)
            took = time.perf_counter_ns() - begun
        return [took, self._left()]

    def _arriving(self, step: dict[str, Any], found: list[Any]) -> tuple[str, packets.Packet] | None:
        """The interface and the packet of a step; None if it answers a packet that did not leave."""
        if "packet" in step:
            self._lead(step["iface"], step.get("out", SELF))
            return step["iface"], step["packet"]
        about = found[step["reply"] if "reply" in step else step["error"]]
        if about is None or not about[1]:
            return None
        iface, packet = about[1][0]
        made = packets.reply(packet, step.get("flags")) if "reply" in step else packets.error_about(packet)
        if made is None:
            return None
        return iface, {**made, **step.get("changed", {})}

    def _lead(self, iface: str, out: str) -> None:
        """Route what arrives at `iface` to `out` and the other way; what the machine sends goes to `iface` or `out`."""
        if self._ways == (iface, out):
            return
        there, back = self._interfaces.get(out), self._interfaces.get(iface)
        home = back or there
        rules = [f"priority 1002 table {1000 + home.number}"] if home else []
        if there and back:
            rules += [f"priority 1000 iif {iface} table {1000 + there.number}"]
            rules += [f"priority 1001 iif {out} table {1000 + back.number}"]
        lines = [f"rule del {rule}\n" for rule in self._rules] + [f"rule add {rule}\n" for rule in rules]
        for family in ("-4", "-6"):
            call("ip", family, "-batch", "-", text="".join(lines))
        self._rules = rules
        self._ways = iface, out

    def _send(self, packet: packets.Packet) -> None:
        """Send a packet from the machine itself."""
        family = socket.AF_INET if packet["version"] == 4 else socket.AF_INET6
        with socket.socket(family, socket.SOCK_RAW, socket.IPPROTO_RAW) as raw:
            if family == socket.AF_INET:
                raw.setsockopt(socket.IPPROTO_IP, 3, 1)  # IP_HDRINCL
            with contextlib.suppress(PermissionError, OSError):  # a rule may refuse it, or no route leads there
                raw.sendto(packets.ip_packet(packet), (packet["dst"], 0))

    def _receiver(self, iface: str, packet: packets.Packet) -> bytes:
        """The Ethernet address that a packet has which arrives at this interface."""
        destination = packet["dst"]
        if destination == "255.255.255.255" or destination in self._broadcasts:
            return b"\xff" * 6
        if destination.startswith("ff") or (packet["version"] == 4 and 224 <= int(destination.split(".")[0]) < 240):
            return packets.group_mac(destination)
        return self._interfaces[iface].mac

    def _add(self, name: str) -> Interface:
        found = self._interfaces[name] = Interface(name)
        self._leaves.register(found, select.POLLIN)
        return found

    def _left(self) -> list[Any]:
        """The packets that left since the last call, each with the name of its interface."""
        ready = {number for number, _ in self._leaves.poll(0)}
        several = [(name, other) for name, other in self._interfaces.items() if other.fileno() in ready]
        return [[name, left] for name, other in several for left in other.read()]

    def _drain(self) -> None:
        """Forget what left, and was met, on the machine's own account."""
        self._trace.read()
        self._left()


_LOADED = {
    "ipset": ("ipset", "restore"),
    "iptables": ("iptables-nft-restore", "--counters"),
    "ip6tables": ("ip6tables-nft-restore", "--counters"),
    "nft": ("nft", "-f", "-"),
}
#: Other tools for the same rules, by the form that these then have.
_FORMS: dict[str, dict[str, tuple[str, ...]]] = {
    "": {},
    "legacy": {kind: (f"{kind}-legacy-restore", "--counters") for kind in ("iptables", "ip6tables")},
    "optimized": {"nft": ("nft", "--optimize", "-f", "-")},
}


def _member(group: str, iface: str) -> socket.socket:
    """A socket by which the machine is a member of a multicast group."""
    if ":" in group:
        member = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        found = socket.inet_pton(socket.AF_INET6, group) + struct.pack("=I", socket.if_nametoindex(iface))
        member.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, found)
        return member
    member = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    found = socket.inet_aton(group) + struct.pack("=4xi", socket.if_nametoindex(iface))
    member.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, found)
    return member


def _of_family(lines: Iterable[str], family: str) -> Iterator[str]:
    """The lines of `ip -batch` for one family; those that name none, for the first."""
    for line in lines:
        named = line[:2] if line.startswith("-") else "-6" if ":" in line and line.startswith("addr") else "-4"
        if named == family:
            yield line.removeprefix(f"{family} ") if line.startswith("-") else line


def main() -> int:
    """Answer requests until the input ends."""
    bench: Bench | None = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            bench = bench or Bench()
            operations: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
                "load": bench.load,
                "translate": bench.translate,
                "prepare": bench.prepare,
                "play": bench.play,
                "price": bench.price,
                "sample": bench.sample,
                "trace": bench.trace,
            }
            answer = operations[request["op"]](request)
        except (Failed, Refusal, OSError) as error:
            answer = {"failed": str(error)}
        sys.stdout.write(json.dumps({**answer, "number": request["number"]}, separators=(",", ":")) + "\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
