# SPDX-License-Identifier: GPL-2.0-or-later
"""What the programs that tests start inherit, whoever started the tests."""

import importlib.util
import os
import signal
import sys

import pytest

if importlib.util.find_spec("fwlab_coresim") is None:
    pytest.exit("the .venv is older than this checkout: run provision/host/venv", returncode=2)

# Where the environment forbids it (PYTHONDONTWRITEBYTECODE), each of the hundreds of commands that tests start would
# compile the whole package again, which takes as long as the rest of its start.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# A shell starts a job in the background with SIGINT ignored, and nohup starts a command with SIGHUP ignored.
for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, handler)
