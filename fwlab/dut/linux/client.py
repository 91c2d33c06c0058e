# SPDX-License-Identifier: GPL-2.0-or-later
"""The host's client of the agent on a Linux DUT, and the archive in which the agent travels there."""

import base64
import gzip
import hashlib
import importlib.util
import io
import re
import tarfile
import zlib
from collections.abc import Iterable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from fwlab.dut.agent_client import AgentDut
from fwlab.dut.agent_protocol import Flows, Forgotten
from fwlab.dut.conversation import CLEARING_UP_S, AgentProgram
from fwlab.host.ssh import Ssh
from fwlab.model.ruleset import RulesetFile
from fwlab.model.trial import FiveTuple
from fwlab.rulesets.registry import KINDS

AGENT_PACKAGE = "fwlab.dut.linux.agent"
KINDS_PACKAGE = "fwlab.rulesets.kinds"
#: Travel whole.
PACKAGES = (AGENT_PACKAGE, f"{AGENT_PACKAGE}.counts", KINDS_PACKAGE)
#: Travel alone.
MODULES = ("fwlab.rulesets.kind", "fwlab.model.registry")


def agent_archive() -> bytes:
    """A tar archive, compressed by gzip: the agent's modules under their own names; packages above them are empty.

    The same modules make the same bytes.

    A kind from an entry point travels as the one module that defines it, which may import the standard library and
    fwlab.rulesets.kind. A generated module in the package of the kinds makes the agent find it.
    """
    files: dict[str, bytes] = {"__main__.py": f"import {AGENT_PACKAGE}.__main__\n".encode()}
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
    return archive(files)


def modules_archive(modules: Iterable[str]) -> bytes:
    """The same of these modules alone."""
    return archive({_path(module): _source(module) for module in modules})


def archive(files: Mapping[str, bytes]) -> bytes:
    """A tar archive of these files, compressed by gzip; the packages above them are empty."""
    whole = dict(files)
    for path in files:
        for folder in Path(path).parents[:-1]:
            whole.setdefault(f"{folder.as_posix()}/__init__.py", b"")
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as opened:
        for path, content in sorted(whole.items()):
            member = tarfile.TarInfo(path)
            member.size = len(content)
            opened.addfile(member, io.BytesIO(content))
    return gzip.compress(packed.getvalue(), mtime=0)


def _path(module: str) -> str:
    return f"{module.replace('.', '/')}.py"


def _source(module: str) -> bytes:
    found = importlib.util.find_spec(module)
    if found is None or found.origin is None:
        raise ImportError(f"{module} has no source file that could be sent to the DUT")
    return Path(found.origin).read_bytes()


AGENT = "/run/fwlab-agent"
_ALONE = f"flock -o -w {CLEARING_UP_S} {AGENT}.lock"


def _program() -> AgentProgram:
    """The agent in a folder that stays on the DUT: Python takes longer to compile it than to run it.

    The folder has a file named by what was unpacked, made last: a folder without it is not whole.
    """
    packed = agent_archive()
    whole = f"{AGENT}/{hashlib.sha256(packed).hexdigest()}"
    compiled = f"python3 -S -m compileall -q {AGENT}"
    unpack = f"rm -rf {AGENT} && mkdir {AGENT} && tar -xzC {AGENT} && {compiled} && touch {whole}"
    save = f"{_ALONE} sh -c 'if [ -e {whole} ]; then cat >/dev/null; else {unpack}; fi'"
    return AgentProgram(packed, save, f"exec {_ALONE} python3 -Su {AGENT}")


#: IP's numbers of the protocols in /proc/net/nf_conntrack that have ports, and both directions of an entry there.
_PROTOCOLS = {"tcp": 6, "udp": 17}
_ENTRY = re.compile(r"\S+ +\d+ (tcp|udp) ")
_DIRECTION = re.compile(r"src=(\S+) dst=(\S+) sport=(\d+) dport=(\d+) packets=(\d+)")


def packets_of_flows(table: str) -> dict[FiveTuple, int]:
    """The packets that each flow's entry has counted, by the text of /proc/net/nf_conntrack."""
    found = {}
    for line in table.splitlines():
        if entry := _ENTRY.match(line):
            for source, destination, sport, dport, packets in _DIRECTION.findall(line):
                found[FiveTuple(_PROTOCOLS[entry[1]], source, int(sport), destination, int(dport))] = int(packets)
    return found


class LinuxDut(AgentDut):
    """A DUT that runs Linux."""

    serving = ("net_rx_action", "net_tx_action")
    not_of_packets = ("swapper", "perf", "python3")  # the idle loop, the profiler and the agent
    marks = True
    can_be_paced = True

    def __init__(self, ssh: Ssh, devices: list[str]) -> None:
        super().__init__(ssh, devices, _program)

    def forget_states(self) -> bool:
        return self.ask("forget_states", Forgotten, timeout=120)["emptied"]

    def count_flows(self) -> bool:
        return self.ask("count_flows", Forgotten, timeout=120)["emptied"]

    def flows(self) -> dict[FiveTuple, int]:
        packed = self.ask("flows", Flows, timeout=120)["packed"]
        return packets_of_flows(zlib.decompress(base64.b64decode(packed)).decode())

    def _given(self, file: RulesetFile) -> dict[str, str]:
        text = KINDS[file.kind].sent(file.text).encode()
        return {"name": file.name, "kind": file.kind, "packed": base64.b64encode(zlib.compress(text, 6)).decode()}

    def _reset_request(self, next_ruleset: list[RulesetFile] | None) -> dict[str, Any]:
        """What the next ruleset's packets will visit anyway."""
        if next_ruleset is None:
            return {}
        return {"next_tables": [hook for file in next_ruleset for hook in KINDS[file.kind].hooks(file.text)]}
