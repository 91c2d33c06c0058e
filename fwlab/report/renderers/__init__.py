# SPDX-License-Identifier: GPL-2.0-or-later
"""The built-in renderers. Each module declares one, or several, under the name RENDERER."""

from collections.abc import Callable
from dataclasses import dataclass

from fwlab.report.model import ReportModel


@dataclass(frozen=True)
class Renderer:
    """Turns the model of a run into text. It measures and judges nothing: all that it shows is in the model.

    name    what `fwlab report --format` calls it
    file    the file that every report writes, such as "report.html"; None for text that is only printed
    render  gives the run as text, complete with its last line end
    """

    name: str
    file: str | None
    render: Callable[[ReportModel], str]
