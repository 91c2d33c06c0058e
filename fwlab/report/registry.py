# SPDX-License-Identifier: GPL-2.0-or-later
"""All renderers by name: one module of fwlab.report.renderers each, and the entry points of `fwlab.renderers`."""

from fwlab.model.registry import Registry, discover
from fwlab.report.renderers import Renderer

RENDERERS: Registry[Renderer] = discover("renderer", "fwlab.report.renderers", "RENDERER", "fwlab.renderers", Renderer)
