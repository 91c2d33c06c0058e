# SPDX-License-Identifier: GPL-2.0-or-later
"""`fwlab worker` on fake machines: python -m tests.offline.fake_worker ADDRESS NAME [VERSION]"""

from __future__ import annotations

import sys

from fwlab.cli.grade import worker_command
from fwlab.grading import grader
from tests.offline import fake_class

grader.open_session = fake_class.fake_session
grader.Grader.host = lambda *_: fake_class.FakeHost()
grader.__version__ = sys.argv[3] if len(sys.argv) > 3 else grader.__version__

if __name__ == "__main__":
    worker_command(sys.argv[1], name=sys.argv[2])
