# SPDX-License-Identifier: GPL-2.0-or-later
"""Builds the model from plugin/*.c as a plugin of QEMU's, once for each state of its sources."""

import hashlib
import platform
import shutil
import subprocess
import tempfile
from pathlib import Path

from fwlab.checkout.atomic_write import write_atomically
from fwlab.host.environment import cache_directory
from fwlab.model.errors import CannotMeasure

SOURCE = Path(__file__).with_name("plugin")
#: It takes a few seconds. After this something is broken (s).
TIMEOUT_S = 300
#: Maximum number of earlier builds that stay in the cache.
KEPT = 4


def built_model(source: Path = SOURCE) -> Path:
    """The plugin, which is built if the cache has none from these sources. Raises CannotMeasure."""
    folder = cache_directory() / "model"
    path = folder / f"fwlab-model-{key_of(source)}.so"
    if not path.is_file():
        _build(source, path)
        for old in sorted(folder.glob("fwlab-model-*.so"), key=lambda one: one.stat().st_mtime)[:-KEPT]:
            old.unlink(missing_ok=True)
    return path


def key_of(source: Path) -> str:
    """A hash of what the plugin is made from."""
    digest = hashlib.sha256(platform.machine().encode())
    for path in sorted([*source.glob("*.[ch]"), source / "Makefile"]):
        digest.update(f"{path.name} {path.stat().st_size}\n".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def _build(source: Path, path: Path) -> None:
    lacking = [tool for tool in ("make", "cc") if shutil.which(tool) is None]
    if lacking:
        raise CannotMeasure(
            f"the model is built with {' and '.join(lacking)}, which is missing",
            "as root: apt-get install make gcc libc6-dev",
        )
    with tempfile.TemporaryDirectory(prefix="fwlab-model-") as work:
        made = Path(work) / "model.so"
        command = ["make", "-s", "-C", str(source), "CC=cc", f"BUILD={work}/build", f"OUT={made}"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        except subprocess.TimeoutExpired as error:
            raise CannotMeasure("the model was not built within five minutes", f"make -C {source}") from error
        if done.returncode:
            words = "\n".join(done.stderr.strip().splitlines()[-5:])
            raise CannotMeasure(f"the model does not build:\n{words}", f"make -C {source}")
        write_atomically(path, made.read_bytes(), error=CannotMeasure)
    path.chmod(0o755)  # QEMU may be another user
