# SPDX-License-Identifier: GPL-2.0-or-later
"""What is run on this host, by the project's own commands. Each step says what it wants to see.

A run must agree with the published one: the same kernel, and each capacity within a small share. libvirt for arm64 must
make the same QEMU arguments of a machine's description as this host's libvirt; each runs in a separate process, and
starts nothing.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fwlab.checkout.project import Project
from fwlab.host.environment import libvirt_uri
from fwlab.host.process import piped, wait_or_kill
from fwlab.judge.statistics import figure
from fwlab.metrics.registry import METRICS
from fwlab.model.errors import CannotMeasure
from fwlab.model.results import Run
from fwlab.model.topology import ROLES, Topology
from fwlab.testbed.qemu_process import domain_of, qemu_of, vcpu_thread
from tests.arm64_host.arm64_qemu import Arm64Qemu
from tests.nested_host.record import Record, Step
from tests.nested_host.steps import Judge, succeeds

METRIC = METRICS["capacity"]
#: Two medians may differ by this share of the published one.
MAX_APART = 0.001


def agreement(run: Run, published: Run, cases: Sequence[str]) -> Iterator[Step]:
    """One step for the kernel and one for each case, in whose `says` both figures stand."""
    kernels = run.dut.kernel, published.dut.kernel
    yield Step("the same kernel", "", 0, kernels[0] == kernels[1], " and ".join(kernels))
    for case in cases:
        yield _case(run, published, case)


def _case(run: Run, published: Run, case: str) -> Step:
    name = f"{case} agrees"
    medians = []
    for one, words in ((run, "was not measured"), (published, "is not published")):
        measured = one.case(case)
        found = None if measured is None or measured.problems else figure(measured, METRIC, one.testbed)
        if found is None:
            return Step(name, "", 0, False, f"{case} {words}")
        medians.append(found.median)
    apart = medians[0] / medians[1] - 1
    says = f"{medians[0]:.0f} pps, published {medians[1]:.0f} pps: {apart:+.3%}"
    return Step(name, "", 0, abs(apart) <= MAX_APART, says)


#: Asking QEMU what it can do takes some seconds; emulated, a minute (s).
LIMIT_S = 600
VARIABLE = re.compile(r"[A-Z_]+=")


def description(domain: str, uri: str) -> str:
    """The XML of a machine that exists. Raises CannotMeasure."""
    return _said_by(["virsh", "--quiet", "--connect", uri, "dumpxml", "--inactive", domain], {})


def architecture(qemu: Arm64Qemu) -> str:
    """The architecture that libvirt for arm64 takes the host for. Raises CannotMeasure."""
    with tempfile.TemporaryDirectory(prefix="fwlab-", dir="/tmp") as short:  # the names of sockets must be short
        said = _said_by([*qemu.virsh, "--quiet", "--connect", _embedded(short), "capabilities"], qemu.libvirt_variables)
    found = re.search(r"<host>.*?<arch>(\w+)</arch>", said, re.DOTALL)
    return found[1] if found else "unknown"


def arguments(virsh: Sequence[str], variables: Mapping[str, str], xml: str) -> list[str]:
    """QEMU's arguments that this virsh makes of the description, its own folder called ROOT. Raises CannotMeasure."""
    with tempfile.TemporaryDirectory(prefix="fwlab-", dir="/tmp") as short:
        file = Path(short) / "domain.xml"
        file.write_text(xml)
        command = [
            *virsh,
            "--quiet",
            "--connect",
            _embedded(short),
            "domxml-to-native",
            "qemu-argv",
            "--xml",
            str(file),
        ]
        said = _said_by(command, variables)
    words = [word.replace(short, "ROOT") for word in shlex.split(said)]
    return [word for word in words if not VARIABLE.match(word)]


def differences(one: Sequence[str], two: Sequence[str]) -> list[str]:
    """The words that only one of the two has."""
    return sorted(set(one) ^ set(two)) or ([] if list(one) == list(two) else ["their order"])


def _embedded(folder: str) -> str:
    return f"qemu:///embed?root={folder}/libvirt"


def _said_by(command: Sequence[str], variables: Mapping[str, str]) -> str:
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            env={**os.environ, **variables},
            stdin=subprocess.DEVNULL,
            timeout=LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise CannotMeasure(f"{command[0]}: no answer within {LIMIT_S} s", "the same command again") from error
    if done.returncode:
        words = (done.stderr.strip().splitlines() or ["it gives no reason"])[-1]
        raise CannotMeasure(f"{command[0]}: {words}", "fwlab doctor")
    return done.stdout


LAB, LAB_NUMBER = "lab03-ipset", 3
#: Marks raw results.
HOST_CLASS = "arm64-host"
#: How long `vagrant up` waits for the DUT, by which all time-outs are extended (s).
BOOT_S = 3600
#: Limit (s) that only ends what hangs.
LONG_S = 14400
#: What Vagrant prints if a machine does not continue from a saved state.
BOOTS = ("so it boots", "and booting")


def environment(qemu: Arm64Qemu | None, *, saved: bool) -> dict[str, str]:
    """The variables of the project for this run. `qemu`: the DUT's; None: this host's own."""
    chosen = {"FWLAB_DUT_QEMU": str(qemu.script)} if qemu is not None else {}
    wanted = {"FWLAB_TESTBED": "virtual", "FWLAB_LINK": "socket", "FWLAB_DUT": "linux", "FWLAB_HOST_CLASS": HOST_CLASS}
    more = {"FWLAB_SAVED": "yes" if saved else "no", "FWLAB_BOOT_TIMEOUT": str(BOOT_S), "VAGRANT_NO_COLOR": "1"}
    return {**wanted, **more, **chosen}


@dataclass(frozen=True)
class Shell:
    """Commands in the checkout, each a step of the record. `hidden`: words that the record has in place of paths."""

    project: Project
    record: Record
    environment: dict[str, str]
    hidden: dict[str, str]

    def step(self, name: str, command: list[str], judge: Judge = succeeds) -> bool:
        """Run one command and record it; returns whether it did what it should."""
        shown = self._portable(" ".join(command))
        self.record.tell(f"--- {name}: {shown}")
        began = time.monotonic()
        status, output = self._run(command)
        ok, says = judge(status, output)
        self.record.add(Step(name, shown, round(time.monotonic() - began, 1), ok, says))
        return ok

    def add(self, name: str, ok: bool, says: str) -> bool:
        """Record what was found without a command; returns `ok`."""
        self.record.add(Step(name, "", 0, ok, self._portable(says)))
        return ok

    def _run(self, command: list[str]) -> tuple[int, str]:
        process = subprocess.Popen(
            ["timeout", "--kill-after=60", str(LONG_S), *command],
            cwd=self.project.root,
            env={**os.environ, **self.environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        lines = []
        try:
            for line in piped(process.stdout):
                lines.append(self._portable(line.rstrip()))
                self.record.tell(lines[-1])
            process.wait()
        finally:
            if process.poll() is None:
                process.terminate()
            wait_or_kill(process, 60)
        return process.returncode, "\n".join(lines)

    def _portable(self, text: str) -> str:
        for path, word in self.hidden.items():
            text = text.replace(path, word)
        return text


def continued(status: int, output: str) -> tuple[bool, str]:
    """`vagrant up` whose machines all continued from saved states."""
    booted = [line.strip() for line in output.splitlines() if any(words in line for words in BOOTS)]
    if booted:
        return False, booted[0]
    return succeeds(status, "all machines continued from saved states")


def runs_on_arm64(shell: Shell, topology: Topology, qemu: Arm64Qemu) -> bool:
    """Whether QEMU for arm64 runs the DUT, and nothing but the DUT."""
    found = {role: qemu_of(topology.ports.address, topology.ssh_port(LAB_NUMBER, role)) for role in ROLES}
    programs = {role: Path(f"/proc/{pid}/exe").resolve() for role, pid in found.items()}
    words = Path(f"/proc/{found['dut']}/cmdline").read_text(errors="replace").split("\0")
    thread = Path(f"/proc/{found['dut']}/task/{vcpu_thread(found['dut'])}/comm").read_text().strip()
    ok, says = only_the_dut(programs, words, qemu)
    return shell.add("the DUT's QEMU is arm64 code", ok, f"{says}; its CPU's thread: {thread}")


def described_alike(shell: Shell, topology: Topology, qemu: Arm64Qemu) -> bool:
    """Whether libvirt for arm64 gives QEMU the arguments that this host's libvirt gives it for the DUT."""
    pid = qemu_of(topology.ports.address, topology.ssh_port(LAB_NUMBER, "dut"))
    xml = description(domain_of(pid), libvirt_uri())
    host = architecture(qemu)
    found = arguments(qemu.virsh, qemu.libvirt_variables, xml), arguments(["virsh"], {}, xml)
    apart = differences(*found)
    says = f"on a host that it calls {host}: {len(found[0])} words, {'; '.join(apart) or 'all alike'}"
    return shell.add("libvirt for arm64 describes the same DUT", host == "aarch64" and not apart, says)


def only_the_dut(programs: Mapping[str, Path], words: Sequence[str], qemu: Arm64Qemu) -> tuple[bool, str]:
    """Judges what runs the machines: by role the program of each process, and the words of the DUT's."""
    emulated = {role for role, program in programs.items() if program == qemu.emulator.resolve()}
    ok = emulated == {"dut"} and str(qemu.program) in words
    return ok, f"run by QEMU for arm64: {', '.join(sorted(emulated)) or 'no machine'}"


def measure(shell: Shell, cases: Sequence[str], output: Path) -> Iterator[tuple[str, Path]]:
    """Measure case after case into folders below `output`; yields each that has raw results, and their file."""
    for case in cases:
        folder = output / case
        words = [".venv/bin/fwlab", "run", LAB, case, "--testbed", "virtual", "--output", str(folder)]
        shell.step(f"fwlab run {case}", words)
        if (folder / "run.json").exists():
            yield case, folder / "run.json"


def reject_machines(project: Project) -> None:
    """Raises CannotMeasure if this checkout's machines of the lab are there already: they may have another QEMU."""
    if (project.state / LAB / "machines.json").exists():
        raise CannotMeasure(f"the machines of {LAB} exist already", f"vagrant destroy -f {LAB}, or --running")
