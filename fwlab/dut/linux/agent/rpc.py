# SPDX-License-Identifier: GPL-2.0-or-later
"""The conversation with the host, from its first line to its end."""

import contextlib
import json
import select
import signal
import sys
import threading

from fwlab.dut.linux.agent import blackhole, counters, counting, loading, perf_samples, start_state

CONFIRM_S = 15
#: What the host can ask for, by the name of the function that answers.
OPERATIONS = {
    f.__name__: f
    for f in (
        start_state.hello,
        start_state.reset,
        loading.load,
        loading.confirm,
        counters.entries,
        counters.states,
        blackhole.mute,
        blackhole.unmute,
        counting.measure,
        counting.sample,
        counting.drain,
        perf_samples.prepare_stacks,
        perf_samples.record_stacks,
        perf_samples.read_stacks,
    )
}


class Gone(BaseException):
    """The host has closed the conversation."""


def watch(conversation, thread):
    """Interrupt `thread` as soon as the host is gone: what it measures or loads is no longer wanted, and would cost
    the next session's packets."""
    gone = select.poll()
    gone.register(conversation, 0)  # for its end alone; what comes in is for others
    gone.poll()
    signal.pthread_kill(thread, signal.SIGHUP)


def hang_up(*_):
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    raise Gone


def main():
    with contextlib.suppress(Gone):
        signal.signal(signal.SIGHUP, hang_up)
        arguments = (sys.stdin.fileno(), threading.main_thread().ident)
        threading.Thread(target=watch, args=arguments, daemon=True).start()
        serve()
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    if start_state.loaded_kinds:  # the host is gone, and took no leave
        start_state.reset({})


def serve():
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = OPERATIONS[request["op"]](request)
        except Exception as error:  # noqa: BLE001 - the host turns it into a message; the agent lives on
            answer = {"failed": f"{type(error).__name__}: {error}"}
        if "number" in request:  # for the host may have stopped waiting for an earlier answer
            answer["number"] = request["number"]
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
        # A ruleset that drops everything drops this conversation too: take it away if the host stays silent. The host
        # may be heard and hear nothing, so the answer to its first word has to bring a second one.
        waits = "seconds" in answer or request.get("again", False)
        if waits and not select.select([sys.stdin], [], [], CONFIRM_S)[0]:
            loading.cut_off.append(True)
            start_state.reset(request)
