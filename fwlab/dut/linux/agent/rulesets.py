# SPDX-License-Identifier: GPL-2.0-or-later
"""Loads rulesets, each file with the tool of its kind and timed, and takes them away again."""

import base64
import contextlib
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping
from signal import SIGKILL
from typing import Any

from fwlab.dut.linux.agent.kernel import Kernel
from fwlab.rulesets.kind import Refusal, RulesetKind

#: Characters of a tool's message that are passed on.
MAX_MESSAGE = 2000


@contextlib.contextmanager
def quick_addresses() -> Iterator[None]:
    """Let tools read numeric addresses faster while the context is open.

    They ask the C library's resolver, which looks each time whether /etc/resolv.conf has changed. That is a quarter of
    the time of `ipset restore`. See resolv.conf(5), no-reload.
    """
    os.environ["RES_OPTIONS"] = "no-reload"
    try:
        yield
    finally:
        del os.environ["RES_OPTIONS"]


def crashed(signal: int, message: str) -> str:
    """What became of a tool that a signal ended, and what helps. It may have had no time to say anything."""
    said = f", and said: {message}" if message else " without a message"
    helps = "it gives no line: remove statements until it loads" if signal != SIGKILL else "the DUT may lack memory"
    return f"crashed (signal {signal}){said}; {helps}"


class Rulesets:
    """What is loaded on the DUT.

    own      kinds that this agent has loaded since the last undo
    changed  kinds that were undone since the start state was last compared
    """

    def __init__(self, kernel: Kernel, kinds: Mapping[str, RulesetKind]) -> None:
        self._kernel = kernel
        self._loaders = {name: kind.loader(kernel) for name, kind in kinds.items() if kind.loader is not None}
        # An earlier agent may have been killed, so the first undo covers all kinds.
        self._unknown = set(self._loaders)
        self.own: set[str] = set()
        self.changed: set[str] = set()

    def load(self, files: list[dict[str, Any]], *, each: bool, times: int) -> list[list[float]]:
        """Load the files in order, `times` times over. Returns the busy seconds of each file, each time.

        Raises Refusal, OSError, ValueError or MemoryError if a file cannot be loaded; some may be loaded then.
        """
        texts = [zlib.decompress(base64.b64decode(file["packed"])).decode() for file in files]
        runs = [self._apply(files, texts, each)]
        for _ in range(times - 1):
            self.undo()
            runs.append(self._apply(files, texts, each))
        return runs

    def _apply(self, files: list[dict[str, Any]], texts: list[str], each: bool) -> list[float]:
        seconds = []
        for file, text in zip(files, texts, strict=True):
            name, kind = file["name"], file["kind"]
            if kind not in self._loaders:
                raise Refusal(f"{name}: this DUT has no tool for such a file ({kind})")
            self.own.add(kind)
            planned = self._loaders[kind].calls(name, text, each=each)
            before = self._kernel.busy_clock()
            for call in planned:
                if callable(call):
                    call()
                else:
                    self._call(name, *call)
            seconds.append(self._kernel.busy_clock() - before)
        return seconds

    def _call(self, name: str, argv: list[str], text: str | None) -> None:
        done = self._kernel.call(argv, text)
        if done.returncode:
            message = (done.stderr or done.stdout).strip()[:MAX_MESSAGE]
            if done.returncode < 0:
                raise Refusal(f"{name}: {argv[0]} {crashed(-done.returncode, message)}")
            raise Refusal(f"{name}: {argv[0]} said (exit {done.returncode}): {message}")

    def prepare(self) -> None:
        """What has to be done before the start state is recorded."""
        for loader in self._loaders.values():
            loader.prepare()

    def undo(self) -> None:
        """Take away every rule, set, filter and setting, last kind first. Modules stay: loading again is then timed
        without them."""
        for name, loader in reversed(self._loaders.items()):
            loader.undo(name in self.own | self._unknown)
        self.changed |= self.own | self._unknown
        self.own.clear()
        self._unknown.clear()

    def changed_sysctls(self) -> bool:
        """Whether a kind that changes sysctls was undone since the last comparison. Asking ends it."""
        changed = any(loader.changes_sysctls for name, loader in self._loaders.items() if name in self.changed)
        self.changed.clear()
        return changed

    def entries(self) -> dict[str, int]:
        """Rules and addresses that a passing packet can meet, by kind."""
        return {name: loader.entries() for name, loader in self._loaders.items()}

    def hooks(self) -> set[str]:
        """What every packet visits although it is empty: "iptables raw", ..."""
        return {hook for loader in self._loaders.values() for hook in loader.hooks()}

    def release(self, modules: Iterable[str]) -> None:
        """Drop what keeps these modules from being unloaded."""
        names = list(modules)
        for loader in self._loaders.values():
            loader.release(names)
