# SPDX-License-Identifier: GPL-2.0-or-later
"""`python -m tests.fuzz PARSER`: run a campaign. The exit code is 1 if it found a defect.

--output saves the result as JSON. `--first INDEX --count 1` repeats one input.
"""

from __future__ import annotations

import argparse
import datetime
import json
import subprocess
import sys
from pathlib import Path

from .campaign import campaign
from .parsers import PARSERS, ROOT


def main() -> int:
    options = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Fuzz one parser with mutated input.")
    options.add_argument("parser", choices=sorted(PARSERS))
    options.add_argument("--count", type=int, default=10_000)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--first", type=int, default=0, help="index of the first input")
    options.add_argument("--output", type=Path, help="save the result in this file")
    chosen = options.parse_args()
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    found = campaign(PARSERS[chosen.parser], chosen.count, chosen.seed, chosen.first)
    result = {
        "parser": chosen.parser,
        "date": datetime.date.today().isoformat(),
        "commit": commit,
        "seed": chosen.seed,
        "first": chosen.first,
        "count": found.count,
        "seconds": round(found.seconds, 1),
        "tracebacks": found.traced,
        "outcomes": dict(found.outcomes.most_common()),
        "defects": found.defects,
    }
    text = json.dumps(result, indent=1, ensure_ascii=False).encode("utf-8", "replace").decode() + "\n"
    if chosen.output:
        chosen.output.parent.mkdir(parents=True, exist_ok=True)
        chosen.output.write_text(text)
    print(text, end="")
    return 1 if found.defects else 0


if __name__ == "__main__":
    sys.exit(main())
