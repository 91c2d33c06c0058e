# SPDX-License-Identifier: GPL-2.0-or-later
"""The host's end of a bench: one ruleset on one kernel, this host's or the DUT's."""

import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from fwlab.dut.agent_client import with_line
from fwlab.dut.linux.client import modules_archive
from fwlab.host.conversation import Conversation, Ended
from fwlab.host.environment import timeout_scale
from fwlab.host.ssh import Ssh
from fwlab.model.errors import BadInput, CannotMeasure, Refused
from fwlab.model.ruleset import RulesetFile
from fwlab.own.borders import Step
from fwlab.own.files import HOW, MAX_RULES, devices, too_many, without_hardware
from fwlab.own.layout import Layout
from fwlab.own.reading import read
from fwlab.own.rules import Key, Rules
from fwlab.own.walks import Walk, walk

#: Starts the program. Its three streams are pipes.
Start = Callable[[], subprocess.Popen[bytes]]
MODULE = "fwlab.own.bench"
#: Modules that it needs.
USES = (
    "fwlab.own.packets",
    "fwlab.rulesets.kind",
    *(f"fwlab.dut.linux.agent.{name}" for name in ("netlink", "perf_samples", "counters", "kernel", "tasks")),
)
FOLDER = "/run/fwlab-own"
#: Conversations of one request, so that none takes long.
MANY = 400
#: Rules that treat a packet by what came before it are loaded again after this number of conversations.
EVERY = 25
#: Packets of one request that times them.
FEW = 50
#: Families whose chains packets meet.
FAMILIES = ("ip", "ip6", "inet", "netdev")
#: Time limits (s): to load rules, and for one request to play.
LOADING_S, PLAYING_S = 300.0, 600.0

#: The walks of a conversation's steps (None: nothing to answer), and what it left in the connection table.
Played = tuple[list[Walk | None], list[str]]


class Timed(NamedTuple):
    """A packet to be timed: a step of a conversation. fresh: load the rules again before each time."""

    steps: list[Step]
    place: int
    fresh: bool = False


def here() -> subprocess.Popen[bytes]:
    """A bench on this host; an ordinary user's in a user namespace, where the host allows one."""
    as_root = [] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user"]
    argv = [*as_root, sys.executable, "-m", MODULE]
    # Debian has these tools in /usr/sbin, which an ordinary user's PATH lacks.
    tools = {**os.environ, "PATH": f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"}
    return subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=tools)


def on(ssh: Ssh) -> Start:
    """Benches on a node. Saves the program there."""
    packed = modules_archive((MODULE, *USES))
    ssh.run(f"rm -rf {FOLDER} && mkdir {FOLDER} && tar -xzC {FOLDER} && modprobe tun", data=packed)
    return lambda: ssh.open(f"cd {FOLDER} && exec python3 -S -m {MODULE}")


class Bench:
    """One ruleset in a namespace of its own. Opened by `opened`."""

    def __init__(self, start: Start, name: str) -> None:
        self.name, self._conversation = name, Conversation(start())
        self.kernel, self.listed, self._remembers = "", "", False
        self._translating: frozenset[tuple[str, str, str]] = frozenset()

    def close(self) -> None:
        """End the program, and its namespace with it."""
        self._conversation.close(10 * timeout_scale())

    def load(self, files: Sequence[RulesetFile], form: str = "") -> Rules:
        """Load the rules. Raises Refused with the tool's own message, CannotMeasure.

        form  "legacy": by iptables-legacy, which nf_tables cannot trace; "optimized": by nft --optimize
        """
        given = [{"name": file.name, "kind": file.kind, "text": without_hardware(file.text)} for file in files]
        answer = self._ask("load", LOADING_S, refusable=True, files=given, form=form, devices=devices(files))
        self.kernel, self.listed = answer["kernel"], answer["texts"]
        rules = read(answer["nft"], answer["texts"], answer["saved"], answer["sets"])
        self._remembers, self._translating = rules.remembers, rules.translating
        return rules

    def translated(self, file: RulesetFile) -> str:
        """The file as iptables-restore-translate prints it. Raises Refused with the tool's message, CannotMeasure."""
        answer = self._ask("translate", LOADING_S, refusable=True, kind=file.kind, text=file.text)
        return str(answer["text"])

    def prepare(self, layout: Layout) -> None:
        """Make the interfaces. Raises CannotMeasure."""
        self._ask("prepare", LOADING_S, interfaces=layout.addresses(), own=list(layout.own), groups=list(layout.groups))

    def play(self, conversations: Sequence[list[Step]], *, fresh: bool = False) -> Iterator[Played]:
        """Play conversations. fresh: load the rules again before each, so that no limit remembers another."""
        for first in range(0, len(conversations), MANY):
            some = conversations[first : first + MANY]
            every = 1 if fresh else EVERY if self._remembers else 0
            answer = self._ask("play", PLAYING_S, conversations=list(some), every=every)
            ways = answer["ways"]
            for steps, states in answer["played"]:
                walks = [step and walk(ways[step[0]], step[1], step[2], self._translating) for step in steps]
                yield walks, states

    @contextlib.contextmanager
    def untraced(self) -> Iterator[None]:
        """Trace nothing while the context is open."""
        self._ask("trace", LOADING_S, on=False)
        yield
        self._ask("trace", LOADING_S, on=True)

    def price(self, packets: Sequence[Timed], times: int, cut: Key | None = None) -> Iterator[list[int]]:
        """How long the kernel takes for each of these packets, `times` times over (ns of its own clock).

        While any bench on this kernel traces, all of them take longer.

        cut  drop the packets before this rule, or before a policy decides; only such as arrive at an interface
        """
        for first in range(0, len(packets), FEW):
            some = [one._asdict() for one in packets[first : first + FEW]]
            yield from self._ask("price", PLAYING_S, packets=some, times=times, cut=cut)["ns"]

    def sample(self, packet: Timed, rates: Sequence[int]) -> dict[str, int]:
        """Call stacks of the kernel while it handles this packet again and again, with their samples at these rates."""
        found: dict[str, int] = self._ask("sample", PLAYING_S, packet=packet._asdict(), rates=list(rates))["stacks"]
        return found

    def _ask(self, operation: str, timeout: float, *, refusable: bool = False, **fields: Any) -> dict[str, Any]:
        try:
            number = self._conversation.send(operation, **fields)
            answer, _ = self._conversation.receive(number, timeout * timeout_scale())
        except Ended as error:
            words = self._conversation.last_words(10).decode(errors="replace").strip().splitlines()
            reason = f": {words[-1]}" if words else ""
            raise CannotMeasure(f"the bench ended{reason}", "fwlab doctor") from error
        except TimeoutError as error:
            raise CannotMeasure(f"no answer from the bench within {timeout:g} s", "fwlab doctor") from error
        if "failed" in answer:
            message = f"{self.name}: {answer['failed']}"
            if refusable and " said: " in message:
                raise Refused(message, "correct the file and try again")
            raise CannotMeasure(message, "fwlab doctor, or leave --here out")
        return answer


@contextlib.contextmanager
def opened(start: Start, name: str) -> Iterator[Bench]:
    """A bench while the context is open."""
    bench = Bench(start, name)
    try:
        yield bench
    finally:
        bench.close()


def loaded(bench: Bench, files: Sequence[RulesetFile]) -> Rules:
    """The rules of these files on a bench. Raises BadInput with the line that its kernel or its tools refuse."""
    try:
        rules = bench.load(files)
    except Refused as error:
        said = with_line(_LENGTHY.sub("", error.message.removeprefix(f"{bench.name}: ")), files)
        side = bench.name[:4] if bench.name.startswith(("OLD ", "NEW ")) else ""
        raise BadInput(f"{side}{said}", _next_of(said)) from error
    if len(rules.rules) > MAX_RULES:
        raise too_many(bench.name, len(rules.rules))
    if not any(chain.hook and chain.family in FAMILIES for chain in rules.chains.values()):
        raise BadInput(f"{bench.name}: no chain that packets meet", HOW)
    return rules


#: How the tools say that a match or a target is not known, by themselves or by the kernel.
_LACKS = re.compile(
    r"Couldn't load|missing kernel module|not supported|No chain/target/match|"
    r"(process rule|failed)[^\n]*(No such file or directory|Protocol not available|Operation not supported)"
)
#: What iptables says besides.
_LENGTHY = re.compile(r"\n+Try `[^\n]*|\n(?=\n)|(?<= said: )\S+ v[\d.]+ \(nf_tables\): ")


def _next_of(said: str) -> str:
    """What to do about rules that a tool refuses."""
    if _LACKS.search(said):
        return "leave that line out of both files, or ask a kernel that has its module: with or without --here"
    return "correct the file and try again"
