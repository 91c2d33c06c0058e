# SPDX-License-Identifier: GPL-2.0-or-later
"""RPS and RFS: which CPUs may serve the packets of a receive queue, one setting a line.

The kernel has these settings in /sys/class/net/DEVICE/queues/rx-N (Documentation/networking/scaling.rst). Both are 0 on
every queue at first, which means off, so nothing has to be remembered to undo them.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from fwlab.rulesets.kind import Call, Faults, KernelView, Loader, RulesetKind
from fwlab.rulesets.kinds.lines import LINKS, instructions, other_link

#: More queues than a NIC of the DUT has.
MAX_QUEUES = 256
#: Entries of a queue's flow table. Each takes 8 bytes of the DUT's memory.
MAX_FLOWS = 1 << 20
_QUEUE = re.compile(r"rx-(0|[1-9][0-9]{0,2})", re.ASCII)
#: As the kernel reads and prints it: hexadecimal, with a comma after each 32 bits.
_MASK = re.compile(r"[0-9a-f]{1,8}(,[0-9a-f]{8}){0,7}")
_COUNT = re.compile(r"[0-9]{1,9}", re.ASCII)


class Setting(NamedTuple):
    """One line: the file of the queue, and what is written to it."""

    path: str
    value: str

    @property
    def number(self) -> int:
        """The value; of a mask, its bits."""
        mask = self.path.endswith("/rps_cpus")
        return int(self.value.replace(",", ""), 16 if mask else 10)


def path_of(device: str, queue: str, name: str) -> str:
    """The kernel's file of one setting."""
    return f"/sys/class/net/{device}/queues/{queue}/{name}"


def validate(lines: list[str]) -> Faults:
    """A line is `eth0 rx-0 rps_cpus 3`: the device, its receive queue, the setting and its value."""
    how = "write `eth0 rx-0 rps_cpus 3` (a mask of CPUs, in hexadecimal) or `eth0 rx-0 rps_flow_cnt 4096`"
    for number, words in instructions(lines):
        queue = _QUEUE.fullmatch(words[1]) if len(words) > 1 else None
        if words[0] not in LINKS:
            yield number, *other_link(words[0])
        elif queue is None or int(queue[1]) >= MAX_QUEUES:
            yield number, f"{' '.join(words[1:2]) or 'nothing'} is not a receive queue", how
        elif len(words) != 4:
            yield number, f"{' '.join(words[2:8]) or 'nothing'} is not one setting and its value", how
        elif words[2] not in ("rps_cpus", "rps_flow_cnt"):
            yield number, f"{words[2]} is not a setting that a reset can restore", how
        elif not (_MASK if words[2] == "rps_cpus" else _COUNT).fullmatch(words[3]):
            yield number, f"{words[2]} cannot be {words[3]}", how
        elif words[2] == "rps_flow_cnt" and int(words[3]) > MAX_FLOWS:
            yield number, f"rps_flow_cnt is larger than {MAX_FLOWS}", "make the flow table smaller"


def settings(lines: list[str]) -> Iterator[Setting]:
    """The settings of a valid file."""
    for _, (device, queue, name, value) in instructions(lines):
        yield Setting(path_of(device, queue, name), value)


def missing_from_kernel(shown: KernelView, lines: list[str]) -> str | None:
    """The first setting with another value; of two lines for the same setting the last one counts."""
    for path, wanted in {setting.path: setting for setting in settings(lines)}.items():
        held = shown.run("cat %s", path).strip()
        least = _least(wanted)
        if not held or Setting(path, held).number != least:
            return f"{path} = {wanted.value} (it is {held or 'unknown'})"
    return None


def _least(wanted: Setting) -> int:
    """The number that the kernel shows: it rounds the size of a flow table up to a power of two."""
    if wanted.path.endswith("/rps_cpus") or wanted.number < 2:
        return wanted.number
    return int(1 << (wanted.number - 1).bit_length())


class RpsLoader(Loader):
    """Writes each value to the queue's file. A file that does not exist, or refuses the value, fails."""

    def calls(self, name: str, text: str, *, each: bool) -> Sequence[Call]:
        return [(["tee", setting.path], setting.value + "\n") for setting in settings(text.split("\n"))]

    def undo(self, loaded: bool) -> None:
        if not loaded:
            return
        for device in self.machine.devices():
            for queue in range(MAX_QUEUES):
                paths = [path_of(device, f"rx-{queue}", name) for name in ("rps_flow_cnt", "rps_cpus")]
                if not self.machine.exists(paths[0]):
                    break
                for path in paths:
                    self.machine.write(path, "0\n")


#: After ethtool, which may change the number of queues.
KIND = RulesetKind(
    name="rps",
    suffix=".rps",
    position=15,
    validate=validate,
    loader=RpsLoader,
    missing_from_kernel=missing_from_kernel,
    machine_setting=True,
)
