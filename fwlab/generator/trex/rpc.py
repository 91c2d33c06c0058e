# SPDX-License-Identifier: GPL-2.0-or-later
"""TRex's RPC: JSON-RPC 2.0 over ZeroMQ's request and reply (TRex's document `trex_rpc_server_spec`)."""

import itertools
import json
from collections.abc import Mapping, Sequence
from typing import Any

import zmq

from fwlab.model.errors import CannotMeasure

#: Maximum size of a batch; TRex rejects requests above a megabyte.
BATCH_BYTES = 500_000


class NoAnswer(CannotMeasure):
    """The server did not answer in time."""


class Rpc:
    """A client of the server at `address` (tcp://…). Its methods raise CannotMeasure with TRex's own message."""

    def __init__(self, address: str, timeout_s: float = 20) -> None:
        self._address, self._timeout_s = address, timeout_s
        self._numbers = itertools.count(1)
        self._context = zmq.Context()
        self._socket: zmq.Socket[bytes] | None = None
        self._api: str | None = None

    def ping(self, timeout_s: float) -> bool:
        """Whether the server answers."""
        try:
            self._exchange([self._request("ping", {})], timeout_s)
        except NoAnswer:
            return False
        return True

    def join(self, api: Mapping[str, Any]) -> None:
        """Negotiate the API's name and version, which every other call requires."""
        self._api = self.call("api_sync_v2", **api)["api_h"]

    def call(self, method: str, **parameters: Any) -> Any:
        """Call a method and return its result."""
        [answer] = self._exchange([self._request(method, parameters)], self._timeout_s)
        return _result(method, answer)

    def calls(self, method: str, many: Sequence[dict[str, Any]]) -> None:
        """Call a method once for each set of parameters, in batches of limited size."""
        batch: list[dict[str, Any]] = []
        size = 0
        for parameters in many:
            request = self._request(method, parameters)
            length = len(json.dumps(request))
            if batch and size + length > BATCH_BYTES:
                self._call_batch(method, batch)
                batch, size = [], 0
            batch.append(request)
            size += length
        if batch:
            self._call_batch(method, batch)

    def _call_batch(self, method: str, batch: list[dict[str, Any]]) -> None:
        for answer in self._exchange(batch, self._timeout_s):
            _result(method, answer)

    def close(self) -> None:
        """Disconnect."""
        self._drop()
        self._context.term()

    def _request(self, method: str, parameters: dict[str, Any]) -> dict[str, Any]:
        known = {"api_h": self._api} if self._api else {}
        return {"jsonrpc": "2.0", "id": next(self._numbers), "method": method, "params": {**known, **parameters}}

    def _exchange(self, requests: list[dict[str, Any]], timeout_s: float) -> list[dict[str, Any]]:
        """Send a batch and return its answers. TRex expects a batch of one without the list, and answers alike."""
        self._socket = self._socket or self._connected()
        self._socket.setsockopt(zmq.RCVTIMEO, int(timeout_s * 1000))
        self._socket.setsockopt(zmq.SNDTIMEO, int(timeout_s * 1000))
        try:
            self._socket.send_string(json.dumps(requests[0] if len(requests) == 1 else requests))
            answers = json.loads(self._socket.recv())
        except zmq.Again as error:
            # ZeroMQ allows no second request before the first reply, so continue with a new socket.
            self._drop()
            method = requests[0]["method"]
            raise NoAnswer(
                f"generator: TRex does not answer to {method} within {timeout_s:g} s", "use `--engine replay`"
            ) from error
        except (zmq.ZMQError, ValueError) as error:
            self._drop()
            raise CannotMeasure(f"generator: cannot read TRex's answer: {error}", "fwlab doctor") from error
        answers = answers if isinstance(answers, list) else [answers]
        by_number = {answer.get("id"): answer for answer in answers}
        return [by_number.get(request["id"]) or answers[0] for request in requests]

    def _connected(self) -> zmq.Socket[bytes]:
        socket = self._context.socket(zmq.REQ)
        socket.setsockopt(zmq.LINGER, 0)
        socket.setsockopt(zmq.RECONNECT_IVL, 1000)
        socket.connect(self._address)
        return socket

    def _drop(self) -> None:
        if self._socket is not None:
            self._socket.close(linger=0)
            self._socket = None


def _result(method: str, answer: dict[str, Any]) -> Any:
    fault = answer.get("error")
    if fault is None:
        return answer.get("result")
    message = fault.get("specific_err") or fault.get("message") or json.dumps(fault)
    raise CannotMeasure(f"generator: TRex rejects {method}: {message}", "use `--engine replay`")
