# SPDX-License-Identifier: GPL-2.0-or-later
"""Content keys: a hash of everything that decides what is in an image or in its base.

The code that drives the build is not part of a key: a reworded message must not cost a rebuild.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from fwlab.images.errors import BuildError


def base_key(root: Path, image: str, settings: dict[str, str]) -> str:
    """The key (64 hex digits) of an image's base: the root file system before Packer provisions it."""
    full = ["packer/full-kernel/*"] if "kernel" in settings else []
    files = _files(root, "packer/base/*", "provision/run", "provision/common/*", f"provision/{image}/*", *full)
    return _hash(root, files, settings)


def content_key(root: Path, image: str, settings: dict[str, str]) -> str:
    """The key (64 hex digits) of an image.

    root      the checkout
    settings  variables from outside: base_url, base_checksum; trex_sha256 if the image contains TRex; kernel if it is
              not the usual one; system if it is not Linux
    """
    wanted = ["packer/*.pkr.hcl", "packer/seed", "provision/run", "provision/idempotence_check", f"provision/{image}/*"]
    if settings.get("system") != "freebsd":
        wanted += ["packer/base/*", "provision/cleanup", "provision/common/*"]
        wanted += ["packer/cloud/*"] if settings["base_checksum"] else []
        wanted += ["packer/full-kernel/*"] if "kernel" in settings else []
    files = list(_files(root, *wanted))
    if image == "generator":
        engine = _files(root, "engine/Makefile", "engine/*.c", "engine/*.h")
        files += [path for path in engine if not path.name.endswith(".skel.h")]
    return _hash(root, files, settings)


def _files(root: Path, *patterns: str) -> Iterator[Path]:
    for pattern in patterns:
        found = [path for path in root.glob(pattern) if path.is_file() and "__pycache__" not in path.parts]
        if not found:
            raise BuildError(f"{root / pattern} matches no file", "is this checkout complete?")
        yield from found


def _hash(root: Path, files: Iterable[Path], settings: dict[str, str]) -> str:
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
    for path in sorted(set(files)):
        kind = "x" if os.access(path, os.X_OK) else "-"
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        digest.update(f"{path.relative_to(root)} {kind} {content}\n".encode())
    return digest.hexdigest()
