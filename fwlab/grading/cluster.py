# SPDX-License-Identifier: GPL-2.0-or-later
"""Where the tasks of a grading run: Dask's scheduler, and workers with one set of machines each.

Without options there is one worker in this process, and Dask's event loop in a thread. Further workers are processes
(`fwlab worker`), on this host or on others. A worker measures in the main thread of its process, so that Ctrl-C and
SIGTERM end a measurement where it is, and the machines that it started are destroyed.
"""

import _thread
import asyncio
import contextlib
import logging
import queue
import signal
import subprocess
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future as LocalFuture
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import dask
from distributed import Client, Future, LocalCluster, Security, Worker, get_worker
from distributed.client import ClosedClientError, FutureCancelledError
from distributed.comm import CommClosedError
from distributed.threadpoolexecutor import ThreadPoolExecutor

from fwlab.checkout.project import Project
from fwlab.grading.grader import Answer, Grader, Setup, Task
from fwlab.host.process import wait_or_kill
from fwlab.measure.context import RunContext
from fwlab.model.errors import BadInput, CannotMeasure, FwlabError
from fwlab.model.events import Event, EventSink, MachinesBusy, StepStarted, Warned

# Dask looks for an address of this host also where scheduler and worker are one process, and a host may have none.
warnings.filterwarnings("ignore", "Couldn't detect a suitable IP address", RuntimeWarning)

#: What a worker has one of, and a task needs: a set of machines.
MACHINES = {"MACHINES": 1}
#: Where a scheduler and a worker serve what they know of themselves, and the dashboard.
LOOPBACK = "127.0.0.1:0"
#: How long a worker waits for its scheduler before it says so (s).
LATE_S = 3.0
#: What Dask raises while the scheduler is away, and after it has given up reaching it.
AWAY = (CommClosedError, ClosedClientError, FutureCancelledError)
#: Why Dask closes a worker whose scheduler ends.
SCHEDULER_GONE = ("worker-handle-scheduler-connection-broken", "scheduler-close")
#: The topic under which workers report what happens before a task ends.
TOPIC = "fwlab"
#: A worker that is asked to stop destroys its machines first. Vagrant may take this long (s).
STOP_S = 420
#: Dask spills and pauses by memory, and warns of long tasks: neither is of use where a task is a measurement. A task
#: whose worker died comes back at once: how often is for the grading to count. By default, Dask also samples its
#: threads a hundred times a second and itself every 20 ms, which takes CPU time from the machines.
SETTINGS = {
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": False,
    "distributed.scheduler.allowed-failures": 0,
    "distributed.scheduler.work-stealing": False,
    "distributed.worker.profile.enabled": False,
    "distributed.admin.system-monitor.interval": "5 s",
    "distributed.admin.tick.interval": "1 s",
    "distributed.admin.tick.limit": "1 hour",
    "distributed.admin.large-graph-warning-threshold": "1 GiB",  # a task holds files, up to MAX_SUM_BYTES an exercise
}


def _settings(project: Project) -> dict[str, object]:
    """Dask's, with its files in the checkout: in /tmp, another user may have made its folder."""
    return {**SETTINGS, "temporary-directory": str(project.state)}


class MainThreadPoolExecutor(ThreadPoolExecutor):  # type: ignore[misc]  # Dask knows it by the end of its name
    """Runs what Dask gives it in the thread that calls `run_next`."""

    def __init__(self) -> None:
        super().__init__(1)
        #: Whether a call runs.
        self.busy = False
        self._jobs: queue.SimpleQueue[tuple[LocalFuture[Any], Callable[..., Any], tuple[Any, ...], dict[str, Any]]]
        self._jobs = queue.SimpleQueue()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> LocalFuture[Any]:
        """Queue a call."""
        future: LocalFuture[Any] = LocalFuture()
        self._jobs.put((future, fn, args, kwargs))
        return future

    def run_next(self, timeout_s: float) -> bool:
        """Run the next call, if one comes in time. What interrupts it is raised here, and the call fails."""
        try:
            future, function, args, kwargs = self._jobs.get(timeout=timeout_s)
        except queue.Empty:
            return False
        if future.set_running_or_notify_cancel():
            self.busy = True
            try:
                future.set_result(function(*args, **kwargs))
            except Exception as error:  # noqa: BLE001 - whoever waits for the result gets it
                future.set_exception(error)
            except BaseException:
                future.set_exception(CannotMeasure("interrupted"))
                raise
            finally:
                self.busy = False
        return True

    def shutdown(self, *_: Any, **__: Any) -> None:
        """The calling thread is not this object's to end."""


class GradingWorker(Worker):  # type: ignore[misc]
    """Dask's worker, with one thread and a set of machines."""

    def __init__(self, address: str, grader: Grader, executor: MainThreadPoolExecutor, **options: Any) -> None:
        super().__init__(
            address,
            nthreads=1,
            resources=MACHINES,
            executor=executor,
            memory_limit=0,
            dashboard=False,
            dashboard_address=LOOPBACK,
            **options,
        )
        self.grader, self.executor_here = grader, executor
        #: In the process of the grading: receives events as they happen, not when the task is over.
        self.report_here: Callable[[dict[str, str]], None] | None = None
        #: Why it was closed, in Dask's words.
        self.reason = ""

    async def close(self, *arguments: Any, reason: str = "worker-close", **options: Any) -> Any:
        """Close the worker, and keep the reason."""
        self.reason = self.reason or reason
        return await super().close(*arguments, reason=reason, **options)

    def report_event(self, event: Event) -> None:
        """Tell the grading what takes long, and what its reader must know."""
        match event:
            case StepStarted(what):
                self.report({"event": f"{what} ..."})
            case Warned(text):
                self.report({"event": text})
            case MachinesBusy():
                self.report({"event": str(event)})

    def report(self, message: dict[str, str]) -> None:
        """Tell the grading what happens here."""
        message = {**message, "worker": self.address}
        if self.report_here is not None:
            self.report_here(message)
        else:
            self.log_event(TOPIC, message)


def grade(setup: Setup, task: Task) -> tuple[str, str, str]:
    """What Dask runs on a worker: returns its address, why its machines cannot be used, and what to do about it; both
    are empty if they can."""
    worker: GradingWorker = get_worker()

    def answer(found: Answer) -> None:
        worker.report({"answer": found.model_dump_json()})

    try:
        why = setup.refuses(worker.grader.project)
        if why is not None:
            return worker.address, why, "install what the grading has"
        worker.grader.grade(setup, task, answer)
    except FwlabError as error:
        return worker.address, error.message, error.hint
    except Exception as error:  # noqa: BLE001 - a bug there must not stop the grading
        traceback.print_exc()
        return worker.address, f"internal error: {type(error).__name__}: {error}", "report it"
    return worker.address, "", ""


@dataclass(frozen=True)
class Message:
    """Something that happened: an answer, a line about a worker, or a task that ended. `worker`: its address."""

    worker: str = ""
    answer: Answer | None = None
    event: str = ""
    ended: Future | None = None


class Cluster:
    """Tasks go in, messages come out. Made by `open_cluster`.

    The scheduler may die at any moment. Nothing here raises because of that, except `require_scheduler`.
    """

    def __init__(
        self,
        client: Client,
        here: GradingWorker | None = None,
        processes: Sequence[subprocess.Popen[bytes]] = (),
    ) -> None:
        """here: a worker in this process; processes: workers that were started for this cluster."""
        self._client, self._here, self._processes = client, here, processes
        self._messages: queue.SimpleQueue[Message] = queue.SimpleQueue()
        client.subscribe_topic(TOPIC, lambda event: self._messages.put(_message(event[1])))

    def listen(self, listener: Callable[[Message], None]) -> None:
        """Have a worker in this process call `listener` while its task runs."""
        if self._here is not None:
            self._here.report_here = lambda said: listener(_message(said))

    def require_scheduler(self) -> None:
        """Raises CannotMeasure if the scheduler is gone. Dask has tried to reach it again for ten seconds by then."""
        if self._client.status in ("closing", "closed"):
            raise CannotMeasure(
                "the scheduler does not answer any more", "start it again, then the same command with --resume"
            )

    @property
    def without_workers(self) -> bool:
        """Whether no worker is left, and none can come."""
        return bool(self._processes) and all(process.poll() is not None for process in self._processes)

    @property
    def workers(self) -> dict[str, str]:
        """By address, the names of the workers that are there; none while the scheduler is away."""
        with contextlib.suppress(*AWAY):
            known = self._client.scheduler_info(n_workers=-1).get("workers", {})
            return {address: str(worker["name"]) for address, worker in known.items()}
        return {}

    def name(self, address: str) -> str:
        """The name of a worker, or its address if it is gone."""
        return self.workers.get(address, address)

    def submit(self, setup: Setup, task: Task) -> Future | None:
        """Have a worker grade the task; None if the scheduler is away."""
        with contextlib.suppress(*AWAY):
            future = self._client.submit(grade, setup, task, resources=MACHINES, pure=False, retries=0)
            future.add_done_callback(lambda ended: self._messages.put(Message(ended=ended)))
            return future
        return None

    def result(self, ended: Future) -> tuple[str, str, str] | None:
        """What `grade` returned; None if the worker died, or if the scheduler is away."""
        if ended.status == "finished":
            with contextlib.suppress(*AWAY):
                address, why, hint = ended.result()
                return address, why, hint
        return None

    def next(self, timeout_s: float) -> Message | None:
        """The next message; None if there is none in time. A worker in this process measures meanwhile."""
        with contextlib.suppress(queue.Empty):
            return self._messages.get_nowait()
        if self._here is not None:
            self._here.executor_here.run_next(timeout_s)
            timeout_s = 0
        with contextlib.suppress(queue.Empty):
            return self._messages.get(timeout=timeout_s) if timeout_s else self._messages.get_nowait()
        return None

    def processing(self, future: Future) -> list[str]:
        """Addresses of the workers that have the task."""
        with contextlib.suppress(*AWAY):
            return [address for address, keys in self._client.processing().items() if future.key in keys]
        return []

    def dismiss(self, address: str) -> None:
        """Do without a worker. Its task, if it has one, fails as if the worker had died."""

        async def remove(dask_scheduler: Any) -> None:
            await dask_scheduler.remove_worker(address=address, stimulus_id="fwlab-dismissed")

        with contextlib.suppress(*AWAY):
            self._client.run_on_scheduler(remove)


def _message(said: dict[str, str]) -> Message:
    answer = Answer.model_validate_json(said["answer"]) if "answer" in said else None
    return Message(said.get("worker", ""), answer, said.get("event", ""))


@contextlib.contextmanager
def open_cluster(
    project: Project,
    *,
    workers: int = 1,
    scheduler: str | None = None,
    key: Path | None = None,
    emit: EventSink | None = None,
    dashboard: bool = False,
    contexts: Iterable[RunContext] = (),
) -> Iterator[Cluster]:
    """A cluster of this many workers on this host, or of those that have come to a scheduler elsewhere.

    key       certificate and private key that all parts of a cluster over a network have
    emit      receives what a worker in this process does
    contexts  labs with traffic that is loaded already, for a worker in this process
    Raises BadInput, CannotMeasure.
    """
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # the grading reports what matters
    with dask.config.set(_settings(project)), contextlib.ExitStack() as stack:
        if scheduler is not None:
            client = stack.enter_context(_client(scheduler, key))
            yield Cluster(client)
            return
        alone = workers == 1
        cluster = LocalCluster(
            n_workers=0,
            processes=not alone,
            dashboard_address=LOOPBACK,
            scheduler_kwargs={"dashboard": dashboard},
            **({} if alone else {"host": "127.0.0.1"}),
        )
        stack.callback(cluster.close)
        client = stack.enter_context(Client(cluster))
        if dashboard:
            print(f"dashboard: {client.dashboard_link}", file=sys.stderr)
        if not alone:
            names = [f"worker-{number}" for number in range(1, workers + 1)]
            address = cluster.scheduler_address
            yield Cluster(client, None, [stack.enter_context(_process(project, address, name)) for name in names])
            return
        grader = Grader(project, emit or (lambda _event: None), contexts)
        executor = MainThreadPoolExecutor()
        here = cluster.sync(_started, cluster.scheduler_address, grader, executor)
        stack.callback(cluster.sync, here.close)
        stack.callback(grader.close)  # before Dask ends, and in this thread
        yield Cluster(client, here)


async def _started(address: str, grader: Grader, executor: MainThreadPoolExecutor) -> GradingWorker:
    worker = GradingWorker(address, grader, executor, name="this host")
    await worker
    return worker


@contextlib.contextmanager
def _client(scheduler: str, key: Path | None) -> Iterator[Client]:
    try:
        with Client(scheduler, security=security(scheduler, key), timeout="10s", set_as_default=False) as client:
            yield client
    except (OSError, TimeoutError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise CannotMeasure(f"no scheduler answers at {scheduler}: {reason}", "dask scheduler --help") from error


@contextlib.contextmanager
def _process(project: Project, address: str, name: str) -> Iterator[subprocess.Popen[bytes]]:
    """A worker on this host, as a process with its own machines."""
    words = [sys.executable, "-m", "fwlab.cli.entry", "worker", address, "--name", name]
    process = subprocess.Popen(words, cwd=project.root, stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        yield process
    finally:
        process.terminate()
        wait_or_kill(process, STOP_S)


def security(address: str, key: Path | None) -> Security | None:
    """How to talk to this scheduler. Raises BadInput where others could read, or write, what is said."""
    parts = urlsplit(address)
    if parts.scheme == "tls":
        if key is None:
            raise BadInput(
                f"{address} needs a key",
                "make one with `fwlab key FILE`, copy it to each host, and add --key FILE",
            )
        from fwlab.grading.keys import invalid_today

        if (why := invalid_today(key)) is not None:
            raise BadInput(why, "set this host's clock, or make another key with `fwlab key FILE` for each host")
        path = str(key)
        return Security(
            require_encryption=True,
            tls_ca_file=path,
            **{f"tls_{part}_{kind}": path for part in ("client", "worker", "scheduler") for kind in ("cert", "key")},
        )
    try:
        inside = ip_address(parts.hostname or "").is_loopback
    except ValueError:
        inside = parts.hostname == "localhost"
    if parts.scheme != "tcp" or parts.port is None:
        raise BadInput(f"{address}: not the address of a scheduler", "such as tls://192.0.2.7:8786")
    if not inside:
        raise BadInput(
            f"{address}: without a key only this host is safe: whoever reaches a worker runs programs there",
            "use tls:// and --key FILE, which `fwlab key FILE` makes",
        )
    return None


def work_for(
    address: str, project: Project, *, name: str | None, key: Path | None, notify: Callable[[str], None]
) -> None:
    """Be a worker until SIGTERM or Ctrl-C, or until a grading does without it. Raises BadInput.

    A scheduler that is not there is waited for, also one that was there before; the machines stay up meanwhile.
    """
    secure = security(address, key)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    workers: list[GradingWorker] = []
    refused: list[str] = []

    def report(event: Event) -> None:
        workers[-1].report_event(event)

    grader = Grader(project, report)
    executor, ended = MainThreadPoolExecutor(), threading.Event()

    async def serve() -> None:
        try:
            while not workers or workers[-1].reason in SCHEDULER_GONE:
                late = asyncio.get_running_loop().call_later(LATE_S, notify, f"waiting for a scheduler at {address}")
                workers.append(GradingWorker(address, grader, executor, name=name, security=secure))
                async with workers[-1] as worker:
                    late.cancel()
                    notify(f"{worker.name} waits for work from {address}")
                    await worker.finished()
        except Exception as error:  # noqa: BLE001 - the main thread reports it
            why = error.__cause__ or error  # Dask's own says only that it failed to start
            refused.append(str(why) or type(why).__name__)
        finally:
            ended.set()
            if executor.busy:
                _thread.interrupt_main()  # it was given up, and hangs

    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    with dask.config.set(_settings(project)):
        thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
        thread.start()
        try:
            while not ended.is_set():
                executor.run_next(0.5)
        except KeyboardInterrupt:
            notify(f"{workers[-1].name} ends")
        finally:
            grader.close()
            if not ended.is_set():
                with contextlib.suppress(Exception):
                    asyncio.run_coroutine_threadsafe(workers[-1].close(), workers[-1].loop.asyncio_loop).result(30)
    if refused and "name taken" in refused[0]:
        raise BadInput(f"{name}: a worker of this name grades for {address} already", "give another with --name")
    if refused:
        raise CannotMeasure(f"the scheduler at {address} rejects this worker: {refused[0]}", "dask scheduler --help")
