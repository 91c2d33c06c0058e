# SPDX-License-Identifier: GPL-2.0-or-later
"""A fake TRex server and generator for the engine's tests."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from typing import Any

import zmq

from fwlab.model.errors import CannotMeasure
from tests.checkout import TOPOLOGY

#: Packets that the server sends between two polls.
STEP = 400


class Server:
    """TRex's server with one port, in a thread. It records every request."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.streams: dict[int, dict[str, Any]] = {}
        self.given = self.left = 0
        self.refuses: dict[str, str] = {}
        self.silent = False
        context = zmq.Context.instance()
        self._socket = context.socket(zmq.REP)
        self.port = self._socket.bind_to_random_port("tcp://127.0.0.1")
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._ended.set()
        self._thread.join()
        self._socket.close(linger=0)

    def methods(self) -> list[str]:
        return [request["method"] for request in self.requests]

    def last(self, method: str) -> dict[str, Any]:
        return next(r["params"] for r in reversed(self.requests) if r["method"] == method)

    def _serve(self) -> None:
        while not self._ended.is_set():
            if not self._socket.poll(20):
                continue
            asked = json.loads(self._socket.recv())
            while self.silent and not self._ended.wait(0.02):
                pass
            many = asked if isinstance(asked, list) else [asked]
            answers = [self._answer(request) for request in many]
            self._socket.send_string(json.dumps(answers if isinstance(asked, list) else answers[0]))

    def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        self.requests.append(request)
        method, parameters = request["method"], request["params"]
        form = {"jsonrpc": "2.0", "id": request["id"]}
        if method in self.refuses:
            fault = {"code": -32000, "message": "RPC execution error", "specific_err": self.refuses[method]}
            return {**form, "error": fault}
        if method not in ("ping", "api_sync_v2") and parameters.get("api_h") != "key":
            return {**form, "error": {"code": -32000, "message": "no API handler"}}
        return {**form, "result": getattr(self, f"_{method}")(parameters)}

    def _ping(self, _: Any) -> dict:
        return {"ts": 1}

    def _api_sync_v2(self, _: Any) -> dict:
        return {"api_h": "key"}

    def _acquire(self, _: Any) -> str:
        return "mine"

    def _remove_all_streams(self, _: Any) -> dict:
        self.streams = {}
        return {}

    def _add_stream(self, parameters: Any) -> dict:
        self.streams[parameters["stream_id"]] = parameters["stream"]
        return {}

    def _start_traffic(self, _: Any) -> dict:
        bursts = [s["mode"].get("total_pkts") for s in self.streams.values()]
        self.left = sum(bursts) if all(bursts) else sys.maxsize
        return {}

    def _stop_traffic(self, _: Any) -> dict:
        self.left = 0
        return {}

    def _get_port_status(self, _: Any) -> dict:
        sent = min(STEP, self.left)
        self.given, self.left = self.given + sent, self.left - sent
        return {"state": "TX" if self.left else "STREAMS"}

    def _get_port_stats(self, _: Any) -> dict:
        return {"opackets": self.given}


class Stateful(Server):
    """The same in stateful mode. At every poll it has opened `step` more connections, and all are answered.

    gives_up    the number of connections after which it stops by itself
    unfinished  connections without an answer; TRex has given up on `dropped` of them
    """

    #: The numbers and names of TRex's counters.
    COUNTERS = {"tcps_connattempt": 3, "tcps_closed": 5, "tcps_rcvbyte": 19, "tcps_rexmttimeo": 30, "tcps_drops": 12}

    def __init__(self, answer_bytes: int) -> None:
        self.answer_bytes, self.step, self.state = answer_bytes, STEP, 0
        self.opened, self.unfinished, self.dropped, self.again, self.gives_up = 0, 0, 0, 0, sys.maxsize
        self.begins = self.ends = True
        super().__init__()

    @property
    def asked(self) -> dict[str, Any]:
        """What the latest profile requests of its clients."""
        return json.loads(self.last("profile_fragment")["fragment"])["templates"][0]["client_template"]

    def _acquire(self, _: Any) -> dict:
        return {"handler": "mine", "ports": {"0": "port"}}

    def _profile_fragment(self, _: Any) -> dict:
        self.state, self.opened = 1, 0
        return {}

    def _start(self, _: Any) -> dict:
        self.state = 4 if self.begins else 2
        return {}

    def _stop(self, _: Any) -> dict:
        self.state = 1 if self.ends else 5
        return {}

    def _sync(self, _: Any) -> dict:
        before = self.state
        if before == 4:
            most = sys.maxsize if self.asked["cont"] else self.asked["limit"]
            self.opened = min(self.opened + self.step, most, self.gives_up)
            self.state = 1 if self.ends and self.opened in (most, self.gives_up) else 4
        return {"state": before, "state_profile": {"_": before}, "epoch": 1}

    def _get_counter_desc(self, _: Any) -> dict:
        return {"data": [{"id": number, "name": name} for name, number in self.COUNTERS.items()]}

    def _get_counter_values(self, _: Any) -> dict:
        answered = self.opened - self.unfinished
        values = {
            "tcps_connattempt": self.opened,
            "tcps_closed": answered,
            "tcps_rcvbyte": answered * self.answer_bytes,
            "tcps_rexmttimeo": self.again,
            "tcps_drops": self.dropped,
        }
        return {"client": {str(self.COUNTERS[name]): value for name, value in values.items()}, "server": {}}


class Ssh:
    """The generator as the engine sees it over SSH: a process, a tunnel and the kernel's counters."""

    role = "generator"

    def __init__(self, server: Server) -> None:
        self.server, self.there, self.machine = server, "yes", "1\n2000000\n0000:00:03.0\n"
        self.opened: list[str] = []
        self.stray = self.dropped = 0
        self.files: dict[str, bytes] = {}
        self.processes: list[subprocess.Popen[bytes]] = []
        self.program, self.log = "cat", "EAL: no such device\n"

    def run(self, command: str, *, data: bytes = b"", **_: Any) -> str:
        if command.startswith("cat > "):
            self.files[command.rsplit(maxsplit=1)[-1]] = data
            return ""
        if "tx_packets" in command:
            return f"{self.server.given - self.dropped + self.stray}\n{self.dropped}\n"
        if command.startswith("tail"):
            return self.log
        return f"{self.there}\n{self.machine}"

    def open(self, command: str) -> subprocess.Popen[bytes]:
        self.opened.append(command)
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        self.processes.append(subprocess.Popen(self.program, shell=True, **pipes))
        return self.processes[-1]

    def tunnel(self, loopback: str, port: int) -> tuple[subprocess.Popen[bytes], int]:
        assert (loopback, port) == (TOPOLOGY.ports.address, 4501)
        self.processes.append(subprocess.Popen(["sleep", "600"]))
        return self.processes[-1], self.server.port

    def lost(self, words: str) -> CannotMeasure:
        return CannotMeasure(f"lost the connection to the generator: {words}")
