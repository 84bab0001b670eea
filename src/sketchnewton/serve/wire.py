"""Messages between the owner of the model and its readers: a JSON head and bytes, over a pair of sockets.

Nobody else can reach the pair. Messages of many requests share it, each with the number of its request.
"""

from __future__ import annotations

import asyncio
import json
import struct
from collections.abc import Callable
from typing import Any

__all__ = ["Wire"]

_SIZES = struct.Struct("<II")


class Wire(asyncio.Protocol):
    """One end; `heard` gets the head and the bytes of each message, `ended` is called when the other is gone."""

    def __init__(self, heard: Callable[[dict[str, Any], bytes], None], ended: Callable[[], None]) -> None:
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

    def say(self, head: dict[str, Any], body: bytes = b"") -> None:
        """Send a message; nothing happens if the other end has gone."""
        if self._transport is not None:
            text = json.dumps(head).encode()
            self._transport.write(b"".join((_SIZES.pack(len(text), len(body)), text, body)))

    def close(self) -> None:
        """Send what is left, then close."""
        if self._transport is not None:
            self._transport.close()
