# SPDX-License-Identifier: GPL-2.0-or-later
"""The files of a report: the raw run, and one file for each renderer that writes one.

A renderer is one module of fwlab.report.renderers, or an entry point of `fwlab.renderers`.
"""

from pathlib import Path

from fwlab.checkout.atomic_write import write_atomically
from fwlab.measure.saved_runs import run_name
from fwlab.model.registry import Registry, discover
from fwlab.report.model import ReportModel
from fwlab.report.renderers import Renderer

PAGE = "report.html"


def write_report(model: ReportModel, folder: Path) -> Path:
    """Write run.json (the raw run, enough to judge it again) and the renderers' files into `folder`.

    A lab for several systems has a run-SYSTEM.json of each.

    Returns the path of the HTML page. Raises FwlabError naming a file that cannot be written; an older file of
    that name is then unchanged.
    """
    # First the results: a fault in a renderer must not lose them.
    for run in model.runs:
        name = run_name(model.lab, run.dut.system)
        write_atomically(folder / name, run.model_dump_json(indent=1) + "\n")
    for renderer in RENDERERS.values():
        if renderer.file is not None:
            write_atomically(folder / renderer.file, renderer.render(model))
    return folder / PAGE


RENDERERS: Registry[Renderer] = discover("renderer", "fwlab.report.renderers", "RENDERER", "fwlab.renderers", Renderer)
