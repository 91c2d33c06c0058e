# SPDX-License-Identifier: GPL-2.0-or-later
"""Mutation fuzzing of the parsers: `python -m tests.fuzz PARSER --count N --seed S`.

Each input is a valid file with random changes; the seed and the input's index reproduce it. A parser must accept the
input or raise BadInput. Anything else is a defect and is reported with its input.
"""
