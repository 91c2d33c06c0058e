# SPDX-License-Identifier: GPL-2.0-or-later
"""The labs in the browser: a view of what the commands do. NiceGUI is imported only here."""
