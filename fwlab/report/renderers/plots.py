# SPDX-License-Identifier: GPL-2.0-or-later
"""The plots of a run alone, as SVG elements."""

from fwlab.metrics.registry import METRICS
from fwlab.report.model import ReportModel
from fwlab.report.renderers import Renderer


def drawings(model: ReportModel) -> str:
    """Every curve of the run."""
    from fwlab.report.plot import plots  # importing matplotlib takes a third of a second

    return "".join(f"{svg}\n" for name in model.curves for svg in plots(model, METRICS[name]))


RENDERER = Renderer("plots", None, drawings)
