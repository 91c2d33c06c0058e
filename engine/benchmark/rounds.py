# SPDX-License-Identifier: GPL-2.0-or-later
"""The measurements: rounds in which all players take turns, so that other load on the host affects all alike."""

from __future__ import annotations

import argparse
import contextlib
import statistics
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

from engine.benchmark.host import LOOPBACK, FarEnd, Lock, pin_process
from engine.benchmark.machine import Bench, cheapest_sender
from engine.benchmark.players import TABLE, TABLES, Player, make_table, players
from engine.benchmark.trex import Trex
from fwlab.model.topology import Topology

Say = Callable[[dict[str, Any]], None]
#: Time before counting starts, and time that a player goes on after counting ends (s).
LEAD_S, LONGER_S = 0.5, 1.0
TRAFFIC_TIMEOUT_S = 30
#: Senders that measure the link itself: bare system calls on the host, and the cheapest sender in QEMU.
HOST, GUEST = "link-host", "link-guest"


class Ceiling:
    """The measurements flat out."""

    def __init__(
        self, bench: Bench, far_end: FarEnd, topology: Topology, folder: Path, options: argparse.Namespace, say: Say
    ) -> None:
        self._bench, self._far_end, self._topology, self._folder = bench, far_end, topology, folder
        self._options, self._say = options, say
        self._lock = Lock(options.lock)
        wanted = set(options.players.split(",")) if options.players else None
        self._players = [p for p in players(topology) if wanted is None or p.name in wanted]
        self._links = [name for name in (HOST, GUEST) if wanted is None or name in wanted]
        self._with_trex = bench.trex is not None and (wanted is None or Trex.name in wanted)
        self._runs: list[dict[str, Any]] = []

    def runs(self, sizes: list[int]) -> list[dict[str, Any]]:
        """All rounds of these frame sizes (bytes); one record for each run."""
        for size in sizes:
            _copy_tables(self._bench, self._folder, size, self._topology)
            for number in range(self._options.rounds):
                with self._lock.turn():
                    self._round(size, number)
        # TRex's server takes a minute to start and polls while idle, so it takes its turns after all others.
        if self._with_trex:
            with self._lock.turn(), Trex(self._bench, self._topology) as trex:
                for size in sizes:
                    for number in range(self._options.rounds):
                        with trex.playing(size):
                            self._note(Trex.name, size, number, self._count(lambda: None, self._bench.pid), {})
        return self._runs

    def _round(self, size: int, number: int) -> None:
        seconds = self._options.seconds + LEAD_S + LONGER_S
        pin_process(self._bench.pid)  # again: the host may have moved it
        if HOST in self._links:
            with _host_sender(self._folder / "build" / "link-host", self._far_end.port, size, seconds):
                self._note(HOST, size, number, self._count(lambda: None, None), {})
        if GUEST in self._links:
            kernel = self._folder / "build" / "link-guest"
            with cheapest_sender(self._topology, kernel, size, self._far_end.port) as pid:
                self._note(GUEST, size, number, self._count(lambda: None, pid), {})
        for player in self._players:
            self._play(player, size, number, seconds)

    def _play(self, player: Player, size: int, number: int, seconds: float) -> None:
        before = self._far_end.count()
        with _Command(self._bench, player.command(size, seconds)) as command:
            found = self._count(command.failed, self._bench.pid)
            own = player.own(command.result())
        time.sleep(0.3)  # until the ring is empty
        own["arrived_in_all"] = self._far_end.count() - before
        self._note(player.name, size, number, found, own)

    def _count(self, failed: Callable[[], str | None], carrier: int | None) -> dict[str, Any]:
        self._far_end.await_traffic(failed, TRAFFIC_TIMEOUT_S)
        time.sleep(LEAD_S)
        return self._far_end.rate(self._options.seconds, carrier)

    def _note(self, name: str, size: int, number: int, found: dict[str, Any], own: dict[str, Any]) -> None:
        run = {"player": name, "size": size, "round": number, **found, **({"own": own} if own else {})}
        self._runs.append(run)
        self._say(run)


def pacing(
    bench: Bench,
    far_end: FarEnd,
    topology: Topology,
    folder: Path,
    rates: list[float],
    options: argparse.Namespace,
    say: Say,
) -> list[dict[str, Any]]:
    """Measure the engine at each of these rates with both drivers."""
    runs = []
    _copy_tables(bench, folder, 60, topology)
    seconds, lock = options.seconds + LEAD_S + LONGER_S, Lock(options.lock)
    for number in range(options.rounds):
        with lock.turn():
            pin_process(bench.pid)
            for player in [p for p in players(topology) if TABLE in p.command(60, 1)]:
                for rate in rates:
                    play = f"{player.command(60, seconds)} --rate {rate:g}"
                    with _Command(bench, play) as command:
                        far_end.await_traffic(command.failed, TRAFFIC_TIMEOUT_S)
                        time.sleep(LEAD_S)
                        found = far_end.rate(options.seconds)
                        own = player.own(command.result())
                    share = round(found["arrived"] / found["seconds"] / rate, 5)
                    run = {"player": player.name, "rate": rate, "round": number, **found, "of_rate": share, "own": own}
                    runs.append(run)
                    say(run)
    return runs


def summary(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """The median and the spread ((highest - lowest) / median) by player and size (or rate), and for each size every
    player's ratio to the link and to the best player that is not the engine."""
    groups: dict[str, dict[str, list[float]]] = {}
    for run in runs:
        groups.setdefault(f"{run.get('size', run.get('rate')):g}", {}).setdefault(run["player"], []).append(run["pps"])
    found: dict[str, Any] = {}
    for key, by_player in groups.items():
        medians = {name: statistics.median(values) for name, values in by_player.items()}
        others = [value for name, value in medians.items() if not name.startswith(("replay", "link"))]
        found[key] = {}
        for name, values in by_player.items():
            row = {"median_pps": medians[name], "spread": round((max(values) - min(values)) / medians[name], 4)}
            for of, whole in (("of_link_guest", medians.get(GUEST)), ("of_best_other", max(others, default=None))):
                if whole and "size" in runs[0]:
                    row[of] = round(medians[name] / whole, 3)
            if "rate" in runs[0]:
                row["of_rate"] = round(medians[name] / float(key), 5)
            found[key][name] = row
    return {"medians": found}


def _copy_tables(bench: Bench, folder: Path, size: int, topology: Topology) -> None:
    for table, frames in TABLES.items():
        make_table(folder / "table", size, frames, topology)
        bench.ssh.run(f"cat > {table}", data=(folder / "table").read_bytes(), timeout=300)


class _Command:
    """A player's command, running on the generator."""

    def __init__(self, bench: Bench, command: str) -> None:
        self._bench, self._command = bench, command
        self._said, self._error = "", ""
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        try:
            self._said = self._bench.ssh.run(self._command, timeout=120)
        except Exception as error:  # noqa: BLE001 - reported to whoever waits for this player's frames
            self._error = str(error)

    def failed(self) -> str | None:
        if self._thread.is_alive():
            return None
        return self._error or "the player ended before it was measured"

    def result(self) -> str:
        self._thread.join()
        if self._error:
            raise RuntimeError(self._error)
        return self._said

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.join()


@contextlib.contextmanager
def _host_sender(program: Path, port: int, size: int, seconds: float) -> Iterator[None]:
    command = [str(program), LOOPBACK, str(port), str(size), str(seconds)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True)
    try:
        pin_process(process.pid)
        yield
    finally:
        process.kill()
        process.wait()
