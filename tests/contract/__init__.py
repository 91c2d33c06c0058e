# SPDX-License-Identifier: GPL-2.0-or-later
"""Contracts that every kind of a concept fulfils, a plug-in's too. The plug-ins are in `plugin`."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

from tests import ROOT

PLUGINS = Path(__file__).with_name("plugin")


def python(
    *words: Any, plugins: Path | None = PLUGINS, checkout: Path = ROOT, **extra: str
) -> subprocess.CompletedProcess[str]:
    """Run Python in a process of its own, since entry points are found at its start, with this folder of plug-ins.

    words  as on its command line, or a script and its arguments; `extra`: variables. Nothing else is set for fwlab.
    """
    first, *rest = map(str, words)
    argv = ["-c", textwrap.dedent(first), *rest] if "\n" in first else [first, *rest]
    own = {name: value for name, value in os.environ.items() if not name.startswith("FWLAB_")}
    own["PYTHONPATH"] = os.pathsep.join(map(str, [plugins or ROOT, ROOT]))
    return subprocess.run(
        [sys.executable, *argv], cwd=checkout, env=own | extra, capture_output=True, text=True, timeout=120, check=False
    )
