# SPDX-License-Identifier: GPL-2.0-or-later
"""One case of each lab that guides/model.md covers, on a modelled core that is attached once; two also without it.

    python -m tests.live.model_cases LAB OUT.JSON CORE CASE...

Uses the machines of LAB, which must be up. OUT holds both runs, `plain` and `modelled`, of those cases that are named.
Exit code: 0.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from fwlab.checkout.project import find_project
from fwlab.measure.context import run_context
from fwlab.measure.core_models import modelled_specs
from fwlab.measure.plan import case_specs
from fwlab.measure.session import open_session

#: Cases that load within seconds, and that loads, fetches and branches wait in.
CASES = {
    "lab03-ipset": "iptables-rules-1024",
    "lab02-conntrack": "tracked",
    "lab04-nftables": "ports-nft-set-75",
    "lab05-drop-early": "input-rules-1",
    "lab09-classifiers": "vmap-1024",
    "lab01-forwarding": "rules-1000",
    "lab08-pf": "iptables-1000",
}
#: This one is also profiled by function.
PROFILED = "iptables-rules-1024"
#: These are measured without the model, too: a list, and what a busy host disturbs most.
PLAIN = (PROFILED, "input-rules-1")
#: As long as those of the committed results: a longer trial has fewer instructions a packet.
TRIALS = 3


def measured(machines: str, core: str, cases: Sequence[str]) -> dict:
    """A run of these cases in one session; with no core, of those in PLAIN alone."""
    contexts = [
        run_context(find_project(), lab, "virtual", machines=machines, core=core)
        for lab in CASES
        if CASES[lab] in cases
    ]
    with open_session(contexts[0], lambda _event: None) as session:
        for context in contexts:
            for spec in case_specs(context, [CASES[context.lab.id]], TRIALS):
                if core or spec.id in PLAIN:
                    alone = replace(spec, metrics=["capacity"], sampled=bool(core) and spec.id == PROFILED)
                    of_lab = session.for_lab(context)
                    of_lab.measure_cases(modelled_specs(core, [alone]))
                    session.run.cases.extend(of_lab.run.cases)
        return session.run.model_dump(mode="json")


def main() -> None:
    machines, output, core, *cases = sys.argv[1:]
    runs = {"plain": measured(machines, "", cases), "modelled": measured(machines, core, cases)}
    Path(output).write_text(json.dumps(runs) + "\n")


if __name__ == "__main__":
    main()
