# SPDX-License-Identifier: GPL-2.0-or-later
"""Labs as they are used: read from disk, and every name in them checked against what is registered."""

from __future__ import annotations

from fwlab.host import project as files
from fwlab.host.project import Project
from fwlab.metrics.registry import METRICS
from fwlab.model.lab import Lab


def load_lab(project: Project, lab_id: str) -> Lab:
    """The lab in labs/<lab_id>. Raises BadInput naming the file and the field, also for a metric that nobody knows."""
    return files.load_lab(project, lab_id, {"metrics": METRICS})
