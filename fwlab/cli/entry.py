# SPDX-License-Identifier: GPL-2.0-or-later
"""Where `fwlab` begins. Importing the rest takes a second; Ctrl-C in it leaves as Ctrl-C anywhere else does."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType

#: 128 + SIGINT, as shells have it.
EXIT_INTERRUPTED = 130


def main() -> None:
    # An exception would surface amid somebody's import, in any of several forms. Nothing has been started by now.
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    if before[signal.SIGINT] is signal.default_int_handler:  # else whoever started this wants it deaf
        for number in before:
            signal.signal(number, _leave)
    from fwlab.cli.main import main as command_line

    for number, handler in before.items():
        signal.signal(number, handler)
    command_line()


def _leave(_number: int, _frame: FrameType | None) -> None:
    os.write(sys.stderr.fileno(), b"fwlab: interrupted; nothing was started\n")
    os._exit(EXIT_INTERRUPTED)


if __name__ == "__main__":
    main()
