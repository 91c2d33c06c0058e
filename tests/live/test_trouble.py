# SPDX-License-Identifier: GPL-2.0-or-later
"""Failures on real machines: each gives a message and an exit code, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time

import pytest

from fwlab.testbed.qemu_process import qemu_of

from .conftest import LAB, TOPOLOGY, Checkout, ssh_port

pytestmark = pytest.mark.live

#: Finds a session's agent on the DUT.
AGENT = "pgrep -f '^python3 -Su /run/fwlab-agent' || true"
#: Seconds from the agent's start to the first trials: load the ruleset, let the flood settle, throttle the DUT.
TRIALS_BEGIN_S = 10


def measuring(lab: Checkout) -> subprocess.Popen[str]:
    """Start a long run and wait until it measures."""
    process = lab.start(*lab.fwlab_command("run", LAB, "ipset-1000", "--trials", "400", "--json"))
    deadline = time.monotonic() + 240
    while not lab.run("dut", AGENT).strip():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, "no measurement started"
        time.sleep(1)
    time.sleep(TRIALS_BEGIN_S)
    return process


def test_the_agent_ends_when_its_session_is_killed(lab: Checkout) -> None:
    """Otherwise it would go on measuring and disturb the next session."""
    process = measuring(lab)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    deadline = time.monotonic() + 60
    while lab.run("dut", AGENT).strip():
        assert time.monotonic() < deadline, "the agent still runs"
    assert lab.run("dut", "sudo sh -c 'lsmod | grep -c ^ip_set || true'").strip() == "0"


def test_a_machine_killed_in_a_trial_is_inconclusive(lab: Checkout) -> None:
    process = measuring(lab)
    os.kill(qemu_of(TOPOLOGY.ports.address, ssh_port("dut")), signal.SIGKILL)
    out, errors = process.communicate(timeout=600)
    assert process.returncode == 3, out + errors
    assert "Traceback" not in errors
    assert '"verdict": "inconclusive"' in out


def test_a_lab_without_its_dut_is_reported(lab: Checkout) -> None:
    done = lab.fwlab("run", LAB, "raw-drop")
    assert done.returncode == 3
    assert f"{LAB}: not running: dut (shut off)\n  next: vagrant up {LAB}" in done.stderr


def test_a_port_in_use_is_reported(lab: Checkout) -> None:
    lab.vagrant("destroy", "-f", LAB)
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind((TOPOLOGY.ports.address, ssh_port("dut")))
        holder.listen()
        done = lab.call("vagrant", "up", LAB)
    assert done.returncode != 0
    assert str(ssh_port("dut")) in done.stdout + done.stderr
    assert "FWLAB_PORT_OFFSET" in done.stdout + done.stderr
    assert lab.left_behind() == []


def test_an_interrupt_leaves_nothing_behind(lab: Checkout) -> None:
    process = lab.start(*lab.fwlab_command("run", LAB, "raw-drop"))
    deadline = time.monotonic() + 240
    while not lab.left_behind() and time.monotonic() < deadline:
        time.sleep(1)
    assert lab.left_behind(), "no machine was started"
    os.kill(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 130, errors
    assert lab.left_behind() == []
    assert "Traceback" not in errors
