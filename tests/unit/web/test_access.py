# SPDX-License-Identifier: GPL-2.0-or-later
"""Who gets in: with the token, by an address, from no other site's page; HTTP and WebSocket alike."""

from __future__ import annotations

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient
from starlette.websockets import WebSocket, WebSocketDisconnect

from fwlab.web.access import Access, Guard

TOKEN = "the-token"
HERE = "http://127.0.0.1:8080"


async def _echo(socket: WebSocket) -> None:
    await socket.accept()
    await socket.send_text("open")
    await socket.close()


def client(base: str = HERE, origin: str | None = None) -> TestClient:
    inner = Starlette(
        routes=[
            Route("/", lambda _: PlainTextResponse("inside"), methods=["GET", "POST"]),
            Route("/lab/{name}", lambda request: PlainTextResponse(str(request.url.query))),
            WebSocketRoute("/socket", _echo),
        ]
    )
    return TestClient(Guard(inner, Access(TOKEN, origin)), base_url=base, follow_redirects=False)


def inside(base: str = HERE, origin: str | None = None) -> TestClient:
    found = client(base, origin)
    assert found.get(f"/?token={TOKEN}").status_code == 303
    return found


def test_the_first_visit_leaves_the_token_in_a_cookie_and_goes_on_without_it() -> None:
    visitor = client()
    first = visitor.get(f"/lab/lab03?a=1&token={TOKEN}")
    assert (first.status_code, first.headers["location"]) == (303, "/lab/lab03?a=1")
    cookie = first.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=lax" in cookie
    assert visitor.get("/").text == "inside"


@pytest.mark.parametrize(
    "query", ["", "?token=", "?token=the-toke", "?token=the-token2", "?token=%C3%A4", "?other=the-token"]
)
def test_without_the_token_nothing_is_shown(query: str) -> None:
    answer = client().get(f"/{query}")
    assert answer.status_code == 403
    assert "open the address that `fwlab web` printed" in answer.text
    assert "set-cookie" not in answer.headers


def test_another_servers_cookie_is_of_no_use() -> None:
    visitor = client()
    visitor.cookies.set(Access("another").cookie, "another")
    visitor.cookies.set(Access(TOKEN).cookie, "another")
    assert visitor.get("/").status_code == 403


def test_the_redirect_stays_on_this_host() -> None:
    answer = client().get(f"//evil.example/?token={TOKEN}")
    assert answer.status_code != 303 or not answer.headers["location"].startswith("//")


@pytest.mark.parametrize(
    "host", ["evil.example:8080", "evil.example", "127.0.0.1.evil.example:8080", "localhost.evil:1", ""]
)
def test_another_name_of_this_host_is_refused(host: str) -> None:
    assert inside().get("/", headers={"host": host}).status_code == 403


@pytest.mark.parametrize("base", ["http://localhost:9000", "http://[::1]:8080", "http://192.0.2.7:80"])
def test_an_address_will_do_whatever_the_port(base: str) -> None:
    assert inside(base).get("/").text == "inside"


@pytest.mark.parametrize("origin", ["http://evil.example", "https://127.0.0.1:8080", "http://127.0.0.1:8081", "null"])
def test_another_sites_page_is_refused(origin: str) -> None:
    assert inside().post("/", headers={"origin": origin}).status_code == 403
    with pytest.raises(WebSocketDisconnect), inside().websocket_connect("/socket", headers={"origin": origin}):
        pass


FORWARDER = "https://x-8080.example.org"


@pytest.mark.parametrize("host", ["localhost:8080", "x-8080.example.org"])
def test_a_forwarder_that_was_named_may_show_the_page(host: str) -> None:
    visitor = inside(f"http://{host}", FORWARDER)
    assert visitor.get("/").text == "inside"
    assert visitor.post("/", headers={"origin": FORWARDER}).text == "inside"
    with visitor.websocket_connect(f"ws://{host}/socket", headers={"origin": FORWARDER}) as socket:
        assert socket.receive_text() == "open"
    for other in ("https://evil.example", "http://x-8080.example.org.evil", "null"):
        assert visitor.post("/", headers={"origin": other}).status_code == 403
    assert visitor.get("/", headers={"host": "evil.example"}).status_code == 403
    assert client(f"http://{host}", FORWARDER).get("/").status_code == 403, "it needs the token, too"


def test_its_own_page_may_post_and_open_a_socket() -> None:
    visitor = inside()
    assert visitor.post("/", headers={"origin": HERE}).text == "inside"
    with visitor.websocket_connect(f"{HERE.replace('http', 'ws')}/socket", headers={"origin": HERE}) as socket:
        assert socket.receive_text() == "open"


def test_a_socket_needs_the_token_and_takes_it_from_no_address() -> None:
    for path in ("/socket", f"/socket?token={TOKEN}"):
        with pytest.raises(WebSocketDisconnect), client().websocket_connect(path):
            pass


def test_a_token_is_taken_from_a_get_alone() -> None:
    assert client().post(f"/?token={TOKEN}").status_code == 403


def test_every_answer_keeps_the_page_to_itself() -> None:
    for answer in (client().get("/"), inside().get("/")):
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["referrer-policy"] == "no-referrer"
