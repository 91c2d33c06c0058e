# SPDX-License-Identifier: GPL-2.0-or-later
"""Loads traffic profiles: runs TRex's Python files to get their streams in TRex's RPC format.

A profile is code. It runs only if it is a lab's own file; a profile from a submission is refused before it is read.
"""

import ast
import contextlib
import functools
import importlib.util
import inspect
import io
import linecache
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

from fwlab.checkout.project import Project, display_path
from fwlab.generator import trex_api
from fwlab.model.errors import BadInput
from fwlab.traffic.streams import parse_streams

#: Field engine instructions by the names in profiles.
_INSTRUCTIONS = {
    "STLVmFlowVar", "STLVmFlowVarRepeatableRandom", "STLVmFlowVarRepetableRandom", "STLVmFixChecksumHw",
    "STLVmFixIcmpv6", "STLVmFixIpv4", "STLVmWrFlowVar", "STLVmWrMaskFlowVar", "STLVmTrimPktSize", "STLVmTupleGen",
}  # fmt: skip
#: How profiles write unsupported features, by the words of the error message.
_UNSUPPORTED = {
    "tagged packet groups": re.compile(r"\bSTLTaggedPktGroup\s*\("),
    "IEEE 1588": re.compile(r"\bieee_1588\s*=\s*True"),
}
_ASTF = (
    "an ASTF profile, which is not read here",
    "declare `connections:` in lab.yml instead (guides/traffic.md#tcp-connections)",
)
_WITHOUT_STREAMS = "return a list of STLStream from get_streams instead"
#: Profiles of other kinds, by the name of the module that they import.
_OTHER_KINDS = {
    "astf": _ASTF,
    "trex.emu": ("a profile of TRex's EMU, which is not read here", _WITHOUT_STREAMS),
    "hltapi": ("a profile in TRex's HLT API, which is not read here", _WITHOUT_STREAMS),
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
    name, given = display_path(project, path), dict(tunables or {})
    trex_api.provide()
    with _importable(project, path):
        data: list[dict[str, Any]] = _call(project, path, given, lambda: _load(project, path, given))
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
            f"{display_path(project, path)}: not run, because it is not a lab's own profile",
            "use a profile in the lab's folder; submissions may contain rulesets only",
        )
    if not real.is_file():
        raise BadInput(f"{display_path(project, path)}: no such profile", f"ls {display_path(project, real.parent)}")
    if real.suffix != ".py":
        name = display_path(project, path)
        hint = "write it in Python, in a file that ends in .py, such as labs/common/mix.py"
        if real.suffix == ".json":
            hint += f"; `fwlab traffic expand {name}` expands streams in JSON"
        raise BadInput(f"{name}: not a Python profile", hint)
    return real


@contextlib.contextmanager
def _importable(project: Project, path: Path) -> Iterator[None]:
    """Let a profile import modules from its own folder, as TRex does, and discard what it prints.

    Another lab's profile may import another module of the same name, so those of the labs are forgotten afterwards.
    """
    bytecode, folders, modules = sys.dont_write_bytecode, sys.path[:], set(sys.modules)
    sys.path.insert(0, str(path.parent))
    sys.dont_write_bytecode = True
    try:
        with trex_api.default_addresses(), contextlib.redirect_stdout(io.StringIO()):
            yield
    finally:
        sys.dont_write_bytecode = bytecode
        sys.path[:] = folders
        for name in set(sys.modules) - modules:
            if _in_labs(project, getattr(sys.modules[name], "__file__", None)):
                del sys.modules[name]


def _in_labs(project: Project, file: str | None) -> bool:
    return bool(file) and Path(str(file)).resolve().is_relative_to(project.labs.resolve())


def _load(project: Project, path: Path, tunables: dict[str, Any]) -> list[dict[str, Any]]:
    name = display_path(project, path)
    spec = importlib.util.spec_from_file_location(f"fwlab_profile_{path.stem}", path)
    assert spec is not None  # noqa: S101 - a .py file has a loader
    assert spec.loader is not None  # noqa: S101
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if not callable(getattr(module, "register", None)):
        raise BadInput(f"{name}: no function register()", "end the file with: def register(): return YourClass()")
    profile = module.register()
    get_streams = getattr(profile, "get_streams", None)
    if get_streams is None and hasattr(profile, "get_profile"):
        raise BadInput(f"{name}: {_ASTF[0]}", _ASTF[1])
    if get_streams is None:
        what = f"register() returns a {type(profile).__name__}, which has no get_streams"
        raise BadInput(f"{name}: {what}", "end the file with: def register(): return YourClass()")
    return _to_json(_get_streams(get_streams, name, tunables), name)


def _get_streams(get_streams: Any, name: str, tunables: dict[str, Any]) -> Any:
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
    """Raises BadInput for a tunable that get_streams needs and does not get.

    Likewise for one that would vanish in a **kwargs that get_streams never reads: it is misspelt.
    """
    named = {key: p for key, p in parameters.items() if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    missing = [key for key, p in named.items() if p.default is p.empty and key not in (*tunables, *_GIVEN)]
    if missing:
        raise BadInput(f"{name}: get_streams needs the tunable {missing[0]!r}", _give(missing[0]))
    unknown = [tunable for tunable in tunables if tunable not in parameters]
    rest = next((key for key, p in parameters.items() if p.kind is p.VAR_KEYWORD), None)
    if not unknown or (rest and _reads(get_streams, rest)):
        return
    known = [key for key in named if key not in _GIVEN]
    raise BadInput(
        f"{name}: unknown tunable {unknown[0]!r}; there are: {', '.join(known) or 'none'}",
        "give only tunables that get_streams accepts",
    )


def _reads(function: Any, argument: str) -> bool:
    """Whether the function mentions its argument; True if its source cannot be found."""
    try:
        return len(re.findall(rf"\b{argument}\b", inspect.getsource(function))) > 1
    except (OSError, TypeError):
        return True


def _give(tunable: str) -> str:
    return f"give the tunable {tunable} in lab.yml, as `tunables: {{ {tunable}: … }}`"


def _call(project: Project, path: Path, given: dict[str, Any], action: Callable[[], Any]) -> Any:
    errors = io.StringIO()
    try:
        with contextlib.redirect_stderr(errors):
            return action()
    except BadInput:
        raise
    except SystemExit as error:
        said = errors.getvalue().strip().splitlines()
        reason = said[-1] if said else f"it exited with status {error.code}"
        hint = "give the tunables in lab.yml that the profile accepts"
        raise BadInput(f"{display_path(project, path)}: {reason}", hint) from error
    except Exception as error:  # any exception of a profile is reported in one line
        raise _explained(project, path, given, error) from error


def _explained(project: Project, path: Path, given: dict[str, Any], error: Exception) -> BadInput:
    """The exception of a profile, or of a module in its lab, with the line that it comes from."""
    stack = traceback.extract_tb(error.__traceback__)
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    ours = [number for number, at in enumerate(stack) if _in_labs(project, at.filename)]
    file, line = (stack[ours[-1]].filename, stack[ours[-1]].lineno) if ours else (str(path), None)
    if isinstance(error, SyntaxError) and _in_labs(project, error.filename):
        file, line = str(error.filename), error.lineno
    place = display_path(project, Path(file)) + (f", line {line}" if line else "")
    if isinstance(error, ImportError):
        missing = f"{error.name} {error.msg}".partition(" (")[0]  # behind that is a path
        for module, (what, hint) in _OTHER_KINDS.items():
            if re.search(rf"(?<![a-z]){module}(?![a-z])", missing):
                return BadInput(f"{place}: {what}", hint)
    if isinstance(error, KeyError) and ours and _reads_tunables(frames[ours[-1]], stack[ours[-1]], given):
        return BadInput(f"{place}: {_summary(error)}, a tunable that is not given", _give(error.args[0]))
    return BadInput(f"{place}: {_summary(error)}", f"fix {place}")


def _reads_tunables(frame: FrameType, at: traceback.FrameSummary, given: dict[str, Any]) -> bool:
    """Whether what failed is `kwargs["name"]`, or like it: a look-up in the keyword arguments of get_streams."""
    line = linecache.getline(at.filename, at.lineno or 0).encode()
    try:
        failed: Any = ast.parse(line[at.colno : at.end_colno].strip(), mode="eval").body
        failed = failed.func if isinstance(failed, ast.Call) else failed  # kwargs.pop("name")
        first, *rest = ast.unparse(failed.value).split(".")
        read = functools.reduce(getattr, rest, frame.f_locals.get(first))
    except (SyntaxError, AttributeError, ValueError):
        return False
    tunables = read or first == inspect.getargvalues(frame).keywords
    return isinstance(read, dict) and bool(tunables) and read.keys() <= {*given, *_GIVEN}


def _summary(error: Exception) -> str:
    said = getattr(error, "msg", None) or getattr(error, "message", None)  # TRex's exceptions add stacks to str()
    try:
        text = " ".join((said if isinstance(said, str) else str(error)).split())
    except Exception:  # noqa: BLE001 - some of them fail to describe themselves
        text = ""
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
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), start=1):
        if line.lstrip().startswith("class "):
            continue
        calls = re.findall(r"\b(STLVm\w+|CTRexVm\w+)\s*\(", line) if wanted is None else []
        if (wanted is not None and wanted.search(line)) or set(calls) - _INSTRUCTIONS:
            return f", line {number}"
    return ""
