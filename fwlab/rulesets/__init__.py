# SPDX-License-Identifier: GPL-2.0-or-later
"""Rulesets: the kinds of files that make them up, and how the host reads, renders and validates the files.

A ruleset is loaded as root, and its author may be a stranger. It must not run a program, write to a file or leave
behind what a reset cannot undo. Some tools can do all that, so every file is validated before it is loaded: where a
tool's language is large, dangerous words are refused; where it is small, only known words are accepted.
"""
