# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks that every lab can use by name, with default texts. {class} stands for the name of the traffic class."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

#: By name, the fields of the check; a lab's `use: NAME` adds to them or replaces them.
STANDARD_CHECKS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        # Full delivery is 0.9995 to 1.0005: a packet that only one end counted within the trial is not a loss.
        "all-delivered": {
            "metric": "delivered",
            "between": (0.9995, 1.0005),
            "why": "This traffic is allowed, so every packet must arrive.",
            "pass": "All packets of the class {class} arrive.",
            "fail": "Packets of the class {class} are missing at the sink. Which rule do they match?",
        },
        "none-delivered": {
            "metric": "delivered",
            "between": (0, 0),
            "why": "This traffic is forbidden. One packet at the sink is one too many.",
            "pass": "No packet of the class {class} arrives.",
            "fail": "Packets of the class {class} still arrive.",
        },
        # The DUT counts these packets, but not by class: a few of its own may be among them.
        "all-returned": {
            "metric": "returned",
            "between": (0.9, 1),
            "why": "Hosts behind the firewall send packets, too. What is not tracked must be accepted both ways.",
            "pass": "All packets of the class {class} leave by the link that they came from.",
            "fail": "Packets of the class {class} are dropped on their way back. Which rule accepts that direction?",
        },
        "entries-loaded": {
            "metric": "entries",
            "why": "The list is part of the exercise, so all of it must be loaded.",
            "pass": "The whole list is loaded.",
            "fail": "Entries are missing. Compare your ruleset with the list.",
        },
    }
)
