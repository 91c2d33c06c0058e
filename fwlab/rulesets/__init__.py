# SPDX-License-Identifier: GPL-2.0-or-later
"""What a ruleset of each kind may say.

A ruleset is loaded as root, and its author may be a stranger: it must not run a program, write elsewhere or leave
behind what a reset cannot take away. Some tools can do such things, so files are read here before they are loaded.
Where a tool's language is large only what is dangerous is refused; where it is small all but what is known.
"""
