# SPDX-License-Identifier: GPL-2.0-or-later
"""Bad input by the million: `python -m tests.fuzz PARSER --count N --seed S`.

Valid files are changed at random, by a generator whose seed makes every input again. A parser may take an input or
refuse it in a message of its own; anything else is a defect, and is shown with the input that caused it.
"""
