# SPDX-License-Identifier: GPL-2.0-or-later
"""The built-in renderers. Each module declares one, or several, under the name RENDERER."""
