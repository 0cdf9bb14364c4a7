"""The guard between network and application: who may ask (host, origin, token, cookies), how much, and how slowly.

A client is an address and a session: on one machine all programs have the same address, and each browser, or program
that keeps cookies, gets a session with its first answer. Requests without a session are one client of their address,
however many connections they come over. Sessions are for fairness among those who are content with one: a program that
makes up new ones is many clients, as it would be with many addresses, and nothing but a token keeps it out.

A page that runs on a developer's machine is reached by every web site that the developer visits, so the address in the
request (Host) and the page that it comes from (Origin) are looked at as well as the token.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import re
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import parse_qs

from raison.core.limits import format_limit_in_megabytes
from raison.web.server_limits import ServerSettings

__all__ = ["CLIENT", "Guard"]

Message = MutableMapping[str, Any]  # as ASGI defines it
Scope = Message
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    b"content-security-policy": POLICY.encode(),
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-resource-policy": b"same-origin",
    b"cross-origin-opener-policy": b"same-origin",
}
COOKIE = "raison-token"
SESSION = "raison-session"
CLIENT = "raison_client"  # where a request's scope says whose it is
LOCAL = re.compile(r"(localhost|127\.0\.0\.1|\[::1\])(:\d{1,5})?")


class Refused(Exception):
    def __init__(self, status: int, sentence: str):
        super().__init__(sentence)
        self.status = status


class Guard:
    """An application inside; only requests that may be answered reach it."""

    def __init__(self, app: App, settings: ServerSettings):
        self.app = app
        self.settings = settings
        self.any_host = settings.host not in ("127.0.0.1", "localhost", "::1")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return  # there are no web sockets here
        begun = False
        headers = {}
        for name, value in scope["headers"]:
            headers[name.decode("latin-1").lower()] = value.decode("latin-1")
        session = session_of_cookies(headers.get("cookie", ""))
        address, *_ = scope.get("client") or ("",)
        scope[CLIENT] = (address, session)

        async def secured(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                more = guard_headers_to_add(message)
                if not session:
                    more.append((b"set-cookie", cookie_header(SESSION, secrets.token_hex(16))))
                message = {**message, "headers": [*message["headers"], *more]}
            await send(message)

        try:
            if await self.admitted(scope, headers, secured):
                body = await read_body(scope, receive, self.settings)
                if body is not None:
                    await self.app(scope, replay_guarded_body(body, receive), secured)
        except Refused as refused:
            if not begun:
                await send_answer(secured, refused.status, {"error": str(refused)})

    async def admitted(self, scope: Scope, headers: dict[str, str], send: Send) -> bool:
        """Refuse who may not ask; False where an answer was given already."""
        host = headers.get("host", "")
        if not self.any_host and not LOCAL.fullmatch(host):
            raise Refused(
                421, "This server answers to its local address only: open it as http://127.0.0.1."
            )
        if asked_by_other_page(scope, headers, host):
            raise Refused(403, "Requests from other pages are refused: open this page itself.")
        if self.settings.token is None:
            return True

        query = parse_qs(scope["query_string"].decode("latin-1"))
        if scope["path"] == "/" and "token" in query:
            if not self.is_token(query["token"][0]):
                raise Refused(401, "The token is wrong: open the address that the server printed.")
            token = cookie_header(COOKIE, str(self.settings.token))
            more = [(b"location", b"/"), (b"set-cookie", token)]
            await send_answer(send, 303, {}, more)
            return False

        given = headers.get("authorization", "").removeprefix("Bearer ")
        if not given:
            given = cookie_value(headers.get("cookie", ""), COOKIE)
        if not self.is_token(given):
            raise Refused(
                401,
                "A token is needed: open the address that the server printed, or send it as Bearer.",
            )
        return True

    def is_token(self, given: str) -> bool:
        """Whether this is the server's token, compared in constant time."""
        return hmac.compare_digest(given.encode(), str(self.settings.token).encode())


def guard_headers_to_add(message: Message) -> list[tuple[bytes, bytes]]:
    """The headers of every answer that this one has not set itself."""
    own_names = {name.lower() for name, _ in message["headers"]}
    more = []
    for name, value in HEADERS.items():
        if name not in own_names:
            more.append((name, value))
    return more


def asked_by_other_page(scope: Scope, headers: dict[str, str], host: str) -> bool:
    """Whether a page of another site makes the request, as far as the browser says."""
    for name, value in scope["headers"]:
        if name.lower() == b"origin":
            origin = value.decode("latin-1")
            if origin not in (f"http://{host}", f"https://{host}"):
                return True
    other_site = headers.get("sec-fetch-site") in ("cross-site", "same-site")
    return other_site and scope["method"] != "GET"


def cookie_header(name: str, value: str) -> bytes:
    """The header that gives a browser a cookie; no other site's page can send it, and no script can read it."""
    return f"{name}={value}; HttpOnly; SameSite=Strict; Path=/".encode()


def cookie_value(header: str, wanted: str) -> str:
    """One of our cookies, whatever else other servers of this machine have left there."""
    for part in header.split(";"):
        name, _, value = part.strip().partition("=")
        if name == wanted:
            return value
    return ""


def session_of_cookies(header: str) -> str:
    """The session that a request belongs to; "" where it names none."""
    session = cookie_value(header, SESSION)
    if not re.fullmatch("[0-9a-f]{32}", session):
        return ""
    return session


async def read_body(scope: Scope, receive: Receive, settings: ServerSettings) -> bytes | None:
    """The whole body of a request, refused as soon as it is too large or too slow; None if the client has left."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + settings.patience
    declared = [value for name, value in scope["headers"] if name.lower() == b"content-length"]
    parts: list[bytes] = []
    size = 0
    if declared and declared[0].isdigit():
        size = int(declared[0])
    while True:
        if size > settings.body:
            await read_over(receive, 8 * settings.body, deadline)
            raise Refused(
                413,
                f"The request is larger than {format_limit_in_megabytes(settings.body)}: send less.",
            )
        try:
            message = await asyncio.wait_for(receive(), max(0.001, deadline - loop.time()))
        except (asyncio.TimeoutError, TimeoutError):
            raise Refused(408, "The request took too long to arrive: send it in one go.") from None
        if message["type"] != "http.request":
            return None
        parts.append(message.get("body", b""))
        size = sum(map(len, parts))
        if not message.get("more_body", False) and size <= settings.body:
            return b"".join(parts)


async def read_over(receive: Receive, most: int, deadline: float) -> None:
    """Read over what is too much anyway: a connection that is closed while the client still sends loses the answer."""
    loop = asyncio.get_running_loop()
    while most > 0 and (left := deadline - loop.time()) > 0:
        try:
            message = await asyncio.wait_for(receive(), left)
        except (asyncio.TimeoutError, TimeoutError):
            return
        most -= len(message.get("body", b""))
        if not message.get("more_body", False):
            return


def replay_guarded_body(body: bytes, receive: Receive) -> Receive:
    """A body that was read already; what comes after it is that the client leaves."""
    waiting = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return waiting.pop() if waiting else await receive()

    return again


async def send_answer(
    send: Send, status: int, body: object, headers: list[tuple[bytes, bytes]] | None = None
) -> None:
    """Send a JSON answer of the guard's own."""
    data = json.dumps(body).encode()
    length = str(len(data)).encode()
    all_headers = [(b"content-type", b"application/json"), (b"content-length", length)]
    if status in (408, 413):
        all_headers.append((b"connection", b"close"))
    all_headers += headers or []
    await send({"type": "http.response.start", "status": status, "headers": all_headers})
    await send({"type": "http.response.body", "body": data})
