# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether KVM runs a guest on this host. The answer is remembered until something that it depends on changes.

A /dev/kvm that opens proves nothing: some nested hosts run a few instructions per millisecond, or run firmware but
never a kernel, or a kernel that stops half-way. So a kernel is started. It prints its version first, and says last
that it was given no root file system. A host of another architecture than the boxes' emulates them.
"""

import contextlib
import hashlib
import json
import os
import platform
import select
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from fwlab.checkout.atomic_write import write_atomically
from fwlab.host.environment import cache_directory, timeout_scale
from fwlab.host.process import piped
from fwlab.model.errors import FwlabError
from fwlab.model.printable import printable

BOX_ARCHITECTURE = "x86_64"


def other_architecture() -> str:
    """This host's architecture as the kernel names it ("aarch64"), if it is not that of the boxes; else empty."""
    machine = platform.machine()
    return "" if machine in (BOX_ARCHITECTURE, "amd64") else machine


DEVICE = Path("/dev/kvm")
QEMU = "qemu-system-x86_64"
#: The remembered answer, in the cache directory.
MEMORY = "kvm-probe.json"
#: A kernel under KVM prints its first line within a second. On a slow host $FWLAB_BOOT_TIMEOUT extends all these.
TIMEOUT_S = 8
#: Between two lines of a kernel that boots under a KVM that is itself emulated (s). Otherwise all take one second.
SILENCE_S = 40
#: Silences after which the kernel is ended in any case.
MAX_SILENCES = 5
#: A boot sector prints its line within a tenth of this (s).
BOOT_SECTOR_TIMEOUT_S = 1
GREETING = b"Linux version"
#: A kernel's last words without a root file system. Any panic before it names another reason.
END = b"Unable to mount root fs"


@dataclass(frozen=True)
class KvmAnswer:
    """`remembered`: when KVM was tried, if that was earlier ("2026-11-22 15:04"); else empty."""

    works: bool
    why: str
    remembered: str = ""


def kvm_works(kernel: Path | None = None, *, again: bool = False, boot_sector: bool = False) -> KvmAnswer:
    """Whether KVM runs a kernel: the one given, else one of the boxes' or the host's.

    again        try it now, even if an answer is remembered
    boot_sector  if there is no kernel, try a boot sector: it proves less. Without this, the answer is then no.
    """
    if machine := other_architecture():
        return KvmAnswer(False, f"this host is {machine}, where KVM cannot run {BOX_ARCHITECTURE} guests")
    if not DEVICE.exists():
        return KvmAnswer(False, f"there is no {DEVICE}")
    if not os.access(DEVICE, os.R_OK | os.W_OK):
        return KvmAnswer(False, f"no permission to open {DEVICE} (group kvm)")
    if shutil.which(QEMU) is None:
        return KvmAnswer(False, f"{QEMU} is not installed")
    kernel = kernel or _some_kernel()
    if kernel is None:
        return _try_boot_sector() if boot_sector else KvmAnswer(False, "there is no kernel to try KVM with yet")
    key = _key(kernel)
    if not again and (known := _recall(key)) is not None:
        return known
    linux = ["-m", "256", "-kernel", str(kernel), "-append", "console=ttyS0 earlyprintk=serial panic=-1"]
    answer, timed_out = _try(linux, "kernel", TIMEOUT_S, END)
    # An error of QEMU's is not remembered: it comes at once, and its cause (another hypervisor, say) may go away.
    if answer.works or timed_out:
        _remember(key, answer)
    return answer


def qemu_version() -> str:
    """QEMU's version as it prints it, or "unknown"."""
    said = subprocess.run([QEMU, "--version"], capture_output=True, text=True, check=False).stdout.strip().splitlines()
    return said[0].replace("QEMU emulator version ", "").split(" (")[0] if said else "unknown"


def _some_kernel() -> Path | None:
    candidates = [*sorted(cache_directory().glob("bases/*/vmlinuz*")), *sorted(Path("/boot").glob("vmlinuz*"))]
    return next((path for path in candidates if os.access(path, os.R_OK)), None)


def _key(kernel: Path) -> dict[str, Any]:
    """Everything that the answer depends on. The kernel by its content: each base has a copy of the same one."""
    device = DEVICE.stat()
    with kernel.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {
        "host_kernel": platform.release(),
        "qemu": qemu_version(),
        "device": [os.major(device.st_rdev), os.minor(device.st_rdev), f"{device.st_mode:o}"],
        "kernel": digest,
        "until": END.decode(),
    }


def _recall(key: dict[str, Any]) -> KvmAnswer | None:
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError, RecursionError):
        record = json.loads((cache_directory() / MEMORY).read_text())
        if record["key"] == key:
            answer = KvmAnswer(**record["answer"])
            if isinstance(answer.works, bool) and isinstance(answer.why, str):
                return replace(answer, remembered=str(record["when"]))
    return None


def _remember(key: dict[str, Any], answer: KvmAnswer) -> None:
    record = {"key": key, "answer": asdict(answer), "when": time.strftime("%Y-%m-%d %H:%M")}
    with contextlib.suppress(FwlabError):  # no room: it is tried again next time
        write_atomically(cache_directory() / MEMORY, json.dumps(record, indent=1) + "\n")


def _try_boot_sector() -> KvmAnswer:
    with tempfile.NamedTemporaryFile(prefix="fwlab-boot-") as file:
        file.write(_boot_sector())
        file.flush()
        machine = ["-m", "16", "-drive", f"file={file.name},format=raw,if=ide,snapshot=on"]
        return _try(machine, "boot sector", BOOT_SECTOR_TIMEOUT_S)[0]


def _boot_sector() -> bytes:
    """Writes the greeting to the first serial port and halts."""
    # mov si,text; mov dx,0x3f8; cld; next: lodsb; or al,al; jz halt; out dx,al; jmp next; halt: hlt; jmp halt; text:
    code = bytes.fromhex("be127cbaf803fcac08c07403eeebf8f4ebfd") + GREETING
    return code.ljust(510, b"\0") + b"\x55\xaa"


def _try(machine: list[str], what: str, timeout_s: int, end: bytes = b"") -> tuple[KvmAnswer, bool]:
    """Start a machine under KVM and wait for the greeting on its serial port, then for `end`; and whether it got stuck.

    What stops between the two is stuck, whether it is silent or gone.
    """
    silence_s = SILENCE_S * timeout_scale()
    timeout_s = round(timeout_s * timeout_scale())
    limit = round(timeout_s + (MAX_SILENCES * silence_s if end else 0))
    ends_with_us = ["setpriv", "--pdeathsig", "TERM", "timeout", "--kill-after=1", str(limit)]
    argv = [*ends_with_us, QEMU, "-accel", "kvm", "-cpu", "host", *machine]
    argv += ["-display", "none", "-nodefaults", "-no-reboot", "-serial", "stdio"]
    with _started(argv) as process:
        heard = _hear(process, GREETING, timeout_s)
        if GREETING in heard:
            heard += _hear(process, end, silence_s, restart=True) if end and end not in heard else b""
            if end in heard:
                return KvmAnswer(True, f"KVM runs a {what}"), False
            last = heard.decode(errors="replace").strip().splitlines()[-1].strip()[-100:]
            return KvmAnswer(False, f"a {what} under KVM stops half-way, after: {printable(last)}"), True
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.2)
        if process.poll() in (None, 124, 137):  # timeout(1) ended QEMU, or killed it
            return KvmAnswer(False, f"a {what} under KVM prints nothing within {timeout_s} s"), True
        words = piped(process.stderr).read().decode(errors="replace").strip().splitlines()
        return KvmAnswer(False, f"KVM does not start: {words[-1] if words else 'QEMU gives no reason'}"), False


def _hear(process: subprocess.Popen[bytes], word: bytes, timeout_s: float, *, restart: bool = False) -> bytes:
    """What the machine prints until `word` comes, or until `timeout_s` from now or (`restart`) from its last output."""
    said, output = b"", piped(process.stdout).fileno()
    deadline = time.monotonic() + timeout_s
    while word not in said and (left := deadline - time.monotonic()) > 0:
        ready, _, _ = select.select([output], [], [], left)
        part = os.read(output, 4096) if ready else b""
        said += part
        if not part:
            break
        if restart:
            deadline = time.monotonic() + timeout_s
    return said


@contextlib.contextmanager
def _started(argv: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """A program in a new process group, all of which is killed at the end."""
    with subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    ) as process:
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
