# SPDX-License-Identifier: GPL-2.0-or-later
"""`fwlab worker` on fake machines: python -m tests.fakes.fake_worker ADDRESS NAME [VERSION [KEY]]"""

from __future__ import annotations

import sys
from pathlib import Path

from fwlab.cli.grade import worker_command
from fwlab.grading import grader
from tests.fakes import fake_class

grader.open_session = fake_class.fake_session
grader.Grader.host = lambda *_: fake_class.FakeHost()
address, name, version, key, *_ = [*sys.argv[1:], "", "", ""]
grader.__version__ = version or grader.__version__

if __name__ == "__main__":
    worker_command(address, name=name, key=Path(key) if key else None)
