# SPDX-License-Identifier: GPL-2.0-or-later
"""Pacing without a machine: what QEMU is sent, what the player plays, what is read back from the recorders."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fwlab.generator.frame_table import write_table
from fwlab.generator.pacing import player, wires
from fwlab.generator.pacing.paced_load import Load, _problems, _unexpected
from fwlab.generator.recording import (
    ASTRAY,
    MISDIRECTED,
    MISROUTED,
    NO_CLASS,
    OF_THE_DUT,
    SINK,
    UNKNOWN,
    UNROUTED,
    UNTRANSLATED,
    KnownFrames,
    Recording,
    ends_behind,
    foreign,
    read_recording,
)
from fwlab.model.declared_traffic import Redirection, Translation
from fwlab.model.errors import CannotMeasure
from fwlab.model.trial import PacedTrial
from tests.fakes.traffic_forms import one_each

KEPT, NOBODY = 96, "00:00:00:00:00:00"
#: An Ethernet frame with IPv4 and UDP: addresses, then 30 bytes that hold TTL (byte 22) and checksum (24, 25).
FRAME = bytes(range(12)) + b"\x08\x00" + b"\x45" + bytes(7) + b"\x40\x11\x12\x34" + bytes(range(34))

#: What a router makes itself.
ICMP_ERROR = bytes(12) + b"\x08\x00" + b"\x45" + bytes(8) + b"\x01" + bytes(10) + b"\x03\x01" + bytes(30)
ARP = b"\xff" * 12 + b"\x08\x06" + bytes(28)
#: IPv6, a fragment header (the identification is its last four bytes), and 16 bytes.
FRAGMENT = b"\x60" + bytes(4) + b"\x18\x2c\x40" + bytes(range(32)) + b"\x11\0\0\1abcd" + bytes(range(16))


def routed(frame: bytes) -> bytes:
    """The frame as a router sends it on."""
    return bytes(12) + frame[12:22] + b"\x3f\x11\x99\x99" + frame[26:]


def record(seconds: int, us: int, frame: bytes, kept: int = KEPT) -> bytes:
    return struct.pack("<IIII", seconds, us, min(len(frame), kept), len(frame)) + frame[:kept]


def known(*frames: bytes, classes: tuple[int, ...] = (0,), **more: Any) -> KnownFrames:
    heads = np.array([list(frame.ljust(KEPT, b"\0")) for frame in frames], dtype=np.uint8)
    return KnownFrames(heads, np.array(classes), ["a", "b"], **more)


def test_a_load_is_whole_ticks_and_its_trials_follow_the_settling() -> None:
    load = Load(pps=2500, settle_s=0.02, trials=3, trial_s=0.1)
    assert (load.ticks, load.frames, load.per_tick) == (320, 800, 2.5)
    assert list(load.windows_us()) == [(20_000, 120_000), (120_000, 220_000), (220_000, 320_000)]
    assert Load(pps=1000, settle_s=0, trials=1, trial_s=0.0001).ticks == 1


class TestRecording:
    @pytest.fixture
    def recorded(self, tmp_path: Path) -> Callable[..., Recording]:
        """Read what a recorder wrote: these frames, a millisecond apart, and half a record."""

        def read(*frames: bytes) -> Recording:
            records = [record(1, 1000 * place, frame) for place, frame in enumerate(frames)]
            (tmp_path / "written").write_bytes(bytes(24) + b"".join(records) + record(9, 9, FRAME)[:-1])
            return read_recording(tmp_path / "written", KEPT)

        return read

    def test_a_frame_is_known_again_behind_a_router(self, recorded: Callable[..., Recording], tmp_path: Path) -> None:
        other = FRAME[:-1] + b"\0"
        found = recorded(routed(FRAME), FRAME, routed(other), b"\xff" * 42)
        assert found.times_us.tolist() == [1_000_000, 1_001_000, 1_002_000, 1_003_000]
        traffic = known(FRAME, other, classes=(1, NO_CLASS))
        classes = traffic.arrived(found)
        assert classes.tolist() == [1, 1, NO_CLASS, UNKNOWN]
        assert traffic.counted(classes) == {"a": 0, "b": 2, "other": 1}
        assert len(read_recording(tmp_path / "missing", KEPT)) == 0

    def test_what_routing_does_not_leave_is_foreign(self, recorded: Callable[..., Recording]) -> None:
        lost, changed = b"\x02" * 6 + routed(FRAME)[6:], routed(FRAME[:40] + b"\0" + FRAME[41:])
        experimental = routed(FRAME)[:12] + b"\x88\xb5" + FRAME[14:]
        found = recorded(routed(FRAME), lost, bytes(12) + FRAME[12:], changed, ICMP_ERROR, ARP, experimental)
        classes = known(FRAME).sent(found, NOBODY, SINK)
        assert classes.tolist() == [0, ASTRAY, UNROUTED, UNKNOWN, OF_THE_DUT, OF_THE_DUT, UNKNOWN]
        assert sorted(foreign(classes).values()) == [1, 1, 2]

    def test_fragments_that_were_put_together_have_another_identification(
        self, recorded: Callable[..., Recording]
    ) -> None:
        piece = bytes(12) + b"\x86\xdd" + FRAGMENT
        other = piece[:58] + b"wxyz" + piece[62:]
        later, plain = (piece[:at] + changed + piece[at + 1 :] for at, changed in ((57, b"\x11"), (20, b"\x3c")))
        found = recorded(*(frame[:21] + b"\x3f" + frame[22:] for frame in (piece, other, later, plain)))
        assert known(piece).sent(found, NOBODY, SINK).tolist() == [0, 0, UNKNOWN, UNKNOWN]

    @pytest.mark.parametrize(
        ("networks", "expected"),
        [
            ((["4.5.6.0/24"], ["198.19.0.0/16"]), MISROUTED),
            ((["198.18.0.0/16"], ["4.5.6.7/32"]), 0),
            ((["198.18.0.0/16"], ["2001:2::/48"]), 0),
            ((), 0),
        ],
    )
    def test_a_frame_leaves_by_the_link_to_its_destination(
        self, networks: tuple[list[str], ...], expected: int, recorded: Callable[..., Recording]
    ) -> None:
        """A packet that is sent back costs what a delivered one costs, and is in no class's count."""
        traffic = known(FRAME, ends=ends_behind(one_each((None, FRAME)), networks))
        assert traffic.sent(recorded(routed(FRAME)), NOBODY, SINK).tolist() == [expected]

    def test_a_frame_is_known_behind_source_nat_if_its_new_source_is_one_that_it_may_have(
        self, recorded: Callable[..., Recording]
    ) -> None:
        def translated(address: bytes, port: int, frame: bytes = FRAME) -> bytes:
            sent = routed(frame)
            return sent[:26] + address + sent[30:34] + port.to_bytes(2, "big") + sent[36:40] + b"\x77\x77" + sent[42:]

        other, pool = FRAME[:-1] + b"\0", b"\xc6\x12\x60"  # 198.18.96.x
        traffic = known(FRAME, other, classes=(1, 0), nat=Translation(to="198.18.96.0/30", ports="60000-60999"))
        frames = {
            translated(pool + b"\3", 60_999): 1,
            translated(pool + b"\0", 60_000, other): 0,
            translated(pool + b"\4", 60_000): UNTRANSLATED,
            translated(pool + b"\0", 61_000): UNTRANSLATED,
            routed(FRAME): UNTRANSLATED,
            translated(pool + b"\0", 60_000, FRAME[:-1] + b"\1"): UNKNOWN,
            translated(pool + b"\0", 60_000)[:22] + b"\x3e" + translated(pool + b"\0", 60_000)[23:]: UNROUTED,
            b"\x02" * 6 + translated(pool + b"\0", 60_000)[6:]: ASTRAY,
            ARP: OF_THE_DUT,
        }
        assert traffic.sent(recorded(*frames), NOBODY, SINK).tolist() == list(frames.values())

    def test_a_frame_for_a_service_is_known_by_the_destination_that_it_must_have(
        self, recorded: Callable[..., Recording]
    ) -> None:
        """All others must keep theirs; what a checksum becomes does not matter."""

        def to(host: int, port: int, net: int = 32) -> bytes:
            return FRAME[:30] + bytes((198, 19, net, host)) + FRAME[34:36] + port.to_bytes(2, "big") + FRAME[38:]

        def sent(host: int, port: int, net: int) -> bytes:
            frame = routed(to(host, port, net))
            return frame[:40] + b"\x77\x77" + frame[42:]

        given = Redirection(
            services="198.19.32.0/24", port=53, endpoints="198.19.64.0/24", factor=77, endpoint_port=5353
        )
        traffic = known(to(7, 53), to(7, 443), classes=(1, 0), nat=given)
        endpoint = 77 * 7 % 256
        frames = {
            sent(endpoint, 5353, 64): 1,
            sent(7, 443, 32): 0,
            sent(endpoint + 1, 5353, 64): MISDIRECTED,
            sent(endpoint, 53, 64): MISDIRECTED,
            sent(7, 53, 32): MISDIRECTED,
            sent(endpoint, 5353, 64)[:-1] + b"\1": UNKNOWN,
            sent(endpoint, 5353, 64)[:22] + b"\x3e" + sent(endpoint, 5353, 64)[23:]: UNROUTED,
            ARP: OF_THE_DUT,
        }
        assert traffic.sent(recorded(*frames), NOBODY, SINK).tolist() == list(frames.values())

    def test_what_destination_nat_makes_must_tell_the_classes(self) -> None:
        given = Redirection(
            services="198.19.32.0/24", port=53, endpoints="198.19.64.0/24", factor=77, endpoint_port=5353
        )
        service = FRAME[:30] + bytes((198, 19, 32, 1)) + FRAME[34:36] + b"\0\x35" + FRAME[38:]
        endpoint = FRAME[:30] + bytes((198, 19, 64, 77)) + FRAME[34:36] + b"\x14\xe9" + FRAME[38:]
        with pytest.raises(ValueError, match="nothing that destination NAT leaves"):
            known(service, endpoint, classes=(0, 1), nat=given)

    def test_what_nat_leaves_must_tell_the_classes(self) -> None:
        with pytest.raises(ValueError, match="nothing that source NAT leaves"):
            known(
                FRAME,
                FRAME[:26] + b"\x09" + FRAME[27:],
                classes=(0, 1),
                nat=Translation(to="198.18.96.0/30", ports="1-2"),
            )

    def test_an_icmp_error_belongs_to_the_class_of_the_packet_that_it_quotes(
        self, recorded: Callable[..., Recording]
    ) -> None:
        header = bytes(12) + b"\x08\x00" + b"\x45" + bytes(8) + b"\x01" + bytes(10) + b"\x03\x04" + bytes(6)
        rejected = header[:35] + b"\x03" + header[36:]
        quote = routed(FRAME)[14:42]
        traffic = known(FRAME, FRAME[:30] + b"\0" + FRAME[31:], classes=(0, 1))
        found = traffic.quoted(recorded(header + quote, header + bytes(28), rejected + quote, routed(FRAME)))
        assert traffic.counted(found) == {"a": 1, "b": 0, "other": 0}

    def test_classes_that_differ_too_late_are_refused(self) -> None:
        with pytest.raises(ValueError, match="the same first 96 bytes"):
            known(bytes(KEPT), bytes(KEPT), classes=(0, 1))


class TestWires:
    PORTS, WIRES = (24001, 24002), wires.Wires("a", "b", "127.0.0.1", 1)

    def test_devices_are_found_by_their_ports_however_they_are_written(self) -> None:
        first = json.dumps({"type": "socket", "udp": "127.0.0.1:24000", "localaddr": "127.0.0.1:24001", "id": "one"})
        last = "socket,id=two,udp=127.0.0.1:24003,localaddr=127.0.0.1:24002"
        arguments = ["qemu", "-netdev", first, "-device", "x", "-netdev", last, "-netdev", "user,id=management"]
        assert wires.wires_of(arguments, self.PORTS, "127.0.0.1") == wires.Wires("one", "two", "127.0.0.1", 24001)
        with pytest.raises(CannotMeasure) as error:
            wires.wires_of(["qemu", "-netdev", "tap,id=one"], self.PORTS, "127.0.0.1")
        assert "FWLAB_LINK" in error.value.hint

    @pytest.mark.parametrize(
        ("refusals", "tries"),
        [(0, 1), (1, 2), (9, 2)],
        ids=["at once", "what a killed session left is removed first", "never"],
    )
    def test_everything_is_removed_again(self, refusals: int, tries: int) -> None:
        monitor = FakeMonitor(refusals)
        expected = pytest.raises(CannotMeasure, match="no such device") if refusals > 2 else contextlib.nullcontext()
        with expected, wires.attached(monitor, self.WIRES, tick_us=1000, kept=96) as filters:
            assert filters.received.parent.is_dir()
        held = [given["netdev"] for _, given in monitor.told if given.get("qom-type") == "filter-buffer"]
        assert held == tries * ["a", wires.CLOCK], "frames first: timers run in the order in which they were made"
        made = [arguments["id"] for name, arguments in monitor.told if name in ("object-add", "netdev_add")]
        gone = [arguments["id"] for name, arguments in monitor.told if name in ("object-del", "netdev_del")]
        assert sorted(made) == sorted(gone)
        assert (len(set(made)), len(made)) == (8, 8 * tries)
        assert not monitor.folder.exists()

    def test_all_recorders_are_made_in_one_second(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A recorder that is made in the next second has times that are a second ahead (QEMU's net/dump.c)."""
        times = iter([41.5, 41.5, 42.1, 42.2, 42.2, 42.3])
        monkeypatch.setattr(wires, "time", SimpleNamespace(time=lambda: next(times)))
        monitor = FakeMonitor(header=b"header")
        with wires.attached(monitor, self.WIRES, tick_us=250, kept=96) as there:
            names = [name for name, given in monitor.told if given.get("id", "") in wires.RECORDERS]
            assert os.read(there.pipe, 99) == b"header", "of the recorder that is left alone"
        assert names == 3 * ["object-add"] + 3 * ["object-del"] + 3 * ["object-add"]


class FakeMonitor:
    """Records its commands, and refuses to add anything this many times."""

    def __init__(self, refusals: int = 0, header: bytes = b"") -> None:
        """header: what a recorder writes at first"""
        self.refusals, self.told, self.header = refusals, [], header

    def commands(self, *commands: tuple[str, dict]) -> list[str]:
        self.told += commands
        for _, given in commands:
            if "file" in given:
                self.folder = Path(given["file"]).parent
                if self.header and given["id"] == wires.TICKS:
                    Path(given["file"]).write_bytes(self.header)
        if commands[0][0] != "netdev_add" or not self.refusals:
            return []
        self.refusals -= 1
        return ["no such device"]


class TestPlayer:
    @pytest.fixture
    def table(self, tmp_path: Path) -> Path:
        path = tmp_path / "table"
        write_table(path, [FRAME, FRAME[:-1] + b"\x01", FRAME[:-1] + b"\x02"])
        return path

    def test_the_table_is_repeated(self, table: Path) -> None:
        assert [frame[-1] for frame in player.Table(str(table)).part(2, 6)] == [2, FRAME[-1], 1, 2]

    def test_a_rate_below_one_frame_in_a_tick_is_kept(self, table: Path) -> None:
        due = self.player(table, per_tick=0.4)
        counts = [len(due._due(player.FIRST_TICKS + 1 + place)) for place in range(10)]
        assert counts == [0, 0, 1, 0, 1, 0, 0, 1, 0, 1]
        assert due._due(player.FIRST_TICKS) == due._due(player.FIRST_TICKS + 11) == []

    def test_a_rotated_tick_has_the_same_frames_in_the_same_order_from_another_one_on(self, table: Path) -> None:
        ticks = range(player.FIRST_TICKS + 1, player.FIRST_TICKS + 11)
        plain, rotated, again = self.player(table, 31), self.player(table, 31, rotated=1), self.player(table, 31, 1)
        begins = set()
        for tick in ticks:
            frames, turned = plain._due(tick), rotated._due(tick)
            assert turned == again._due(tick), "the seed decides"
            begins |= {at for at in range(len(frames)) if frames[at:] + frames[:at] == turned}
        assert len(begins) > 3

    @staticmethod
    def player(table: Path, per_tick: float, rotated: int | None = None) -> player.Player:
        made = object.__new__(player.Player)
        play = player.Play(str(table), per_tick, 10, 1000, rotated, "127.0.0.1", 1, 2, 3, 4)
        made._play, made._table = play, player.Table(str(table))
        made._turn = None if rotated is None else player.random.Random(rotated)
        return made

    def test_ticks_are_read_from_the_pipe_whatever_its_pieces(self) -> None:
        read, write = os.pipe()
        os.set_blocking(read, False)
        pipe = player.Pipe(read)
        data = bytes(24) + record(3, 17, player.numbered(7)) + record(3, 1017, player.numbered(8))
        found = []
        for place in range(0, len(data), 30):
            os.write(write, data[place : place + 30])
            if (tick := pipe.tick()) is not None:
                found.append(tick)
        while (tick := pipe.tick()) is not None:
            found.append(tick)
        assert found == [(7, 3_000_017), (8, 3_001_017)]
        os.close(read)
        os.close(write)

    def test_a_tick_that_passes_while_frames_are_taken_in_ends_the_play(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Its signal is consumed there; without an error the play would wait for it for minutes."""
        (tmp_path / "syscall").write_text("202 0x0")
        with (tmp_path / "syscall").open("rb") as syscall:
            cpu = object.__new__(player.VirtualCpu)
            cpu._thread, cpu._futex, cpu._main = 1, 202, syscall.fileno()
            passed_on, stops = [], iter([player.signal.SIGUSR1, 0, player.TICK_SIGNAL])
            monkeypatch.setattr(player, "ptrace", lambda *_, data=0: passed_on.append(data))
            monkeypatch.setattr(cpu, "_wait", lambda **_: next(stops), raising=False)
            monkeypatch.setattr(cpu, "_left", lambda: None, raising=False)
            with pytest.raises(player.Stuck, match="a tick passed before its frames"):
                cpu.yield_lock()
        assert passed_on == [0, player.signal.SIGUSR1, 0], "what is not ours reaches QEMU"

    def test_a_clock_that_sends_no_tick_ends_the_play(self, table: Path, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "ticks")
        pipe = os.open(tmp_path / "ticks", os.O_RDWR | os.O_NONBLOCK)
        waits = "import ctypes, time; ctypes.CDLL(None).prctl(0x59616D61, -1); print(flush=True); time.sleep(60)"
        played = f"import sys; sys.argv[1:] = ['{pipe}']; from fwlab.generator.pacing import player; "
        played += "player.TICK_S = 0.2; sys.exit(player.main())"
        with (
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link,
            subprocess.Popen([sys.executable, "-c", waits], stdout=subprocess.PIPE) as traced,
        ):
            link.bind(("127.0.0.1", 0))
            port = link.getsockname()[1]
            assert traced.stdout is not None
            traced.stdout.readline()  # it may be traced now
            play = player.Play(str(table), 1, 10, 1000, None, "127.0.0.1", port, port, traced.pid, traced.pid)
            given = json.dumps(play._asdict()) + "\n"
            found = subprocess.run(
                [sys.executable, "-c", played], input=given, capture_output=True, text=True, pass_fds=[pipe], timeout=60
            )
            assert traced.poll() is None, "it goes on"
            traced.kill()
        os.close(pipe)
        assert found.stdout.splitlines()[-1:] == ['{"problem": "the DUT\'s clock sent no tick for 0.2 s"}'], found

    @pytest.fixture
    def listening(self) -> Iterator[socket.socket]:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listening:
            listening.bind(("127.0.0.1", 0))
            yield listening

    @pytest.mark.parametrize("borrowed", [True, False])
    def test_a_socket_is_drained_once_everything_is_read(
        self, listening: socket.socket, borrowed: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        if not borrowed:  # as in a container that may not have another process's descriptors
            monkeypatch.setattr(player, "_borrowed", lambda *_: None)
        inlet = player.Inlet(os.getpid(), "127.0.0.1", listening.getsockname()[1])
        assert inlet.drained()
        inlet.send(FRAME)
        assert not inlet.drained()
        listening.recv(100)
        assert inlet.drained()


@pytest.mark.parametrize(
    ("answer", "reached", "foreign", "said"),
    [
        ({"late": 0}, 100, 2, []),
        ({"late": 3}, 100, 0, ["3 ticks came late"]),
        ({"late": 0}, 99, 0, ["99 frames of the traffic reached the DUT's NIC, 100 were offered"]),
        ({"late": 0}, 130, 0, ["130 frames of the traffic"]),
        ({"late": 0}, 100, 3, ["3 frames reached the DUT that are not of this traffic"]),
        ({"problem": "QEMU ended"}, 12, 0, ["not played to its end: QEMU ended"]),
    ],
)
def test_what_was_wrong_with_the_load_is_named(answer: dict, reached: int, foreign: int, said: list[str]) -> None:
    found = [*_problems(answer, 100, reached), *_unexpected(foreign)]
    assert len(found) == len(said)
    assert all(part in problem for part, problem in zip(said, found, strict=True))


def test_a_class_survives_by_either_link() -> None:
    trial = PacedTrial(duration_s=1, offered={"a": 10, "b": 0}, forwarded={"a": 3}, returned={"a": 2})
    assert (trial.survived("a"), trial.survived("b"), trial.survived("c")) == (0.5, None, None)
