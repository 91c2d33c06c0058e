# SPDX-License-Identifier: GPL-2.0-or-later
"""Run Vagrant offline, with a script in its process that looks at what it has loaded."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from tests.fakes.machines_checkout import environment

#: Runs when Vagrant ends. `shown` is printed as JSON.
HEAD = """
at_exit do
  require "json"
  environment = ObjectSpace.each_object(Vagrant::Environment).first
  provided = VagrantPlugins::ProviderLibvirt::Action
  ui = Vagrant::UI::Silent.new
  machine = ->(name) { environment.machine(name.to_sym, :libvirt) }
  shown = begin
    %s
  end
  puts "SHOWN #{JSON.generate(shown)}"
end
"""


def vagrant(checkout: Path, *words: str, cwd: Path | None = None, **extra: str) -> subprocess.CompletedProcess[str]:
    """A command in the checkout, or in the folder `cwd`."""
    return subprocess.run(
        ["vagrant", *words],
        cwd=cwd or checkout,
        env=environment(checkout, **extra),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=100,
    )


def shown(checkout: Path, script: str, **extra: str) -> Any:
    """The value of a Ruby script that runs in Vagrant's process after the Vagrantfile was loaded."""
    vagrantfile = checkout / "Vagrantfile"
    text = vagrantfile.read_text()
    vagrantfile.write_text(text + HEAD % script)
    done = vagrant(checkout, "validate", **extra)
    vagrantfile.write_text(text)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line for line in done.stdout.splitlines() if line.startswith("SHOWN ")]
    assert lines, done.stdout + done.stderr
    return json.loads(lines[0].removeprefix("SHOWN "))
