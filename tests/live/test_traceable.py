# SPDX-License-Identifier: GPL-2.0-or-later
"""QEMU may be traced where Yama is in force: tried on the sink, whose kernel has Yama, with another program as QEMU."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from fwlab.testbed import vcpu_throttle
from tests import ROOT

from .conftest import Checkout

pytestmark = pytest.mark.live

WRAPPER = ROOT / "provision" / "host" / "qemu-traceable"
#: Starts the program by the wrapper and by itself, and throttles each from a process that is not its parent.
SCRIPT = """
cd "$(mktemp -d)" && cp /bin/sleep qemu-system-x86_64
printf %s {wrapper} > wrapper && printf %s {throttle} > throttle
sudo sysctl -q kernel.yama.ptrace_scope=1
PATH="$PWD:$PATH" python3 wrapper 120 & allowed=$!
./qemu-system-x86_64 120 & by_itself=$!
until grep -q qemu /proc/$allowed/comm; do sleep 0.1; done
for process in $allowed $by_itself; do
    timeout --preserve-status 10 python3 throttle $process 0.01 0.01
    echo $?
done 2>&1
kill $allowed $by_itself
sudo sysctl -q kernel.yama.ptrace_scope=0
"""


def test_a_sibling_may_trace_what_the_wrapper_started(lab: Checkout) -> None:
    texts = {"wrapper": WRAPPER.read_text(), "throttle": Path(vcpu_throttle.__file__).read_text()}
    script = SCRIPT.format(**{name: shlex.quote(text) for name, text in texts.items()})
    assert lab.run("sink", script).split("\n")[:4] == ["throttling", "0", "Operation not permitted", "1"]
