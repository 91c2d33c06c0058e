# SPDX-License-Identifier: GPL-2.0-or-later
"""Figures of `fwlab price`: how far prices repeat, how long it takes, and whether the mean is that of a flood.

    python -m tests.live.own_figures MACHINES OUT.json.gz repeated|mix|timed...

Uses the machines of this lab, which must be up. Each part is added to OUT: `repeated` prices one ruleset five times;
`mix` floods a list whose rules drop equal parts of the traffic; a number prices as many rules, with the seconds.
Exit code: 0.
"""

from __future__ import annotations

import datetime
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from fwlab.checkout.project import find_project
from fwlab.checkout.raw_results import read_document, write_document
from fwlab.measure.provenance import commit, host_facts

REPEATED, TIMES = 100, 5
#: The lab of the flood, and how many sources it has: one for each rule.
LAB, SOURCES = "lab98-mix", 40
FIRST, STEP = "198.18.64.1", 13
LAB_YML = """id: {lab}
title: Does the mean price hold for a flood?
minutes: 10
sources: [S1]
needs: {{ packages: [nftables], modules: [] }}
classes: {{ flood: {{ src: 198.18.0.0/16 }} }}
traffic:
  one: {{ profile: ../common/flood.py, tunables: {{ source: {first}, sources: 1 }} }}
  all: {{ profile: ../common/flood.py, tunables: {{ source: {first}, step: {step}, sources: {sources} }} }}
baseline: one
cases:
  - {{ id: one, title: All packets hit the first rule, ruleset: list, traffic: one }}
  - {{ id: all, title: Each rule drops an equal part, ruleset: list, traffic: all }}
"""


def grown(count: int) -> str:
    """Rules of a firewall that has grown, with counters: sources to drop, services to accept, states late."""
    chance = random.Random(1)
    lines = ["*filter", ":INPUT DROP [100:0]", ":FORWARD DROP [1000:0]", ":OUTPUT ACCEPT [0:0]"]
    for number in range(count - 3):
        high, low, port = number >> 8, number & 255, 1000 + number
        rule = (
            f"-s 203.{high}.{low}.7/32 -j DROP",
            f"-s 203.{high}.{low}.7/32 -j DROP",
            f"-d 198.18.2.{number % 250 + 2}/32 -p tcp -m tcp --dport {port} -j ACCEPT",
            f"-s 192.0.2.{number % 250}/32 -p udp -m udp --dport {port} -j ACCEPT",
        )[number % 4]
        lines.append(f"[{chance.randrange(1, 1000)}:0] -A FORWARD {rule}")
    lines += [
        "[50000:0] -A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT",
        "[500:0] -A FORWARD -i eth0 -o eth1 -p tcp -m tcp --dport 443 -j ACCEPT",
        "[5:0] -A INPUT -p icmp -j ACCEPT",
        "COMMIT",
    ]
    return "".join(f"{line}\n" for line in lines)


def listed() -> str:
    """A list in the first hook. Each rule drops one source of the flood; all have counted as many packets."""
    begin = [int(part) for part in FIRST.split(".")]
    whole = (begin[2] << 8) + begin[3]
    places = [whole + STEP * number for number in range(SOURCES)]
    rules = "".join(
        f"ip saddr 198.18.{place >> 8}.{place & 255} counter packets 1000 bytes 0 drop\n" for place in places
    )
    return f"table ip lab {{\nchain prerouting {{\ntype filter hook prerouting priority raw;\n{rules}}}\n}}\n"


def fwlab(*words: str) -> dict:
    """What a command prints as JSON."""
    done = subprocess.run([".venv/bin/fwlab", *words, "--json"], check=False, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)


def price(machines: str, text: str, *words: str) -> dict:
    """The prices of these rules, and the seconds that this took."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rules")
        path.write_text(text)
        begun = time.monotonic()
        found = fwlab("price", str(path), "--machines", machines, *words)
        return {**found, "seconds": round(time.monotonic() - begun, 1), "load_average": os.getloadavg()[0]}


def short(found: dict) -> dict:
    """Prices without the packets."""
    classes = [{name: one[name] for name in ("decided_by", "instructions", "counter")} for one in found["classes"]]
    kept = ("kernel", "rules", "reached", "mean_by_counters", "seconds", "load_average", "where")
    return {"classes": classes, **{name: found[name] for name in kept}}


def mix(machines: str) -> dict:
    """The capacity of the flood, and the prices of the same list's classes, in instructions per packet."""
    folder = find_project().root / "labs" / LAB
    (folder / "rulesets" / "list").mkdir(parents=True)
    try:
        values = {"lab": LAB, "first": FIRST, "step": STEP, "sources": SOURCES}
        (folder / "lab.yml").write_text(LAB_YML.format(**values))
        (folder / "rulesets" / "list" / "rules.nft").write_text(listed())
        cases = fwlab("run", LAB, "--machines", machines)["cases"]
    finally:
        shutil.rmtree(folder)
    found = {case["id"]: 1e9 / case["median"] for case in cases}
    return {"flood": found, "prices": short(price(machines, listed()))}


def main() -> None:
    machines, output, *parts = sys.argv[1:]
    path = Path(output)
    now = {"commit": commit(find_project()), "host": host_facts().model_dump(mode="json")}
    found = json.loads(read_document(path)) if path.exists() else {"date": datetime.date.today().isoformat(), **now}
    for part in parts:
        if part == "repeated":
            found[part] = [short(price(machines, grown(REPEATED))) for _ in range(TIMES)]
        elif part == "mix":
            found[part] = mix(machines)
        else:
            found.setdefault("timed", {})[part] = short(price(machines, grown(int(part))))
        write_document(path, json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
