# SPDX-License-Identifier: GPL-2.0-or-later
"""Run libvirt's and other programs on this host."""

import subprocess

from fwlab.host.environment import libvirt_uri


class Failed(OSError):
    """A program failed. The text is its name and the last line of what it said."""


def output_of(command: list[str], text: str = "") -> str:
    """What a command prints. `text`: its input. Raises OSError if it fails or is missing."""
    done = subprocess.run(command, input=text, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode:
        said = done.stderr.strip().splitlines() or [f"exit {done.returncode}"]
        raise Failed(f"{command[0]}: {said[-1].strip()}")
    return done.stdout


def virsh(*words: str, text: str = "") -> str:
    """What virsh prints."""
    return output_of(["virsh", "--quiet", "--connect", libvirt_uri(), *words], text)
