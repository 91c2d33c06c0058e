# SPDX-License-Identifier: GPL-2.0-or-later
"""Probes that are timed: ICMP echo requests of the generator's kernel, which the sink's kernel answers.

They need no clock that two machines share, and they cross the DUT and its ruleset in both directions.
"""

import re
from dataclasses import dataclass

from fwlab.host.ssh import Ssh
from fwlab.model.errors import CannotMeasure

#: How long ping waits for the last answers (s).
LATE_S = 1
_TIME = re.compile(r"time=([0-9.]+) ms(?! \(DUP!\))")


@dataclass(frozen=True)
class Echoes:
    """`sent`: how many probes were sent; `round_trips_s`: how long each took that was answered, in their order."""

    sent: int
    round_trips_s: list[float]


class EchoProbes:
    """Probes from the generator that `ssh` leads to, to an IPv4 address of the sink's last link."""

    def __init__(self, ssh: Ssh, destination: str) -> None:
        self._ssh, self._destination = ssh, destination

    def send(self, count: int, interval_s: float) -> Echoes:
        """Send `count` probes, one every `interval_s` seconds, and wait for their answers. Raises CannotMeasure."""
        ping = f"LC_ALL=C ping -n -c {count} -i {interval_s:g} -W {LATE_S} {self._destination}"
        # Exit status 1: not every probe was answered. That is a result.
        said = self._ssh.run(f"{ping} || [ $? -eq 1 ]", timeout=count * interval_s * 3 + 60)
        return parse_ping(said)


def parse_ping(said: str) -> Echoes:
    """What ping (iputils) printed. Raises CannotMeasure if it is no report of ping."""
    total = re.search(r"^(\d+) packets transmitted", said, re.MULTILINE)
    if total is None:
        words = said.strip().splitlines()[-1:] or ["nothing"]
        raise CannotMeasure(f"generator: ping printed no result but: {words[0][:80]}", "fwlab doctor")
    return Echoes(int(total[1]), [float(milliseconds) / 1e3 for milliseconds in _TIME.findall(said)])
