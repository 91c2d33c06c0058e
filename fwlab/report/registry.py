# SPDX-License-Identifier: GPL-2.0-or-later
"""All renderers by name: one module of fwlab.report.renderers each, and the entry points of `fwlab.renderers`."""

from typing import Protocol

from fwlab.model.registry import Registry, discover
from fwlab.report.model import ReportModel


class Renderer(Protocol):
    """Turns the model of a run into text. It measures and judges nothing: all that it shows is in the model.

    name  what `fwlab report --format` calls it
    file  the file that every report writes beside run.json, such as "report.html"; None for text that is only printed
    """

    name: str
    file: str | None

    def render(self, model: ReportModel) -> str:
        """The run as text, complete with its last line end."""


RENDERERS: Registry[Renderer] = discover("renderer", "fwlab.report.renderers", "RENDERER", "fwlab.renderers", Renderer)
