# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs in terminals of their own, shown in the browser. Each goes on while no page shows it."""

import asyncio
import contextlib
import fcntl
import os
import pty
import signal
import struct
import termios
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from nicegui import ui

#: Output that a page which comes later is given (bytes), and the largest piece that is read.
KEPT, PIECE = 1 << 18, 1 << 16
#: How long a program may take to end once it was told to (s): `fwlab hold` resets the DUT.
END_S = 90.0


class Terminal:
    """One program and its terminal. `on_output` is called with all that is kept, after each piece."""

    def __init__(self, name: str, on_output: Callable[[bytes], None] = lambda _kept: None) -> None:
        self.name, self._on_output = name, on_output
        self._kept = b""
        self._screens: list[ui.xterm] = []
        self._process: asyncio.subprocess.Process | None = None
        self._master = -1
        self._typed = b""

    @property
    def running(self) -> bool:
        """Whether the program has not ended."""
        return self._process is not None and self._process.returncode is None

    async def start(self, command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
        """Start the program, in a session that the terminal controls. Raises OSError."""
        self._master, slave = pty.openpty()
        os.set_blocking(self._master, False)
        try:
            self._process = await asyncio.create_subprocess_exec(
                *("setsid", "--ctty", *command),
                stdin=slave,
                stdout=slave,
                stderr=slave,
                cwd=folder,
                env={**environment, "TERM": "xterm-256color"},
            )
        finally:
            os.close(slave)
        asyncio.get_running_loop().add_reader(self._master, self._read)

    def show(self, label: str) -> None:
        """Show it in the page that is being drawn."""
        screen = ui.xterm({"screenReaderMode": True, "scrollback": 5000}).classes("terminal")
        screen.props(f'role=group aria-label="{label}"')
        screen.on_data(lambda event: self._type(event.data))
        screen.on_resize(lambda event: self._resize(event.rows, event.cols))
        screen.write(self._kept)
        self._screens.append(screen)
        ui.timer(0.2, screen.fit, once=True)

    def end(self) -> None:
        """Tell the program to end, as Ctrl-C tells a command of fwlab."""
        if self._process is not None and self.running:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGTERM)

    async def close(self) -> None:
        """End the program and what it started, and wait for that."""
        if self._process is None:
            return
        self.end()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGHUP)  # an interactive shell ignores SIGTERM
        try:
            await asyncio.wait_for(self._process.wait(), END_S)
        except TimeoutError:
            self._process.kill()
        self._gone()

    def _read(self) -> None:
        try:
            piece = os.read(self._master, PIECE)
        except BlockingIOError:
            return
        except OSError:  # nobody has the other end any more
            piece = b""
        if not piece:
            self._gone()
            return
        self._kept = (self._kept + piece)[-KEPT:]
        self._screens = [screen for screen in self._screens if not screen.is_deleted]
        for screen in self._screens:
            screen.write(piece)
        self._on_output(self._kept)

    def _gone(self) -> None:
        if self._master < 0:
            return
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._master)
        loop.remove_writer(self._master)
        os.close(self._master)
        self._master = -1

    def _type(self, text: str) -> None:
        if self._master >= 0:
            self._typed = (self._typed + text.encode())[:KEPT]
            self._write()

    def _write(self) -> None:
        """Pass on what was typed, the rest once the terminal takes it."""
        with contextlib.suppress(OSError):
            self._typed = self._typed[os.write(self._master, self._typed) :]
        loop = asyncio.get_running_loop()
        if self._typed:
            loop.add_writer(self._master, self._write)
        else:
            loop.remove_writer(self._master)

    def _resize(self, rows: int, columns: int) -> None:
        if self._master >= 0 and 0 < rows < 1000 and 0 < columns < 1000:
            fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


class Terminals:
    """The terminals of this server, by what they are for: one of each at a time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._open = dict[str, Terminal]()

    def of(self, name: str) -> Terminal | None:
        """The terminal of this name that was started last."""
        return self._open.get(name)

    async def start(
        self,
        name: str,
        command: Sequence[str],
        environment: Mapping[str, str],
        on_output: Callable[[bytes], None] = lambda _kept: None,
    ) -> Terminal:
        """A new one, in place of the one before, which is ended. Raises OSError."""
        if before := self._open.pop(name, None):
            await before.close()
        found = self._open[name] = Terminal(name, on_output)
        await found.start(command, self.folder, environment)
        return found

    async def close(self) -> None:
        """End them all."""
        await asyncio.gather(*(one.close() for one in self._open.values()))
