# SPDX-License-Identifier: GPL-2.0-or-later
"""The kinds of ruleset files, one module each, and the helpers that they share.

A module that declares KIND (or a tuple of several) is a kind; the others are helpers. The whole package travels to
the DUT with the agent, so its modules import the standard library, each other and fwlab.rulesets.kind only.
"""
