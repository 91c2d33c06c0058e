# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether KVM runs a guest on this host. A kernel is asked once; its answer is remembered until something changes."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import select
import shutil
import signal
import subprocess
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from fwlab.host.atomic_write import write_atomically
from fwlab.model.errors import FwlabError

DEVICE = Path("/dev/kvm")
QEMU = "qemu-system-x86_64"
#: In the cache folder.
MEMORY = "kvm-probe.json"
#: A kernel that KVM runs says its first line within a second. `timeout` ends its QEMU even when we are killed.
PATIENCE_S = 8


@dataclass(frozen=True)
class KvmAnswer:
    """`remembered`: when the kernel was tried, if that was earlier ("2026-11-22 15:04"); else empty."""

    works: bool
    why: str
    remembered: str = ""


def kvm_works(*, again: bool = False) -> KvmAnswer:
    """The device file may be there, and even firmware run, and no kernel start. So a kernel is started.

    The boxes' own, else the host's; without one, KVM is not relied on. `again`: not from memory.
    """
    if not DEVICE.exists():
        return KvmAnswer(False, f"there is no {DEVICE}")
    if not os.access(DEVICE, os.R_OK | os.W_OK):
        return KvmAnswer(False, f"{DEVICE} is not yours to open (group kvm)")
    if shutil.which(QEMU) is None:
        return KvmAnswer(False, f"{QEMU} is not installed")
    kernel = _some_kernel()
    if kernel is None:
        return KvmAnswer(False, "there is no kernel to try KVM with yet")
    key = _key(kernel)
    if not again and (known := _recall(key)) is not None:
        return known
    answer, took_long = _kernel_speaks(kernel)
    # A refusal is told at once, each time: what is in its way (another hypervisor, say) may be gone the next time.
    if answer.works or took_long:
        _remember(key, answer)
    return answer


def cache_folder() -> Path:
    """Where what is built once is kept, outside the checkout: the same rule as packer/box_cache.py's."""
    if chosen := os.environ.get("FWLAB_CACHE"):
        return Path(chosen)
    if os.getuid() == 0:
        return Path("/var/cache/fwlab")
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fwlab"


def _some_kernel() -> Path | None:
    candidates = [*sorted(cache_folder().glob("bases/*/vmlinuz*")), *sorted(Path("/boot").glob("vmlinuz*"))]
    return next((path for path in candidates if os.access(path, os.R_OK)), None)


def _key(kernel: Path) -> dict[str, Any]:
    """All that the answer hangs on."""
    device, file = DEVICE.stat(), kernel.stat()
    return {
        "host_kernel": platform.release(),
        "qemu": qemu_version(),
        "device": [os.major(device.st_rdev), os.minor(device.st_rdev), f"{device.st_mode:o}"],
        "kernel": [str(kernel), file.st_size, file.st_mtime_ns],
    }


def qemu_version() -> str:
    said = subprocess.run([QEMU, "--version"], capture_output=True, text=True, check=False).stdout.strip().splitlines()
    return said[0].replace("QEMU emulator version ", "").split(" (")[0] if said else "unknown"


def _recall(key: dict[str, Any]) -> KvmAnswer | None:
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError, RecursionError):
        record = json.loads((cache_folder() / MEMORY).read_text())
        if record["key"] == key:
            answer = KvmAnswer(**record["answer"])
            if isinstance(answer.works, bool) and isinstance(answer.why, str):
                return replace(answer, remembered=str(record["when"]))
    return None


def _remember(key: dict[str, Any], answer: KvmAnswer) -> None:
    record = {"key": key, "answer": asdict(answer), "when": time.strftime("%Y-%m-%d %H:%M")}
    with contextlib.suppress(FwlabError):  # without room it is asked anew each time
        write_atomically(cache_folder() / MEMORY, json.dumps(record, indent=1) + "\n")


def _kernel_speaks(kernel: Path) -> tuple[KvmAnswer, bool]:
    """Start the kernel under KVM without a disk and wait for its first line; and whether the wait ran out."""
    argv = ["timeout", "--kill-after=1", str(PATIENCE_S), QEMU, "-accel", "kvm", "-cpu", "host", "-m", "256"]
    argv += ["-display", "none", "-nodefaults", "-no-reboot", "-serial", "stdio"]
    argv += ["-kernel", str(kernel), "-append", "console=ttyS0 earlyprintk=serial panic=-1"]
    process = subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,  # one group for both, to be ended at once
    )
    said = b""
    deadline = time.monotonic() + PATIENCE_S
    try:
        while (left := deadline - time.monotonic()) > 0:
            ready, _, _ = select.select([process.stdout], [], [], left)
            part = os.read(process.stdout.fileno(), 4096) if ready else b""
            said += part
            if b"Linux version" in said:
                return KvmAnswer(True, "KVM runs a kernel"), False
            if not part:
                break
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.2)
        if process.poll() in (None, 124, 137):  # as timeout says that it ended, or killed, what it watched
            return KvmAnswer(False, f"under KVM a kernel says nothing within {PATIENCE_S} s"), True
        words = process.stderr.read().decode(errors="replace").strip().splitlines()
        return KvmAnswer(False, f"KVM does not start: {words[-1] if words else 'no words'}"), False
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
        process.stderr.close()
