"""Messages between the owner of the model and its readers: a JSON head and bytes, over a pair of sockets.

Nobody else can reach the pair. Messages of many requests share it, each with the number of its request.
"""

from __future__ import annotations

import asyncio
import json
import struct
from collections.abc import Callable, Sequence
from typing import Generic, Literal, TypedDict, TypeVar

from sketchnewton.serve.counts import Counted

__all__ = ["Asked", "FromOwner", "FromReader", "ReaderSettings", "Responded", "Wire"]

_SIZES = struct.Struct("<II")


class Asked(TypedDict):
    """A request that a reader hands to the owner."""

    kind: Literal["request"]
    number: int
    method: str
    path: str
    query: str
    headers: dict[str, str]


class Forgotten(TypedDict):
    """Nobody waits for the answer any more."""

    kind: Literal["forget"]
    number: int


class Loaded(TypedDict):
    """A reader predicts with this version."""

    kind: Literal["loaded"]
    version: int


class Told(Counted):
    """What a reader has counted."""

    kind: Literal["counts"]


class Responded(TypedDict):
    """The owner's answer to a request; its body follows, or parts of it if there is `more`."""

    kind: Literal["response"]
    number: int
    status: int
    type: str
    headers: Sequence[Sequence[str]]
    error: tuple[str, str] | None
    more: bool


class Part(TypedDict):
    """A part of an answer, or its end."""

    kind: Literal["part", "end"]
    number: int


class Allowed(TypedDict):
    """Tokens and names, as `Access` has them."""

    read: list[str]
    write: list[str]
    hosts: list[str]


class Options(TypedDict):
    """What `ApiOptions` is made of."""

    name: str
    remember: bool
    log_requests: bool
    log_records: bool


class ReaderSettings(TypedDict):
    """What a reader must know, as JSON has it."""

    access: Allowed
    api: Options
    rows: tuple[int, int]
    limits: tuple[int, int, float, float, float, int]
    tls: tuple[str, str] | None


class Begun(ReaderSettings):
    """The owner's first words."""

    kind: Literal["settings"]


class Published(TypedDict):
    """The shared memory has a model of so many bytes."""

    kind: Literal["model"]
    length: int


class Stopped(TypedDict):
    """The end, after at most so many seconds."""

    kind: Literal["stop"]
    seconds: float


FromReader = Asked | Forgotten | Loaded | Told
FromOwner = Responded | Part | Begun | Published | Stopped
Heard = TypeVar("Heard")
Said = TypeVar("Said")


class Wire(asyncio.Protocol, Generic[Heard, Said]):
    """One end; `heard` gets the head and the bytes of each message, `ended` is called when the other is gone."""

    def __init__(self, heard: Callable[[Heard, bytes], None], ended: Callable[[], None]) -> None:
        self._heard = heard
        self._ended = ended
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        """Pass on the messages that are whole."""
        buffer = self._buffer
        buffer += data
        at = 0
        while len(buffer) - at >= _SIZES.size:
            head, body = _SIZES.unpack_from(buffer, at)
            begin = at + _SIZES.size
            if len(buffer) < begin + head + body:
                break
            at = begin + head + body
            self._heard(json.loads(buffer[begin : begin + head]), bytes(buffer[begin + head : at]))
        del buffer[:at]

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell that it is over."""
        self._transport = None
        self._ended()

    def say(self, head: Said, body: bytes = b"") -> None:
        """Send a message; nothing happens if the other end has gone."""
        if self._transport is not None:
            text = json.dumps(head).encode()
            self._transport.write(b"".join((_SIZES.pack(len(text), len(body)), text, body)))

    def close(self) -> None:
        """Send what is left, then close."""
        if self._transport is not None:
            self._transport.close()
