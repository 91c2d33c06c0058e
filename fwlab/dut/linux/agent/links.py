# SPDX-License-Identifier: GPL-2.0-or-later
"""Links and routes: what a ruleset changes there, and what the links were set to before."""

import re

from fwlab.dut.linux.agent import network_state
from fwlab.dut.linux.agent.kernel import quiet

#: Routes that a ruleset brings carry this protocol number, by which they are found again (any number that nobody
#: else uses would do: /etc/iproute2/rt_protos).
PROTOCOL = "200"
#: A line that adds a route, without the family before it and the comment behind it. One pass, for there may be 100 000.
MARKED = re.compile(r"^[ \t]*(?:-[46][ \t]+)?(route[^#\n]*)(?:#.*)?$", re.MULTILINE)
#: Features, rings, coalescing, channels: the option of ethtool that shows what its capital sets.
SHOWN = {"-K": "-k", "-G": "-g", "-C": "-c", "-L": "-l"}

#: (device, option) -> settings as they were.
changed_links = {}


def words(text):
    """The words of every line that says something."""
    for line in text.split("\n"):
        found = line.partition("#")[0].split()
        if found:
            yield found


def link_calls(text):
    """One call of ethtool for each line; what the line may change is noted first."""
    for device, option, *rest in words(text):
        if (device, option) not in changed_links:
            changed_links[device, option] = settings(device, option)
        yield ["ethtool", option, device, *rest]


def settings(device, option):
    """What can be set, by the name that sets it: {"tx-checksum-ipv4": "on", ...}."""
    shown = quiet("ethtool", SHOWN[option], device).stdout
    if "Current hardware settings:" in shown:
        shown = shown.split("Current hardware settings:")[1]
    found = {}
    for line in shown.splitlines():
        name, _, value = line.partition(":")
        name, value = name.strip().lower().replace(" ", "-"), value.strip()
        wanted = re.search(r"\[requested (on|off)\]", value)
        if wanted:
            value = wanted[1]
        if re.fullmatch(r"on|off|\d+", value):
            found[name] = value
    return found


def restore_links():
    """Setting by setting, as they were. Some hang together, so a second round sets what the first could not."""
    for (device, option), before in changed_links.items():
        for _ in range(2):
            now = settings(device, option)
            for name, value in before.items():
                if now.get(name) != value:
                    quiet("ethtool", option, device, name, value)
    changed_links.clear()


def marked(text):
    """The lines for one `ip -batch`, each route marked as ours. The host does this, on whose clock it costs nothing."""
    # ip knows the family by the address; within a batch it does not take the option.
    return MARKED.sub(rf"\1 proto {PROTOCOL}", text)


def quieten_networkd():
    """Before routes are loaded: networkd listens to each one, at the cost of more than half of their loading.

    Its work is done: the links stay as it has set them up.
    """
    quiet("systemctl", "stop", "systemd-networkd.socket", "systemd-networkd.service")


def flush_routes():
    """Take the ruleset's routes away. What one of them replaced comes back when the start state is compared."""
    for family in network_state.FAMILIES:
        quiet("ip", family, "route", "flush", "proto", PROTOCOL)
