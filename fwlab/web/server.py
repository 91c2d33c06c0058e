# SPDX-License-Identifier: GPL-2.0-or-later
"""The server of `fwlab web`: it listens, shows the pages, and leaves nothing behind when it ends."""

import contextlib
import ipaddress
import secrets
import socket
from collections.abc import Callable
from pathlib import Path

import uvicorn
from fastapi import FastAPI
from nicegui import app as pages_app
from nicegui import background_tasks, run, ui

from fwlab.checkout.project import Project
from fwlab.model.errors import BadInput, CannotMeasure
from fwlab.web.access import Access, Guard
from fwlab.web.instructor import Classroom
from fwlab.web.jobs import Jobs
from fwlab.web.pages import add_pages
from fwlab.web.terminals import Terminals

#: How long an answer may take that is under way when the server is ended (s).
PATIENCE_S = 2
#: How long a page that lost its connection, such as that of a laptop that slept, is kept (s). Later it is loaded again.
RECONNECT_S = 60.0


def serve(
    project: Project,
    address: str,
    port: int,
    tell: Callable[[str], None],
    *,
    shell: bool = False,
    classroom: Classroom | None = None,
    origin: str | None = None,
) -> None:
    """Serve until a signal ends it. `tell` gets the address to open.

    shell      whether the page offers shells
    classroom  a grading that it shows
    origin     where a forwarder shows the page, such as https://name.example.org

    Raises BadInput for an address that is none of this host's, CannotMeasure for a port that is taken.
    """
    listening = _listen(address, port)
    with listening:
        port = listening.getsockname()[1]
        access = Access(secrets.token_urlsafe(24), origin)
        jobs = Jobs(project.root)
        terminals = Terminals(project.root) if shell else None
        labs = add_pages(project, jobs, terminals, classroom)
        pages_app.on_startup(lambda: background_tasks.create(run.io_bound(labs.all)))  # before the first visit
        pages_app.on_shutdown(jobs.close)
        if terminals is not None:
            pages_app.on_shutdown(terminals.close)
        outer = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
        ui.run_with(
            outer,
            title="Firewall Performance Lab",
            favicon=Path(__file__).with_name("icon.svg"),
            dark=None,
            language="en-US",
            tailwind=False,
            reconnect_timeout=RECONNECT_S,
            show_welcome_message=False,
        )
        config = uvicorn.Config(
            Guard(outer, access), log_level="warning", access_log=False, timeout_graceful_shutdown=PATIENCE_S
        )
        shown = "127.0.0.1" if ipaddress.ip_address(address).is_unspecified else address
        where = f"{origin or f'http://{_in_url(shown)}:{port}'}/?token={access.token}"
        with contextlib.suppress(KeyboardInterrupt):  # uvicorn raises the signal again once it has ended
            _Server(config, lambda: tell(where)).run(sockets=[listening])


class _Server(uvicorn.Server):
    """The server; `ready` is called once it answers."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to answer."""
        await super().startup(sockets)
        self._ready()


def _listen(address: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ipaddress.ip_address(address).version == 6 else socket.AF_INET
    except ValueError:
        raise BadInput(f"{address} is not an IP address", "fwlab web --address 127.0.0.1") from None
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((address, port))
        listening.listen()
    except OSError as error:
        listening.close()
        where = f"{_in_url(address)}:{port}"
        raise CannotMeasure(
            f"cannot listen at {where}: {error.strerror}", "fwlab web --port 0, for a free one"
        ) from None
    return listening


def _in_url(address: str) -> str:
    return f"[{address}]" if ":" in address else address
