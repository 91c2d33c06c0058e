# SPDX-License-Identifier: GPL-2.0-or-later
"""A renderer from outside the project: one line per case and exercise."""

from __future__ import annotations

from fwlab.report.model import ReportModel


class PlainList:
    name = "plain-list"
    file = "list.txt"

    def render(self, model: ReportModel) -> str:
        return "".join(f"{row.id}: {row.outcome.value if row.outcome else 'measured'}\n" for row in model.rows)


RENDERER = PlainList()
