# SPDX-License-Identifier: GPL-2.0-or-later
"""What a kind of ruleset file declares: how the host validates it, and how a DUT loads it and takes it away again."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from subprocess import CompletedProcess
from typing import ClassVar, Protocol

#: (line number, what is wrong, what to do about it)
Faults = Iterator[tuple[int, str, str]]
#: One run of a tool: its arguments, and its standard input if it reads any. Or a function, where no tool does it.
Call = tuple[list[str], str | None] | Callable[[], None]


def is_update(name: str) -> bool:
    """Whether a file of this name changes what the others have loaded, so that it comes last: update.nft."""
    return name.startswith("update")


class Refusal(Exception):
    """A file cannot be loaded, or the DUT lacks something. The user sees the message unchanged."""


class DutShell(Protocol):
    """The DUT, as a loader sees it."""

    def run(self, *argv: str, text: str | None = None) -> CompletedProcess[str]:
        """Run a tool whose failure does not matter."""

    def read(self, path: str) -> str:
        """The text of a file. Raises OSError."""

    def write(self, path: str, text: str) -> None:
        """Write to a file of the kernel; an error does not matter."""

    def exists(self, path: str) -> bool:
        """Whether a file exists."""

    def modules(self) -> list[str]:
        """Names of the loaded kernel modules, the youngest first."""

    def devices(self) -> list[str]:
        """Names of the Ethernet devices."""


class Loader:
    """Loads the files of one kind on the DUT and takes them away again.

    The agent makes one object for each kind and session, so attributes hold what has to be restored. What the
    files may say was validated on the host. No line of them reaches a shell.
    """

    #: The tool that reads a whole file from its standard input.
    tool: ClassVar[tuple[str, ...]] = ()
    #: Whether a reset has to compare every sysctl after a file of this kind was loaded.
    changes_sysctls: ClassVar[bool] = False

    def __init__(self, machine: DutShell) -> None:
        self.machine = machine

    def calls(self, name: str, text: str, *, each: bool) -> Sequence[Call]:
        """The calls that load this file. With `each`, one call for each line that loads something.

        Also records what the calls will change. Raises Refusal if the file cannot be loaded.
        """
        if each:
            return [(argv, None) for argv in self.one_by_one(name, text)]
        return [([*self.tool], text)]

    def one_by_one(self, name: str, text: str) -> Iterator[list[str]]:
        """One command for each rule or entry, as an administrator's shell loop would run them."""
        raise Refusal(f"{name}: such a file can only be loaded whole")

    def prepare(self) -> None:
        """Bring the machine into the state that counts as its start state. Before anything is recorded or loaded."""

    def undo(self, loaded: bool) -> None:
        """Take away all that files of this kind have brought. Kernel modules stay.

        loaded  whether a file may have been loaded since the last time, by this agent or by one before it
        """

    def entries(self) -> int:
        """How many rules and addresses of this kind a packet can meet on its way through the machine."""
        return 0

    def hooks(self) -> Iterable[str]:
        """Empty tables that every packet still traverses, such as "iptables raw"; see RulesetKind.hooks."""
        return ()

    def release(self, modules: Iterable[str]) -> None:
        """Drop what keeps these modules from being unloaded."""


class KernelView(Protocol):
    """The DUT's own tools, asked by the grader. Raises Inconclusive if the DUT does not answer."""

    def run(self, command: str, *arguments: str) -> str:
        """Standard output, whatever the exit status. Arguments are quoted for the shell."""

    def check_output(self, command: str, *arguments: str) -> str:
        """Standard output. Raises Inconclusive if the tool fails."""


@dataclass(frozen=True)
class RulesetKind:
    """A kind of ruleset file.

    name       names the kind in lab.yml, in results and to the agent
    suffix     the end of a file's name (".nft"), or the whole name where it does not begin with a dot ("pf.conf")
    position   loading order, smallest first: a rule can only name a set that exists. Undone in the reverse order.
    validate   yields the faults of a file, given its lines
    loader     loads and undoes the files on a DUT with Linux; None if such a DUT cannot load this kind
    missing_from_kernel  what the kernel does not show of a file, given the lines that are neither empty nor comments;
               None if it shows everything
    machine_setting  sets the machine up and is no rule: an exercise accepts it only where lab.yml says so
    setting_in       the first line that sets the machine up, in a kind whose other lines are rules; accepted likewise
    past_routing     the first line that sends packets on without routing them; no exercise accepts it
    named_in         names of the settings that a file changes, for exercises that accept only some of them
    cumulative       files add to each other, so they are validated together as well
    sent       what is sent to the DUT in place of the text (done on the host, whose clock does not count)
    hooks      tables of a file that every packet traverses even while they are empty ("iptables raw")
    remarks    notes on allowed files, in sentences, given their texts by name
    extremes   files that accept and that drop whatever is forwarded, by name: they must pass no exercise
    system     the DUT's system whose tools load such files
    """

    name: str
    suffix: str
    position: int
    validate: Callable[[list[str]], Faults]
    loader: type[Loader] | None
    missing_from_kernel: Callable[[KernelView, list[str]], str | None]
    machine_setting: bool = False
    setting_in: Callable[[str], str | None] | None = None
    past_routing: Callable[[str], str | None] | None = None
    named_in: Callable[[str], Sequence[str]] = lambda _text: ()
    cumulative: bool = False
    sent: Callable[[str], str] = str
    hooks: Callable[[str], Sequence[str]] = lambda _text: ()
    remarks: Callable[[Mapping[str, str]], Iterable[str]] = lambda _texts: ()
    extremes: Mapping[str, str] = field(default_factory=dict)
    system: str = "linux"
