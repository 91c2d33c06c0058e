# SPDX-License-Identifier: GPL-2.0-or-later
"""The entry point of `fwlab`. It handles Ctrl-C while the other modules are imported, which takes a second."""

import gc
import os
import signal
import sys
from types import FrameType

from fwlab.cli import EXIT_INTERRUPTED


def main() -> None:
    """Run the command line. Ctrl-C during start-up ends it without a traceback."""
    # A KeyboardInterrupt inside an import can surface as some other exception. Nothing has been started yet.
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    if before[signal.SIGINT] is signal.default_int_handler:  # otherwise the parent process has disabled Ctrl-C
        for number in before:
            signal.signal(number, _leave)
    # Hardly anything that is imported becomes garbage. Looking for some takes a tenth of the start.
    gc.disable()
    from fwlab.cli.main import main as command_line

    gc.freeze()
    gc.enable()
    for number, handler in before.items():
        signal.signal(number, handler)
    command_line()


def _leave(_number: int, _frame: FrameType | None) -> None:
    os.write(sys.stderr.fileno(), b"fwlab: interrupted; nothing was started\n")
    os._exit(EXIT_INTERRUPTED)


if __name__ == "__main__":
    main()
