# SPDX-License-Identifier: GPL-2.0-or-later
"""Who may use the page: whoever has the token, and no page of another site in the same browser.

The address that `fwlab web` prints has the token. The first visit leaves it in a cookie and goes on without it, so that
it is in no history, bookmark or screenshot. A name that leads another site's page to this port is refused by the Host
header, and a request that such a page makes by the Origin header.
"""

import hashlib
import ipaddress
import re
import secrets
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

#: Everything comes from here. NiceGUI has scripts in the page, and compiles templates.
POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; font-src 'self' data:; object-src 'none'; base-uri 'self'; form-action 'self'; "
    "frame-ancestors 'none'"
)
HEADERS = {
    b"content-security-policy": POLICY.encode(),
    b"referrer-policy": b"no-referrer",
    b"x-content-type-options": b"nosniff",
}
#: A WebSocket that is refused is closed with this code: a policy was violated.
REFUSED = 1008


@dataclass(frozen=True)
class Access:
    """What a request must show.

    token   the secret
    origin  scheme, host and port of a forwarder by whose name the page is opened; None if there is none
    """

    token: str
    origin: str | None = None

    @property
    def cookie(self) -> str:
        """The cookie's name: browsers do not keep those of two ports apart, and two servers may run."""
        return f"fwlab-{hashlib.sha256(self.token.encode()).hexdigest()[:12]}"

    def refuses(self, headers: dict[str, str]) -> str | None:
        """Why a request with these headers is not for this server; None if it may be.

        Somebody else's page can lead a name of its own to this port, but no address. The port is not compared: it
        differs behind `ssh -L` and `docker run -p`.
        """
        host, origin = headers.get("host", ""), headers.get("origin")
        if self.origin is not None and origin in (None, self.origin) and host == urlsplit(self.origin).netloc:
            return None
        name = re.sub(r":\d+$", "", host).removeprefix("[").removesuffix("]")
        if name != "localhost" and not _is_address(name):
            return "this server is not known by that name: open the address that `fwlab web` printed"
        if origin not in (None, f"http://{host}", self.origin):
            return "a page of another site may not use this one"
        return None

    def knows(self, headers: dict[str, str]) -> bool:
        """Whether the request has the cookie of an earlier visit."""
        try:
            found = SimpleCookie(headers.get("cookie", "")).get(self.cookie)
        except CookieError:
            return False
        return found is not None and self.matches(found.value)

    def matches(self, token: str) -> bool:
        """Whether this is the token."""
        return secrets.compare_digest(token.encode(), self.token.encode())


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


class Guard:
    """Lets through what may use the page. It stands before everything else, WebSockets included."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self.app, self._access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or pass it on."""
        if scope["type"] not in ("http", "websocket"):  # the server's start and end
            await self.app(scope, receive, send)
            return
        answer = self._answer(scope)
        if answer is None:
            await self.app(scope, receive, _with_headers(send))
        elif scope["type"] == "http":
            await answer(scope, receive, _with_headers(send))
        else:
            await send({"type": "websocket.close", "code": REFUSED})

    def _answer(self, scope: Scope) -> Response | None:
        """What is answered at once; None for a request that may pass."""
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        if why := self._access.refuses(headers):
            return PlainTextResponse(f"fwlab: {why}\n", status_code=403)
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        given = [value for name, value in query if name == "token"]
        if scope["type"] == "http" and scope["method"] == "GET" and given and self._access.matches(given[0]):
            rest = urlencode([pair for pair in query if pair[0] != "token"])
            path = "/" + scope["path"].lstrip("/")  # two slashes would begin another host's address
            response = RedirectResponse(f"{path}?{rest}" if rest else path, status_code=303)
            # Not `strict`: a browser would withhold it from who follows the link in a page, such as a chat's.
            response.set_cookie(self._access.cookie, self._access.token, httponly=True, samesite="lax", path="/")
            return response
        if self._access.knows(headers):
            return None
        words = "this page needs the token: open the address that `fwlab web` printed, as a whole"
        return PlainTextResponse(f"fwlab: {words}\n", status_code=403)


def _with_headers(send: Send) -> Send:
    """The same, with headers that keep the page to itself; what the answer says itself stays."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            there: list[Any] = list(message.get("headers", []))
            names = {name.lower() for name, _ in there}
            there += [(name, value) for name, value in HEADERS.items() if name not in names]
            message = {**message, "headers": there}
        await send(message)

    return sending
