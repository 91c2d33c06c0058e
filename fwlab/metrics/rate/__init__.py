# SPDX-License-Identifier: GPL-2.0-or-later
"""The search for a rate. In a separate package: the registry imports every module of metrics/, but none in here.

MLRsearch takes a fifth of a second to import, and few commands search.
"""
