"""Requests and responses, as the connection and those who answer see them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Generator
from dataclasses import dataclass
from urllib.parse import parse_qsl

from sketchnewton.serve.errors import ApiError, error_body

__all__ = ["JSON", "Promise", "Request", "Response", "failed"]

JSON = "application/json"


@dataclass(slots=True)
class Request:
    """One request, whole."""

    method: str
    path: str
    query_text: str
    headers: dict[bytes, bytes]
    body: bytes = b""
    started: float = 0.0

    @property
    def query(self) -> dict[str, str]:
        """What follows the question mark."""
        if not self.query_text:
            return {}
        try:
            return dict(parse_qsl(self.query_text, keep_blank_values=True, max_num_fields=20))
        except ValueError:
            raise ApiError(400, "bad_query", "there are more than 20 query parameters") from None

    def header(self, name: bytes) -> str:
        """A header, by its name in small letters; empty if there is none."""
        return self.headers.get(name, b"").decode("latin-1")


@dataclass(slots=True)
class Response:
    """What is sent back: a body, or parts of it as they come."""

    body: bytes = b""
    status: int = 200
    content_type: str = JSON
    headers: tuple[tuple[str, str], ...] = ()
    stream: AsyncIterator[bytes] | None = None
    error: ApiError | None = None


def failed(error: ApiError) -> Response:
    """The response that tells of an error."""
    return Response(error_body(error), error.status, headers=error.headers, error=error)


class Promise:
    """A response that comes later, for which no task has to wait."""

    __slots__ = ("_made", "_then")

    def __init__(self) -> None:
        self._made: Response | None = None
        self._then: Callable[[Response], None] | None = None

    def keep(self, response: Response) -> None:
        """Here it is."""
        self._made = response
        if self._then is not None:
            self._then(response)

    def then(self, act: Callable[[Response], None]) -> None:
        """Do this with the response, as soon as it is there."""
        self._then = act
        if self._made is not None:
            act(self._made)

    def __await__(self) -> Generator[object, None, Response]:
        done: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        self.then(lambda made: None if done.done() else done.set_result(made))
        return done.__await__()
