"""HTTP/1.1 on asyncio, parsed by llhttp: requests come whole, within limits of size and time.

A handler that answers at once costs no task and no other turn of the event loop, which is why this is not an ASGI
server: `benchmarks/serve.py` has the figures. What those servers leave open is decided here: how long headers may
take, and that every refusal, of malformed HTTP too, has the one shape of errors.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import AsyncGenerator, Awaitable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, NamedTuple, Protocol

import httptools

from sketchnewton.serve.errors import ApiError
from sketchnewton.serve.messages import JSON, Promise, Request, Response, failed

__all__ = ["Application", "Connections", "Limits"]


class Limits(NamedTuple):
    """What a client may ask of the server."""

    body_bytes: int = 16 << 20
    header_bytes: int = 32 << 10
    header_seconds: float = 10.0
    body_seconds: float = 60.0
    idle_seconds: float = 75.0
    connections: int = 4096


class Application(Protocol):
    """What answers requests."""

    def admit(self, request: Request) -> None:
        """Look at a request whose body is still to come; raise `ApiError` if it need not come."""

    def handle(self, request: Request) -> Response | Awaitable[Response]:
        """The answer, at once where it is at hand. Raises `ApiError`."""

    def finished(self, request: Request, response: Response) -> None:
        """A response is on its way: count it."""

    def broken(self, error: Exception) -> ApiError:
        """What to tell the client of a mistake of ours."""


@dataclass
class Connections:
    """All connections of one server, with what they share."""

    app: Application
    limits: Limits
    loop: asyncio.AbstractEventLoop
    open: set[Connection] = field(default_factory=set)
    closing: bool = False

    def __call__(self) -> Connection:
        """A new one: the factory of `create_server`."""
        return Connection(self)

    async def watch(self) -> None:
        """Once in a while, end those that take too long."""
        pause = min(1.0, self.limits.header_seconds / 4.0, self.limits.idle_seconds / 4.0)
        while True:
            await asyncio.sleep(pause)
            now = time.monotonic()
            for connection in list(self.open):
                connection.check_time(now)

    async def close(self, seconds: float) -> None:
        """Answer what has been asked, then close; after so many seconds, close all the same."""
        self.closing = True
        for connection in list(self.open):
            connection.close_if_idle()
        end = time.monotonic() + seconds
        while self.open and time.monotonic() < end:
            await asyncio.sleep(0.01)
        for connection in list(self.open):
            connection.abort()


_STATUS_LINES = {
    status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus
}
_JSON_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class Connection(asyncio.Protocol):
    """One client: requests are answered in their order, one at a time."""

    def __init__(self, shared: Connections) -> None:
        self._shared = shared
        self._limits = shared.limits
        self._app = shared.app
        self._parser: Any = httptools.HttpRequestParser(self)
        self._transport: Any = None
        self._waiting: deque[tuple[Request, bool]] = deque()
        self._task: asyncio.Task[None] | None = None
        self._busy = False
        self._ended = False  # nothing more is read
        self._deadline = time.monotonic() + self._limits.header_seconds
        self._stage = "idle"
        self._header_bytes = 0
        self._paused = False
        self._writable: asyncio.Event | None = None
        self._stuck = 0.0  # when to give up on a client that does not read
        self._unread = 0  # bytes, when that was last looked at
        self._reset()

    def _reset(self) -> None:
        self._url = b""
        self._headers: dict[bytes, bytes] = {}
        self._body: list[bytes] = []
        self._size = 0
        self._request: Request | None = None

    # -- asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the connection, unless there are too many."""
        self._transport = transport
        self._shared.open.add(self)
        if len(self._shared.open) > self._limits.connections:
            self._refuse(ApiError(503, "too_many_connections", "too many connections: try again later"))

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it; work on it continues, since it may be in the log already."""
        self._ended = True
        self._shared.open.discard(self)
        self._waiting.clear()
        if self._writable is not None:
            self._writable.set()

    def data_received(self, data: bytes) -> None:
        """Parse; a request that is whole is answered from `on_message_complete`."""
        if self._ended:
            return
        if self._stage == "idle":
            self._stage = "headers"
            self._header_bytes = 0
            self._deadline = time.monotonic() + self._limits.header_seconds
        if self._stage == "headers":
            self._header_bytes += len(data)
            too_long = self._header_bytes > self._limits.header_bytes
        else:
            too_long = False
        try:
            self._parser.feed_data(data)
        except ApiError as error:  # of a callback below
            self._refuse(error)
        except httptools.HttpParserError as error:
            inner = error.__context__
            if isinstance(inner, ApiError):
                self._refuse(inner)
            else:
                self._refuse(ApiError(400, "bad_http", f"malformed HTTP request: {error}"))
        else:
            # Several requests may come in one piece: only unfinished headers count.
            if too_long and self._stage == "headers":
                self._refuse(ApiError(431, "headers_too_large", self._too_long()))

    def _too_long(self) -> str:
        return f"the headers are longer than {self._limits.header_bytes} bytes"

    def eof_received(self) -> bool:
        """Half-closed: answer what was asked."""
        if self._busy or self._waiting:
            self._ended = True
            return True
        return False

    def pause_writing(self) -> None:
        """The client does not read: streams wait, and no further request is read."""
        self._writable = asyncio.Event()
        self._unread = self._transport.get_write_buffer_size()
        self._stuck = time.monotonic() + self._limits.idle_seconds
        self._pause_reading()

    def resume_writing(self) -> None:
        """The client reads again."""
        if self._writable is not None:
            self._writable.set()
            self._writable = None
        if not self._ended and not self._transport.is_closing():
            self._resume_reading()

    # -- llhttp

    def on_url(self, url: bytes) -> None:
        """A part of the URL."""
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header; what follows a body is of no interest, and must not change what was looked at."""
        if self._request is not None:
            return
        if len(self._headers) >= 100:
            raise ApiError(431, "headers_too_large", "there are more than 100 headers")
        name = name.lower()
        before = self._headers.get(name, value)
        self._headers[name] = value if before == value else before + b", " + value  # two lines mean one list

    def on_headers_complete(self) -> None:
        """All but the body is known."""
        if sum(len(k) + len(v) for k, v in self._headers.items()) > self._limits.header_bytes:
            raise ApiError(431, "headers_too_large", self._too_long())
        if self._parser.should_upgrade():
            raise ApiError(400, "bad_http", "this server speaks plain HTTP/1.1: no upgrade")
        self._stage = "body"
        self._deadline = time.monotonic() + self._limits.body_seconds
        path, _, query = self._url.partition(b"?")
        request = Request(
            self._parser.get_method().decode("latin-1"),
            path.decode("latin-1"),
            query.decode("latin-1"),
            self._headers,
            started=time.perf_counter(),
        )
        self._request = request
        length = self._headers.get(b"content-length")
        if length is not None and (not length.isdigit() or int(length) > self._limits.body_bytes):
            raise self._too_large()
        self._app.admit(request)
        if self._headers.get(b"expect", b"").lower() == b"100-continue" and not self._busy:
            self._transport.write(_CONTINUE)

    def _too_large(self) -> ApiError:
        return ApiError(413, "too_large", f"the body is larger than {self._limits.body_bytes} bytes")

    def on_body(self, body: bytes) -> None:
        """A part of the body."""
        self._size += len(body)
        if self._size > self._limits.body_bytes:
            raise self._too_large()
        self._body.append(body)

    def on_message_complete(self) -> None:
        """A request is whole: answer it, or let it wait for the one before it."""
        request = self._request
        if request is None:
            return
        request.body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        keep = self._parser.should_keep_alive()
        self._reset()
        self._stage = "idle"
        self._header_bytes = 0
        self._deadline = time.monotonic() + self._limits.idle_seconds
        if self._busy:
            self._waiting.append((request, keep))
            if len(self._waiting) >= 16:
                self._pause_reading()
        else:
            self._answer(request, keep)

    # -- answers

    def _answer(self, request: Request, keep: bool) -> None:
        try:
            response = self._app.handle(request)
        except ApiError as error:
            response = failed(error)
        except Exception as error:
            response = failed(self._app.broken(error))
        if isinstance(response, Response) and response.stream is None:
            self._send(request, response, keep)
        elif isinstance(response, Promise):
            self._busy = True
            response.then(lambda made: self._answered(request, made, keep))
        else:
            self._busy = True
            self._task = self._shared.loop.create_task(self._answer_later(request, response, keep))

    async def _answer_later(
        self, request: Request, response: Response | Awaitable[Response], keep: bool
    ) -> None:
        try:
            made = response if isinstance(response, Response) else await response
        except ApiError as error:
            made = failed(error)
        except Exception as error:
            made = failed(self._app.broken(error))
        if made.stream is None:
            self._answered(request, made, keep)
            return
        await self._send_stream(request, made)
        self._busy = False
        self._task = None
        self._next()

    def _answered(self, request: Request, response: Response, keep: bool) -> None:
        self._send(request, response, keep)
        self._busy = False
        self._task = None
        self._next()

    def _next(self) -> None:
        while self._waiting and not self._busy:
            request, keep = self._waiting.popleft()
            self._answer(request, keep)
        if self._transport.is_closing() or self._busy:
            return
        if self._ended:
            self._transport.close()
        elif not self._waiting and self._writable is None:
            self._resume_reading()

    def _pause_reading(self) -> None:
        if not self._paused:
            self._paused = True
            with contextlib.suppress(RuntimeError):
                self._transport.pause_reading()

    def _resume_reading(self) -> None:
        if self._paused:
            self._paused = False
            with contextlib.suppress(RuntimeError):
                self._transport.resume_reading()

    def _send(self, request: Request | None, response: Response, keep: bool) -> None:
        keep = keep and not self._shared.closing
        if not self._transport.is_closing():
            body = b"" if request is not None and request.method == "HEAD" else response.body
            self._transport.write(self._head(response, keep, len(response.body)) + body)
            if not keep:
                self._ended = True
                self._transport.close()
        if request is not None:
            self._app.finished(request, response)

    async def _send_stream(self, request: Request, response: Response) -> None:
        self._transport.write(self._head(response, False, None))
        self._app.finished(request, response)
        stream = response.stream
        if stream is None:
            return
        try:
            async for part in stream:
                if self._transport.is_closing() or self._shared.closing:
                    break
                self._transport.write(b"%x\r\n%s\r\n" % (len(part), part))
                if self._writable is not None:
                    await self._writable.wait()
            if not self._transport.is_closing():
                self._transport.write(b"0\r\n\r\n")
        finally:
            self._ended = True
            self._transport.close()
            if isinstance(stream, AsyncGenerator):
                await stream.aclose()

    @staticmethod
    def _head(response: Response, keep: bool, length: int | None) -> bytes:
        plain = response.status == 200 and response.content_type is JSON and not response.headers
        if plain and keep and length is not None:  # as most are
            return _JSON_HEAD % length
        size = "Transfer-Encoding: chunked" if length is None else f"Content-Length: {length}"
        lines = f"Content-Type: {response.content_type}\r\n{size}\r\n"
        for name, value in response.headers:
            lines += f"{name}: {value}\r\n"
        lines += "\r\n" if keep else "Connection: close\r\n\r\n"
        return _STATUS_LINES[response.status] + lines.encode("latin-1")

    def _refuse(self, error: ApiError) -> None:
        """Answer what cannot become a request, and close: where the next would begin is not known."""
        self._ended = True
        request = self._request or Request("", "", "", {}, started=time.perf_counter())
        if self._busy or self._waiting:  # the answers before it come first, and then the end
            self._waiting.clear()
            return
        response = failed(error)
        self._send(request, response, False)

    # -- time

    def check_time(self, now: float) -> None:
        """End it if it has taken too long."""
        if self._writable is not None and now > self._stuck:
            unread, self._unread = self._unread, self._transport.get_write_buffer_size()
            self._stuck = now + self._limits.idle_seconds
            if self._unread >= unread:  # it has read nothing
                self._transport.abort()  # work on it continues
            return
        if self._busy or self._waiting or now < self._deadline or self._transport is None:
            return
        if self._stage == "idle":
            self._transport.close()
            return
        what = "headers" if self._stage == "headers" else "body"
        self._refuse(ApiError(408, "timeout", f"the {what} of the request took too long"))

    def close_if_idle(self) -> None:
        """Close it unless it has a request."""
        if not self._busy and not self._waiting and self._stage == "idle":
            self._transport.close()

    def abort(self) -> None:
        """Close it whatever it does."""
        if self._task is not None:
            self._task.cancel()
        self._transport.abort()
