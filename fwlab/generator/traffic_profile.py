# SPDX-License-Identifier: GPL-2.0-or-later
"""Loads traffic profiles: runs TRex's Python files to get their streams in TRex's RPC format.

A profile is code. It runs only if it is a lab's own file; a profile from a submission is refused before it is read.
"""

import contextlib
import importlib.util
import inspect
import io
import re
import sys
import traceback
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fwlab.generator import trex_api
from fwlab.host.project import Project, shown
from fwlab.model.errors import BadInput
from fwlab.traffic.streams import parse_streams

#: Field engine instructions by the names in profiles. The second list is known only to later TRex clients.
_OLD_INSTRUCTIONS = {
    "STLVmFlowVar", "STLVmFlowVarRepeatableRandom", "STLVmFlowVarRepetableRandom", "STLVmFixChecksumHw",
    "STLVmFixIpv4", "STLVmWrFlowVar", "STLVmWrMaskFlowVar", "STLVmTrimPktSize", "STLVmTupleGen",
}  # fmt: skip
_LATER_INSTRUCTIONS = {"STLVmFixIcmpv6"}
#: Messages of PyPI's library, from 2019, for a profile that uses newer features.
_SINCE_2019 = re.compile(r"unexpected keyword argument|name 'STL|'STL\w+' object has no attribute")
#: How profiles write unsupported features, by the words of the error message.
_UNSUPPORTED = {
    "tagged packet groups": re.compile(r"\bSTLTaggedPktGroup\s*\("),
    "IEEE 1588": re.compile(r"\bieee_1588\s*=\s*True"),
}
_WORK = "work"
_GIVEN = ("direction", "port_id")


def load_profile(
    project: Project,
    path: Path,
    tunables: Mapping[str, Any] | None = None,
) -> list[dict[str, Any]]:
    """The streams of a lab's profile, each as returned by `stream.to_json()`.

    Tunables are passed as keyword arguments of get_streams, or, if that has a parameter `tunables` or `args`, as a list
    ["--name", "value", …] for argparse. Raises BadInput naming the file and, for an exception in it, the line.
    """
    path = _own(project, path)
    name = shown(project, path)
    trex_api.provide()
    with _importable(path):
        module = _run(path, name)
        if not callable(getattr(module, "register", None)):
            raise BadInput(f"{name}: no function register()", "end the file with: def register(): return YourClass()")
        streams = _call(path, name, lambda: _get_streams(module, name, dict(tunables or {})))
        data = _to_json(streams, name)
    try:
        parse_streams(data)
    except BadInput as error:
        raise BadInput(f"{name}{_line_of(path, error.message)}: {error.message}", error.hint) from error
    return data


def _own(project: Project, path: Path) -> Path:
    """The resolved path. Raises BadInput unless it is a lab's own profile."""
    real, labs = path.resolve(), project.labs.resolve()
    inside = real.relative_to(labs).parts if real.is_relative_to(labs) else ()
    if len(inside) < 2 or _WORK in inside[1:-1]:
        raise BadInput(
            f"{shown(project, path)}: not run, because it is not a lab's own profile",
            "use a profile in the lab's folder; submissions may contain rulesets only",
        )
    if not real.is_file():
        raise BadInput(f"{shown(project, path)}: no such profile", f"ls {shown(project, real.parent)}")
    return real


@contextlib.contextmanager
def _importable(path: Path) -> Iterator[None]:
    """Let a profile import modules from its own folder, as TRex does, and discard what it prints."""
    before = sys.dont_write_bytecode
    sys.path.insert(0, str(path.parent))
    sys.dont_write_bytecode = True
    try:
        with trex_api.default_addresses(), contextlib.redirect_stdout(io.StringIO()):
            yield
    finally:
        sys.dont_write_bytecode = before
        sys.path.remove(str(path.parent))


def _run(path: Path, name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"fwlab_profile_{path.stem}", path)
    assert spec is not None  # noqa: S101 - a .py file has a loader
    assert spec.loader is not None  # noqa: S101
    execute = spec.loader.exec_module
    module = importlib.util.module_from_spec(spec)
    _call(path, name, lambda: execute(module))
    return module


def _get_streams(module: Any, name: str, tunables: dict[str, Any]) -> Any:
    get_streams = module.register().get_streams
    parameters = inspect.signature(get_streams).parameters
    listed = next((p for p in ("tunables", "args") if p in parameters), None)
    if listed is not None:
        as_list = [part for key, value in tunables.items() for part in (f"--{key}", str(value))]
        tunables = {listed: as_list}
    else:
        _check_tunables(get_streams, parameters, name, tunables)
    wanted = {"direction": 0, "port_id": 0, **tunables}
    if not any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        # not every profile has these two parameters; an unknown tunable still raises an error that names it
        wanted = {key: value for key, value in wanted.items() if key in parameters or key in tunables}
    return get_streams(**wanted)


def _check_tunables(get_streams: Any, parameters: Mapping[str, Any], name: str, tunables: dict[str, Any]) -> None:
    """Raises BadInput for a tunable that would vanish in a **kwargs that get_streams never reads: it is misspelt."""
    unknown = [tunable for tunable in tunables if tunable not in parameters]
    rest = next((key for key, p in parameters.items() if p.kind is p.VAR_KEYWORD), None)
    if not unknown or (rest and len(re.findall(rf"\b{rest}\b", inspect.getsource(get_streams))) > 1):
        return
    known = [key for key, p in parameters.items() if p.kind is not p.VAR_KEYWORD and key not in _GIVEN]
    raise BadInput(
        f"{name}: unknown tunable {unknown[0]!r}; there are: {', '.join(known) or 'none'}",
        "give only tunables that get_streams accepts",
    )


def _call(path: Path, name: str, action: Any) -> Any:
    errors = io.StringIO()
    try:
        with contextlib.redirect_stderr(errors):
            return action()
    except SyntaxError as error:
        where = error.lineno if error.filename == str(path) else None
        raise _blame(name, where, f"SyntaxError: {error.msg}") from error
    except BadInput:
        raise
    except SystemExit as error:
        said = errors.getvalue().strip().splitlines()
        reason = said[-1] if said else f"it exited with status {error.code}"
        raise BadInput(f"{name}: {reason}", "give only tunables that the profile accepts") from error
    except Exception as error:  # any exception of a profile is reported in one line
        raise _blame(name, _line_in(path, error), _summary(error)) from error


def _blame(name: str, line: int | None, what: str) -> BadInput:
    place = f"{name}, line {line}" if line else name
    hint = f"fix {place}"
    if line and _SINCE_2019.search(what) and trex_api.provide() == trex_api.PYPI:
        hint += "; TRex's own client supports more than trex-stl-lib 0.3"
    return BadInput(f"{place}: {what}", hint)


def _line_in(path: Path, error: BaseException) -> int | None:
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return lines[-1] if lines else None


def _summary(error: BaseException) -> str:
    text = " ".join(str(part) for part in (str(error) or "").split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _to_json(streams: Any, name: str) -> list[dict[str, Any]]:
    if not isinstance(streams, list | tuple):
        streams = streams.get_streams() if hasattr(streams, "get_streams") else [streams]
    if not streams:
        raise BadInput(f"{name}: get_streams returns no streams", "return a list of STLStream")
    for number, stream in enumerate(streams, start=1):
        if not hasattr(stream, "to_json"):
            raise BadInput(
                f"{name}: stream {number} is a {type(stream).__name__}, not an STLStream",
                "return a list of STLStream",
            )
    return [_one_to_json(stream) for stream in streams]


def _one_to_json(stream: Any) -> dict[str, Any]:
    """Include name and next, which older TRex clients leave out of to_json()."""
    data: dict[str, Any] = _plain(stream.to_json())
    for key in ("name", "next"):
        if getattr(stream, key, None):
            data.setdefault(key, getattr(stream, key))
    return data


def _plain(value: Any) -> Any:
    """The value with JSON types only: some clients leave bytes and objects of their own in it."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value.decode() if isinstance(value, bytes) else value


def _line_of(path: Path, message: str) -> str:
    """`, line N` of the first unknown or unsupported instruction, if that is what the message is about."""
    wanted = next((call for words, call in _UNSUPPORTED.items() if words in message), None)
    if wanted is None and "unknown instruction" not in message:
        return ""
    known = _OLD_INSTRUCTIONS | _LATER_INSTRUCTIONS
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        if line.lstrip().startswith("class "):
            continue
        calls = re.findall(r"\b(STLVm\w+|CTRexVm\w+)\s*\(", line) if wanted is None else []
        if (wanted is not None and wanted.search(line)) or set(calls) - known:
            return f", line {number}"
    return ""
