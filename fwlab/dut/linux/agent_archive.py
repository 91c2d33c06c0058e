# SPDX-License-Identifier: GPL-2.0-or-later
"""Packs the agent and the kinds of ruleset files into one archive. Unpacked, it is a folder that Python runs."""

import gzip
import importlib.util
import io
import tarfile
from importlib import resources
from pathlib import Path

from fwlab.rulesets.registry import KINDS

AGENT = "fwlab.dut.linux.agent"
KINDS_PACKAGE = "fwlab.rulesets.kinds"
#: Travel whole.
PACKAGES = (AGENT, KINDS_PACKAGE)
#: Travel alone.
MODULES = ("fwlab.rulesets.kind", "fwlab.model.registry")


def agent_archive() -> bytes:
    """A tar archive, compressed by gzip: the agent's modules under their own names; packages above them are empty.

    The same modules make the same bytes.

    A kind from an entry point travels as the one module that defines it, which may import the standard library and
    fwlab.rulesets.kind. A generated module in the package of the kinds makes the agent find it.
    """
    files: dict[str, bytes] = {"__main__.py": f"import {AGENT}.__main__\n".encode()}
    for package in PACKAGES:
        for item in sorted(resources.files(package).iterdir(), key=lambda item: item.name):
            if item.name.endswith(".py"):
                files[f"{package.replace('.', '/')}/{item.name}"] = item.read_bytes()
    for module in MODULES:
        files[_path(module)] = _source(module)
    for number, origin in enumerate(sorted({origin for origin in KINDS.origins.values() if ":" in origin})):
        module, _, attribute = origin.partition(":")
        files[_path(module)] = _source(module)
        first, _, rest = attribute.partition(".")
        found = f"from {module} import {first}\n\nKIND = {first}{'.' * bool(rest)}{rest}\n"
        files[f"{KINDS_PACKAGE.replace('.', '/')}/plugin_{number}.py"] = found.encode()
    for path in [*files]:
        for folder in Path(path).parents[:-1]:
            files.setdefault(f"{folder.as_posix()}/__init__.py", b"")
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for path, content in sorted(files.items()):
            member = tarfile.TarInfo(path)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return gzip.compress(packed.getvalue(), mtime=0)


def _path(module: str) -> str:
    return f"{module.replace('.', '/')}.py"


def _source(module: str) -> bytes:
    found = importlib.util.find_spec(module)
    if found is None or found.origin is None:
        raise ImportError(f"{module} has no source file that could be sent to the DUT")
    return Path(found.origin).read_bytes()
