# SPDX-License-Identifier: GPL-2.0-or-later
"""Renew the generated parts of all pages: python -m fwlab.cli.pages (`make readme`)."""

from __future__ import annotations

import sys

from fwlab.host.project import find_project, shown
from fwlab.model.errors import EXIT_PASS, FwlabError
from fwlab.report.pages import refresh


def main() -> int:
    """Rewrite the stale pages and name them. Returns the exit code."""
    try:
        project = find_project()
        for page in refresh(project):
            print(f"written: {shown(project, page)}")
    except FwlabError as error:
        print(f"pages: {error}", file=sys.stderr)
        return error.exit_code
    return EXIT_PASS


if __name__ == "__main__":
    sys.exit(main())
