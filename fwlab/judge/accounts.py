# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether all packets that left the DUT were the traffic's own, as routing leaves them, and each of them once.

And whether the DUT had time for them: during a grading nobody is logged in to it, so whatever reads the kernel's log
has only the ruleset's lines to read.
"""

from collections import Counter
from collections.abc import Iterator

from fwlab.model.results import Measured
from fwlab.model.trial import Delivery

#: The programs that read the kernel's log. From this share on of all that ran beside packets, they are the cause.
LOG_READERS, CAUSE = ("systemd-journal", "rsyslogd"), 0.5
#: QEMU loses no packet and counts none twice. Up to this many may still be an accident.
STRAY = 2


def foreign(measured: Measured) -> str | None:
    """What left the DUT that must not, in words; None if nothing did."""
    counts: Counter[str] = Counter()
    for delivery in _deliveries(measured):
        counts.update(delivery.foreign)
        counts.update(_copies(delivery))
    for play in measured.paced:
        counts.update(play.foreign)
    found = [f"{count} packets were {what}" for what, count in counts.items() if count > STRAY]
    return f"what left the DUT is not what came in: {'; '.join(found)}" if found else None


def _deliveries(measured: Measured) -> Iterator[Delivery]:
    yield from measured.deliveries
    yield from measured.returned
    yield from (play for play in (measured.filled, measured.flood) if play is not None)


def _copies(delivery: Delivery) -> dict[str, int]:
    """Packets that left more often than they came, at a load of which none was lost; recorded by QEMU."""
    if not delivery.returned or delivery.intended_load is None:
        return {}
    more = (delivery.arrived.get(name, 0) - offered for name, offered in delivery.offered.items())
    return {"sent more than once": sum(max(0, count) for count in more)}


def logged(measured: Measured) -> str | None:
    """That the ruleset's lines in the log kept the DUT from its packets, in words; None if they did not."""
    share = sum(measured.disturbed_by.get(name, 0.0) for name in LOG_READERS)
    if share < CAUSE or not measured.problems:
        return None
    return f"the ruleset logs so many packets that reading the log took {share:.0%} of the DUT's other time"
