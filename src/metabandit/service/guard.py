"""Who may ask, and how much: the token, the host and the size of a request, before anything reads it.

Without a token only programs of this machine may ask. So that no web page can do it through a person's
browser, the request must be for a loopback name (else a name of the page's own could point here) and a body
must be declared as JSON (which a page of another site may not send).
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from ..errors import InputError

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

LOOPBACK = ("127.0.0.1", "localhost", "::1")
# What anybody may read: it holds nothing of an experiment.
_OPEN = ("/health", "/openapi.json", "/")
_SHORTEST_TOKEN = 16


def check_token(token: str | None, host: str) -> str | None:
    """Refuse a token that is easily guessed, and none where other machines can ask."""
    if token is None:
        if host not in LOOPBACK:
            raise InputError(
                f"on {host} other machines can ask, so clients need a token: set METABANDIT_TOKEN, or give "
                f"--token-file; or listen on 127.0.0.1",
                about="host",
            )
        return None
    token = token.strip()
    if len(token) < _SHORTEST_TOKEN or not token.isascii() or not token.isprintable():
        raise InputError(
            f"a token has at least {_SHORTEST_TOKEN} plain characters, not {len(token)}; make one with "
            f"python -c 'import secrets; print(secrets.token_urlsafe())'"
        )
    return token


class Guard:
    """Lets requests pass that may be answered, with their whole body read."""

    def __init__(self, app: App, *, token: str | None, most: int, refuse: Any) -> None:
        self.app = app
        self.token = token
        self.most = most
        self.refuse = refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = {key.lower(): value for key, value in scope["headers"]}
        problem = self._problem(scope, headers)
        body = b""
        if problem is None and scope["method"] in ("POST", "PUT"):
            found = await self._read(headers, receive)
            if found is None:
                problem = 413, f"a body has at most {self.most:,} bytes"
            else:
                body = found
        if problem is not None:
            await self.refuse(*problem)(scope, receive, send)
            return
        sent = False

        async def given() -> MutableMapping[str, Any]:
            nonlocal sent
            if sent:
                return await receive()
            sent = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self.app(scope, given, send)

    def _problem(self, scope: Scope, headers: dict[bytes, bytes]) -> tuple[int, str] | None:
        """Why a request is refused: the status and the reason."""
        if self.token is None:
            host = headers.get(b"host", b"").decode("latin-1")
            name = host[1:].partition("]")[0] if host[:1] == "[" else host.partition(":")[0]
            if name not in LOOPBACK:
                return 403, f"without a token only {', '.join(LOOPBACK)} are served"
        elif not self._is_open(scope):
            given = headers.get(b"authorization", b"")
            if not hmac.compare_digest(given, b"Bearer " + self.token.encode()):
                return 401, "the token is missing or wrong; send Authorization: Bearer TOKEN"
        if scope["method"] in ("POST", "PUT"):
            kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
            if kind != b"application/json":
                return 415, "a body is JSON: send Content-Type: application/json"
        return None

    @staticmethod
    def _is_open(scope: Scope) -> bool:
        path = scope["path"]
        page = path.startswith("/experiments/") and path.count("/") == 2
        return scope["method"] in ("GET", "HEAD") and (path in _OPEN or page)

    async def _read(self, headers: dict[bytes, bytes], receive: Receive) -> bytes | None:
        """The whole body; None if it is too large, or its sender has gone."""
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length) > self.most:
            return None
        body = bytearray()
        while True:
            message = await receive()
            body += message.get("body", b"")
            if len(body) > self.most or message["type"] == "http.disconnect":
                return None
            if not message.get("more_body"):
                return bytes(body)
