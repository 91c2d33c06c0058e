# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs with known answers, run in a DUT whose core is modelled: chases of pointers, branches, indirect calls.

    python -m tests.live.model_known LAB OUT.json.gz [CORE...]

Uses the machines of LAB, which must be up. OUT holds, for each core, what the model counted in each program: the
windows are marked by the program itself (coresim/fwlab_coresim/plugin/known.c). Exit code: 0.
"""

from __future__ import annotations

import datetime
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from fwlab_coresim.attach import attached
from fwlab_coresim.build import SOURCE
from fwlab_coresim.cores import ReferenceCore, reference_cores
from fwlab_coresim.counters import CoreCounters
from fwlab_coresim.counts import Modelled

from fwlab.checkout.project import find_project, load_topology
from fwlab.checkout.raw_results import write_document
from fwlab.host.ssh import Ssh
from fwlab.measure.context import run_context
from fwlab.measure.provenance import commit, host_facts
from fwlab.testbed.machines import Machines

#: 16 KiB to 64 MiB.
CHASES = [("chase", str(16 << 10 << power)) for power in range(13)]
BRANCHES = [("branch", "0"), ("branch", "1")]
CALLS = [("indirect", str(1 << power)) for power in range(7)]
PROGRAM = "/var/tmp/fwlab-known"
#: Large pages for the largest chase.
LARGE_PAGES = 32
#: How often each program runs. What else the DUT does meanwhile only adds instructions: the run with the fewest counts.
RUNS = 3


def program() -> bytes:
    """The program for the DUT."""
    with tempfile.TemporaryDirectory() as work:
        command = ["make", "-s", "-C", str(SOURCE), "CC=cc", f"BUILD={work}", "known"]
        subprocess.run(command, check=True)
        return Path(work, "fwlab-known").read_bytes()


def known(ssh: Ssh, counters: CoreCounters, core: ReferenceCore, made: bytes) -> list[dict]:
    """What was counted in the least disturbed run of each program, one program after the other."""
    ssh.run(f"cat >{PROGRAM}; chmod +x {PROGRAM}; echo {LARGE_PAGES} >/proc/sys/vm/nr_hugepages", data=made)
    found = []
    try:
        for words in [*CHASES, *BRANCHES, *CALLS]:
            counters.begin()
            command = " ".join([PROGRAM, *words])
            printed = ssh.run("; ".join([command] * RUNS), timeout=600)
            times = int(printed.split()[0])
            window = min(counters.windows(), key=lambda one: one["instructions"])
            counts = {name: value for name, value in window.items() if value}
            each = round(core.cycles(Modelled(**window)) / times, 3)
            found.append({"program": " ".join(words), "times": times, "cycles_each": each, "counted": counts})
    finally:
        ssh.run(f"rm -f {PROGRAM}; echo 0 >/proc/sys/vm/nr_hugepages")
    return found


def measure(lab: str, cores: list[str]) -> dict:
    """All programs on all these cores, with the conditions."""
    project = find_project()
    topology = load_topology(project)
    context = run_context(find_project(), lab, "virtual")
    machines = Machines(project, topology, context.lab, context.testbed)
    forwarded = topology.ports.address, topology.ssh_port(context.lab.number, "dut")
    made = program()
    result = {
        "date": datetime.date.today().isoformat(),
        "commit": commit(project),
        "host": host_facts().model_dump(mode="json"),
        "cores": {},
    }
    for name in cores or list(reference_cores()):
        core = reference_cores()[name]
        with attached(machines, forwarded, core) as counters:
            programs = known(machines.ssh("dut"), counters, core, made)
        result["cores"][name] = {"parameters": core.model_dump(mode="json"), "programs": programs}
    return result


def main() -> None:
    lab, output, *cores = sys.argv[1:]
    write_document(Path(output), json.dumps(measure(lab, cores), indent=1) + "\n")


if __name__ == "__main__":
    main()
