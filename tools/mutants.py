# SPDX-License-Identifier: GPL-2.0-or-later
"""How many faults the unit tests find: mutants of functions, drawn by a seed, and given to the tests of their line.

    .venv/bin/pytest -n0 --cov=fwlab/judge --cov-context=test --cov-report= tests/unit tests/contract
    .venv/bin/python -m tools.mutants OUT.json.gz fwlab/judge

The first command notes in .coverage which test runs which line. The second writes to the files of the package while it
runs; do not edit them. A process that has collected the tests forks for each mutant, and exchanges the code of the
functions there. The file is written for what is imported later, and for programs that tests start.

A mutant is killed if a test fails that passes without it. Tests that run few lines come first. After --cpu-s seconds it
has survived; if no test runs its line, it counts as survived, too. OUT gains a run for each call. A commit that has no
such module runs that of another checkout by its path.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import datetime
import gc
import gzip
import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

import coverage
import pytest

OPERATORS: dict[type, type] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
}  # fmt: skip
CALLS = {"min": "max", "max": "min", "any": "all", "all": "any", "sorted": "list"}
KILLED, SURVIVED, TIMED_OUT, NOT_EXCHANGED = OUTCOMES = ("killed", "survived", "timed out", "not exchanged")
#: What the page shows of a score.
COLUMNS = ("possible", "drawn", KILLED, TIMED_OUT, SURVIVED, "not run")
#: Seconds of CPU that one test may take, and of a clock that one mutant may take, on a busy host, too.
TEST_S, MUTANT_S = 20, 900


@dataclass
class Mutant:
    """`was` at bytes start to end of the file becomes `now`. tests: how many ran; by: the one that failed."""

    path: str
    line: int
    start: int
    end: int
    was: str
    now: str
    outcome: str = SURVIVED
    tests: int = 0
    by: str = ""


def changes(node: Any) -> Iterator[ast.AST]:
    """What a node may become."""
    new = copy.deepcopy(node)
    match node:
        case ast.Compare(ops=[op]) if type(op) in OPERATORS:
            new.ops = [OPERATORS[type(op)]()]
            yield new
        case ast.BoolOp(op=op) | ast.BinOp(op=op) | ast.AugAssign(op=op) if type(op) in OPERATORS:
            new.op = OPERATORS[type(op)]()
            yield new
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            yield new.operand
        case ast.Constant(value=bool()):
            yield ast.Constant(not node.value)
        case ast.Constant(value=int() | float() as number):
            yield ast.Constant(number + 1)
        case ast.Call(func=ast.Name(id=name)) if name in CALLS:
            new.func.id = CALLS[name]
            yield new
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant) or value.value is not None:
            yield ast.Return(ast.Constant(None))
        case ast.Expr(value=ast.Call()) | ast.Raise() | ast.Continue() | ast.Break():
            yield ast.Pass()


def mutants_of(path: str) -> Iterator[Mutant]:
    """Every mutant of the bodies of a file's functions, without what stands in f-strings, annotations and defaults."""
    source, starts = Path(path).read_bytes(), [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    tree = ast.parse(source)
    tests = {id(node.test) for node in ast.walk(tree) if isinstance(node, ast.If | ast.While | ast.IfExp)}
    tests |= {id(test) for node in ast.walk(tree) if isinstance(node, ast.comprehension) for test in node.ifs}

    def bodies(node: ast.AST, inside: bool = False) -> Iterator[Any]:
        if inside:
            yield node
        function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        skipped: list[Any] = [node.annotation] if isinstance(node, ast.AnnAssign) else []
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            skipped = [*node.decorator_list, node.args, node.returns]
        for child in ast.iter_child_nodes(node):
            if child not in skipped and not isinstance(child, ast.JoinedStr):
                yield from bodies(child, inside or function)

    for node in bodies(tree):
        found = [*changes(node)]
        if isinstance(node, ast.Name | ast.Attribute | ast.Call) and id(node) in tests:
            found.append(ast.UnaryOp(ast.Not(), node))
        for new in found:
            start, end = starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset
            text = ast.unparse(ast.fix_missing_locations(new))
            now = f"({text})" if isinstance(node, ast.expr) else text
            yield Mutant(path, node.lineno, start, end, source[start:end].decode(), now)


class Driver:
    """A plug-in of pytest that runs no test itself, but in a fork for each mutant. tests: of each mutant, in order."""

    def __init__(self, mutants: list[Mutant], tests: list[list[str]], cpu_s: float) -> None:
        self.mutants, self.tests, self.cpu_s = mutants, tests, cpu_s
        self.failed, self.time = False, int(time.time())
        self.items: dict[str, pytest.Item] = {}
        self.functions: list[FunctionType] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Remember in the fork that a test failed."""
        self.failed = self.failed or report.failed

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Try each mutant."""
        self.items = {item.nodeid: item for item in session.items}
        gc.unfreeze()
        self.functions = [each for each in gc.get_objects() if isinstance(each, FunctionType)]
        gc.freeze()
        for mutant, tests in zip(self.mutants, self.tests, strict=True):
            source = Path(mutant.path).read_bytes()
            try:
                self._try(mutant, source, [self.items[test] for test in tests if test in self.items])
            finally:
                self._write(mutant, source)
            print(mutant.path, mutant.line, mutant.outcome, mutant.tests, mutant.by, file=sys.stderr, flush=True)
        return True

    def _try(self, mutant: Mutant, source: bytes, left: list[pytest.Item]) -> None:
        changed = source[: mutant.start] + mutant.now.encode() + source[mutant.end :]
        while left:
            self._write(mutant, changed)
            outcome, count = self._fork(left, lambda: self._exchange(mutant, source, changed))
            mutant.tests += count
            if outcome in (SURVIVED, NOT_EXCHANGED):
                mutant.outcome = outcome
                return
            self._write(mutant, source)
            suspect, left = left[count - 1], left[count:]
            if self._fork([suspect], lambda: True)[0] == SURVIVED:
                mutant.outcome, mutant.by = outcome, suspect.nodeid
                return

    def _write(self, mutant: Mutant, source: bytes) -> None:
        """With a new time of change, from which Python knows that its bytecode is stale."""
        self.time += 2
        Path(mutant.path).write_bytes(source)
        os.utime(mutant.path, (self.time, self.time))

    def _exchange(self, mutant: Mutant, source: bytes, changed: bytes) -> bool:
        """Give the file's functions the mutant's code; whether one has changed, or the file is not imported yet."""
        path = str(Path(mutant.path).resolve())
        if not any(getattr(module, "__file__", None) == path for module in [*sys.modules.values()]):
            return True
        old, new = (_codes(compile(text, path, "exec")) for text in (source, changed))
        codes = {(key[0], code.co_firstlineno): new[key] for key, code in old.items() if key in new}
        different = {(key[0], code.co_firstlineno) for key, code in old.items() if _text(code) != _text(new.get(key))}
        found = False
        for function in self.functions:
            code = function.__code__
            place = code.co_qualname, code.co_firstlineno
            if code.co_filename == path and place in codes and code.co_freevars == codes[place].co_freevars:
                function.__code__ = codes[place]
                found = found or place in different
        return found

    def _fork(self, items: list[pytest.Item], prepare: Callable[[], bool]) -> tuple[str, int]:
        """Run tests until one fails; the outcome, and how many ran."""
        receive, send = os.pipe()
        child = os.fork()
        if not child:
            self._run(items, prepare, send)
        os.close(send)
        os.set_blocking(receive, False)
        heard, until = b"", time.monotonic() + MUTANT_S
        while time.monotonic() < until and heard[-1:] in (b"", b"t"):
            try:
                piece = os.read(receive, 4096)
            except BlockingIOError:
                time.sleep(0.01)
                continue
            if not piece:
                break
            heard += piece
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(receive)
        ended = heard[-1:] not in (b"", b"t")
        return OUTCOMES[heard[-1]] if ended else TIMED_OUT, heard.count(b"t")

    def _run(self, items: list[pytest.Item], prepare: Callable[[], bool], send: int) -> None:
        """In the fork: say `t` before each test, and at last the outcome."""
        os.setpgrp()
        quiet = os.open(os.devnull, os.O_WRONLY)
        for output in (1, 2):
            os.dup2(quiet, output)

        def end(outcome: str) -> None:
            os.write(send, bytes([OUTCOMES.index(outcome)]))
            os._exit(0)

        def late(_number: int, _frame: FrameType | None) -> None:
            end(TIMED_OUT)

        signal.signal(signal.SIGPROF, late)
        if not prepare():
            end(NOT_EXCHANGED)
        for item, following in zip(items, [*items[1:], None], strict=True):
            os.write(send, b"t")
            signal.setitimer(signal.ITIMER_PROF, TEST_S)
            try:
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            except BaseException:  # noqa: BLE001 - whatever it is, the mutant is noticed
                end(KILLED)
            if self.failed:
                end(KILLED)
            used = resource.getrusage(resource.RUSAGE_SELF)
            if used.ru_utime + used.ru_stime > self.cpu_s:
                break
        end(SURVIVED)


def _codes(code: CodeType) -> dict[tuple[str, int], CodeType]:
    """All code of a module, by its name and its place among those of the same name."""
    found: dict[tuple[str, int], CodeType] = {}
    left = [code]
    for one in left:
        found[one.co_qualname, sum(name == one.co_qualname for name, _ in found)] = one
        left += [constant for constant in one.co_consts if isinstance(constant, CodeType)]
    return found


def _text(code: CodeType | None) -> tuple[bytes, list[str]] | None:
    """What it does, without the code of functions in it."""
    return code and (code.co_code, [repr(one) for one in code.co_consts if not isinstance(one, CodeType)])


def by_line(maps: list[str]) -> dict[tuple[str, int], set[str]]:
    """By file and line the tests that run it; an empty set for a line that runs only while it is imported."""
    found: dict[tuple[str, int], set[str]] = {}
    for file in maps:
        data = coverage.CoverageData(file)
        data.read()
        for measured in data.measured_files():
            path = str(Path(measured).relative_to(Path.cwd()))
            for line, contexts in data.contexts_by_lineno(measured).items():
                if contexts:
                    tests = {context.rpartition("|")[0] for context in contexts if context}
                    found.setdefault((path, line), set()).update(tests)
    return found


def in_order(tests: set[str], lines: Counter[str]) -> list[str]:
    """Those that run the fewest lines first, and one case of each test before the second of any."""
    turns, seen = {}, Counter[str]()
    for test in sorted(tests, key=lambda test: (lines[test], test)):
        turns[test] = seen[test.partition("[")[0]]
        seen[test.partition("[")[0]] += 1
    return sorted(turns, key=lambda test: (turns[test], lines[test], test))


def main() -> None:
    """Draw the mutants, try them, and write what became of each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("packages", nargs="+")
    parser.add_argument("--map", nargs="+", default=[".coverage"])
    parser.add_argument("--seed", type=int, default=39)
    parser.add_argument("--number", type=int, default=40)
    parser.add_argument("--cpu-s", type=float, default=10)
    options = parser.parse_args()
    found, drawn, possible = by_line(options.map), list[Mutant](), {}
    for package in options.packages:
        files = sorted(Path(package).rglob("*.py")) if Path(package).is_dir() else [Path(package)]
        every = [one for path in files for one in mutants_of(str(path)) if found.get((one.path, one.line)) != set()]
        possible[package] = len(every)
        drawn += random.Random(f"{options.seed} {package}").sample(every, min(options.number, len(every)))
    lines = Counter(test for tests in found.values() for test in tests)
    tests = [in_order(found.get((one.path, one.line), set()), lines) for one in drawn]
    files_of_tests = sorted({test.partition("::")[0] for some in tests for test in some})
    words = ["-q", "-p", "no:cacheprovider", "-n0", "-W", "ignore", *files_of_tests]
    pytest.main(words, plugins=[Driver(drawn, tests, options.cpu_s)])
    scores = {}
    for package in options.packages:
        own = [(mutant, some) for mutant, some in zip(drawn, tests, strict=True) if mutant.path.startswith(package)]
        scores[package] = {
            "possible": possible[package],
            "drawn": len(own),
            "not run": sum(not some for _, some in own),
        }
        scores[package] |= Counter(mutant.outcome for mutant, _ in own)
    head = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, check=True)
    run = {"date": datetime.date.today().isoformat(), "commit": head.stdout.strip(), "seed": options.seed}
    run |= {"cpu_s": options.cpu_s, "scores": scores, "mutants": [asdict(mutant) for mutant in drawn]}
    out = Path(options.out)
    document = json.loads(gzip.decompress(out.read_bytes())) if out.exists() else {"runs": {}}
    document["runs"].setdefault(run["commit"], []).append(run)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_bytes(gzip.compress((json.dumps(document, indent=1) + "\n").encode(), mtime=0))
    print(json.dumps(scores, indent=1))


def scores() -> str:
    """One row per commit and package of the newest result: how many mutants its tests have found."""
    from fwlab.checkout.project import find_project
    from fwlab.checkout.raw_results import raw_results, read_document
    from tools.markdown import block, table

    document = json.loads(read_document(raw_results(find_project(), "tests/*-mutation")[-1]))
    rows = [
        (f"{run['date']}, `{run['commit'][:7]}`", f"`{package}`", *(str(score.get(name, 0)) for name in COLUMNS))
        for runs in document["runs"].values()
        for run in runs
        for package, score in run["scores"].items()
    ]
    return block(table(("commit", "package", *(f"{name}:" for name in COLUMNS)), rows))


if __name__ == "__main__":
    main()
