# SPDX-License-Identifier: GPL-2.0-or-later
"""The plots of a run alone, as SVG elements."""

from typing import Final

from fwlab.metrics.registry import METRICS
from fwlab.report.model import ReportModel


class Plots:
    """Every curve of the run as SVG."""

    name = "plots"
    file = None

    def render(self, model: ReportModel) -> str:
        from fwlab.report.plot import plots  # importing matplotlib takes a third of a second

        drawings = [svg for name in model.curves for svg in plots(model, METRICS[name])]
        return "".join(f"{svg}\n" for svg in drawings)


RENDERER: Final = Plots()
