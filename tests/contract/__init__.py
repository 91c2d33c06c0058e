# SPDX-License-Identifier: GPL-2.0-or-later
"""Contracts that every kind of a concept fulfils, a plug-in's too. The plug-ins are in `plugin`."""

from __future__ import annotations

import os
from pathlib import Path

from tests import ROOT

PLUGINS = Path(__file__).with_name("plugin")


def environment(*plugins: Path) -> dict[str, str]:
    """Variables of a process in which these folders of plug-ins are installed; nothing is set for fwlab."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("FWLAB_")}
    return {**own, "PYTHONPATH": os.pathsep.join(map(str, (*plugins, ROOT)))}
