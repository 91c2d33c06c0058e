# SPDX-License-Identifier: GPL-2.0-or-later
"""Run the image build as a command, in this environment instead of .venv."""

from __future__ import annotations

import os
import subprocess
import sys

from tests import ROOT

PACKER = ROOT / "packer"
#: The settings of a content key without a cloud image.
SETTINGS = {"base_url": "", "base_checksum": ""}


def build(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """`packer/build WORDS` with these variables added to the environment."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    argv = [sys.executable, "-m", "fwlab.images", *words]
    return subprocess.run(argv, capture_output=True, text=True, env=env, check=False)
