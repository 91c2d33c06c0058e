# SPDX-License-Identifier: GPL-2.0-or-later
"""How the host starts and stops the replay engine: the shell command, with a fake engine."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from fwlab.generator import replay as replay_module
from fwlab.generator.replay import MIN_LONG_RUN, Replay
from fwlab.host.root_shell import RootShell
from fwlab.model.errors import CannotMeasure
from tests.fakes.recording_node import Node

#: Installs its signal handler late, as the engine does on a busy host, and reports on the signal.
LATE = f"""#!{sys.executable}
import signal, sys, time
def report(*_):
    print('{{"sent": 5, "attempted": 7, "duration_s": 0.5}}')
    sys.exit()
time.sleep(0.7)
signal.signal(signal.SIGTERM, report)
while True:
    time.sleep(0.1)
"""


class Here:
    """A generator whose commands run on this host, as programs of this folder."""

    def __init__(self, programs: Path) -> None:
        login = f'PATH={programs}:$PATH; sudo() {{ exec "$@"; }}; eval "$1"'
        self.shell = RootShell(["sh", "-c", login, "sh"])
        self.launch = self.shell.start

    def run(self, command: str, **_: object) -> None:
        """Copies no table."""


def engine(node: object, device: str = "eth0", *, emulated: bool = False) -> Replay:
    """An engine that plays some table."""
    made = Replay(node, device, emulated=emulated)
    made.use(SimpleNamespace(path=lambda _: Path(__file__)), "any")
    return made


@pytest.fixture
def replay(tmp_path: Path) -> Replay:
    program = tmp_path / "fwlab-replay"
    program.write_text(LATE)
    program.chmod(0o755)
    return engine(Here(tmp_path))


def test_a_stop_before_the_engine_handles_signals_still_yields_the_report(replay: Replay) -> None:
    played = replay.start().stop(timeout=30)
    assert (played.sent, played.duration_s) == (5, 0.5)


def test_the_engine_stops_if_the_host_disconnects(replay: Replay, tmp_path: Path) -> None:
    report = tmp_path / "report"
    (tmp_path / "fwlab-replay").write_text(
        LATE.replace("    sys.exit()", f"    open({str(report)!r}, 'w').write('5')\n    sys.exit()")
    )
    here = Here(tmp_path)
    engine(here).start()
    here.shell._conversation.close(30)  # as when the host's end of the connection goes
    assert report.read_text() == "5"


@pytest.mark.parametrize(
    ("emulated", "load", "count", "virtio"),
    [
        (True, 9000, MIN_LONG_RUN, True),
        (True, 9000, MIN_LONG_RUN - 1, False),
        (True, 9000, None, False),
        (True, None, MIN_LONG_RUN, False),
        (False, 9000, MIN_LONG_RUN, False),
    ],
)
def test_a_long_counted_run_uses_the_virtio_driver_on_an_emulated_cpu(
    emulated: bool, load: float | None, count: int | None, virtio: bool
) -> None:
    node = Node()
    engine(node, "eth7", emulated=emulated).start(load=load, count=count)
    said = node.commands[-1]
    options = (f"--rate {load}", load), (f"--count {count}", count), ("--driver virtio", virtio)
    assert f"--json {' '.join(option for option, given in options if given)} </dev/null" in said
    assert ("networkd-wait-online -q -i eth7" in said[said.index("wait $p") : said.index("exit $r")]) == virtio


@pytest.mark.parametrize("given_back", [True, False])
def test_a_nic_without_its_addresses_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given_back: bool
) -> None:
    program = tmp_path / "fwlab-replay"
    program.write_text("""#!/bin/sh\necho '{"sent": 5, "attempted": 5, "duration_s": 0.5}'\n""")
    program.chmod(0o755)
    waits = "/lib/systemd/systemd-networkd-wait-online"
    assert waits in replay_module._AWAIT_ADDRESSES
    instead = replay_module._AWAIT_ADDRESSES.replace(waits, str(given_back).lower())  # true and false are programs, too
    monkeypatch.setattr(replay_module, "_AWAIT_ADDRESSES", instead)
    playing = engine(Here(tmp_path), "eth7", emulated=True).start(load=9000, count=MIN_LONG_RUN)
    if given_back:
        assert playing.wait(timeout=30).sent == 5
    else:
        with pytest.raises(CannotMeasure, match="the addresses of eth7 were not restored"):
            playing.wait(timeout=30)
