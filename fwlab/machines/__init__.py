# SPDX-License-Identifier: GPL-2.0-or-later
"""The machines of each lab: what they are made of, and what is done on this host before and after they start.

Vagrant calls this package at every command, so it imports little: no pydantic, and nothing that imports it.
"""
