# SPDX-License-Identifier: GPL-2.0-or-later
"""Figures of one part of a lab, for its page."""

from pathlib import Path

from fwlab.checkout.project import find_project
from fwlab.measure.labs import load_lab
from fwlab.measure.plan import cases_of_part
from fwlab.report.page_numbers import figures_of


def figures_of_part(page: str, part: str) -> str:
    """The tables of the lab's newest figures, for the cases of this part. Raises BadInput for an unknown part."""
    lab = load_lab(find_project(), Path(page).resolve().parent.name)
    return figures_of(page, *lab.cases_named(cases_of_part(lab, part)))
