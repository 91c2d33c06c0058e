# SPDX-License-Identifier: GPL-2.0-or-later
"""Labs as they are used: read from disk, and every name in them checked against what is registered."""

from types import MappingProxyType
from typing import Final

from fwlab.host import project as files
from fwlab.host.project import Project
from fwlab.metrics.registry import METRICS
from fwlab.model.lab import Lab
from fwlab.rulesets.registry import KINDS

#: The registries that a lab.yml is checked against, by concept.
REGISTRIES: Final = MappingProxyType({"metrics": METRICS, "ruleset_kinds": KINDS})


def load_lab(project: Project, lab_id: str) -> Lab:
    """The lab in labs/<lab_id>. Raises BadInput naming the file and the field, also for an unregistered name."""
    return files.load_lab(project, lab_id, REGISTRIES)
