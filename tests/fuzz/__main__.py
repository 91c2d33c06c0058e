# SPDX-License-Identifier: GPL-2.0-or-later
"""`python -m tests.fuzz PARSER`: run a campaign, and print what it found. The exit code is 1 if it found a defect.

`--first INDEX --count 1` repeats one input.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from .campaign import campaign
from .parsers import PARSERS


def main() -> int:
    options = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Fuzz one parser with mutated input.")
    options.add_argument("parser", choices=sorted(PARSERS))
    options.add_argument("--count", type=int, default=10_000)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--first", type=int, default=0, help="index of the first input")
    options.add_argument("--output", type=Path, help="save the result in this file")
    chosen = options.parse_args()
    outcomes, defects = campaign(PARSERS[chosen.parser], chosen.count, chosen.seed, chosen.first)
    given = {"parser": chosen.parser, "seed": chosen.seed, "first": chosen.first, "count": chosen.count}
    result = {**given, "outcomes": dict(outcomes.most_common()), "defects": defects}
    text = json.dumps(result, indent=1) + "\n"
    if chosen.output:
        chosen.output.write_text(text)
    print(text, end="")
    return 1 if defects else 0


if __name__ == "__main__":
    sys.exit(main())
