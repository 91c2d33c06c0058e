# SPDX-License-Identifier: GPL-2.0-or-later
"""Muting: what the DUT would send on is dropped behind all of its rules, where nothing but its memory is asked for."""

import json

from fwlab.dut.linux.agent import start_state
from fwlab.dut.linux.agent.kernel import quiet


def mute(request):
    """From now on nothing leaves by `device`, unless a ruleset has put a queue of its own there: that one stays.

    To send on costs this machine and the next one more of the host than to track, and a full ring tracks nothing.
    """
    root = root_of(request["device"])
    if root.get("handle", "0:") != "0:":  # the kernel's own has no number
        return {"muted": False}
    start_state.loaded_kinds.add("tc")  # to be taken away, however this conversation ends
    return {"muted": not quiet("tc", "qdisc", "replace", "dev", request["device"], "root", "blackhole").returncode}


def unmute(request):
    """The kernel's own queue again, after a `mute` that said yes."""
    quiet("tc", "qdisc", "del", "dev", request["device"], "root")
    return {}


def root_of(device):
    """The queue that packets leave by, as tc tells of it; empty where there is none."""
    shown = quiet("tc", "-j", "qdisc", "show", "dev", device).stdout
    return next((queue for queue in json.loads(shown or "[]") if queue.get("root")), {})
