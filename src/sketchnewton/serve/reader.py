"""A reader: a process that predicts with a copy of the model, and hands all else to the owner of the model.

The owner starts it with a socket to listen at, shared memory that holds the model, and a wire. It ends when the
owner says so or is gone.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import itertools
import mmap
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Awaitable
from typing import cast

from sketchnewton.model import Model
from sketchnewton.serve.access import Access
from sketchnewton.serve.bodies import Body
from sketchnewton.serve.counts import Counts
from sketchnewton.serve.door import ApiOptions, Door
from sketchnewton.serve.errors import ApiError
from sketchnewton.serve.http import Connections, Limits
from sketchnewton.serve.messages import Request, Response
from sketchnewton.serve.page import pages
from sketchnewton.serve.predictor import Predictor, RowLimits
from sketchnewton.serve.replaying import model_of_bytes
from sketchnewton.serve.tls import Tls
from sketchnewton.serve.wire import (
    Asked,
    Begun,
    FromOwner,
    FromReader,
    Part,
    Published,
    ReaderSettings,
    Responded,
    Stopped,
    Wire,
)

_COUNTED_EVERY = 1.0  # seconds


class Reader(Door):
    """Predicts; asks the owner for the rest."""

    def __init__(self, model: Model, settings: ReaderSettings, wire: Wire[FromOwner, FromReader]) -> None:
        access = settings["access"]
        super().__init__(
            Predictor(model, RowLimits(*settings["rows"])),
            Counts(),
            Access(
                [token.encode() for token in access["read"]],
                [token.encode() for token in access["write"]],
                access["hosts"],
            ),
            ApiOptions(**settings["api"]),
            pages(),
        )
        self._wire = wire
        self._numbers = itertools.count()
        self._asked: dict[int, asyncio.Queue[tuple[Responded | Part, bytes]]] = {}

    def handle(self, request: Request) -> Response | Awaitable[Response]:
        """The answer, or what the owner answers."""
        if hasattr(self, self.route(request).name):
            return super().handle(request)
        return self.forward(request)

    async def predict_more(self, request: Request, body: Body, *, large: bool) -> Response:
        """What is remembered or explained is the owner's."""
        return await self.forward(request)

    async def forward(self, request: Request) -> Response:
        """Ask the owner."""
        number = next(self._numbers)
        heard = self._asked[number] = asyncio.Queue()
        headers = {key.decode("latin-1"): value.decode("latin-1") for key, value in request.headers.items()}
        asked: Asked = {
            "kind": "request",
            "number": number,
            "method": request.method,
            "path": request.path,
            "query": request.query_text,
            "headers": headers,
        }
        self._wire.say(asked, request.body)
        try:
            head, body = await heard.get()
        except BaseException:
            self._forget(number)
            raise
        answer = cast("Responded", head)  # parts come later
        made = Response(
            body, answer["status"], answer["type"], tuple((name, value) for name, value in answer["headers"])
        )
        if answer["error"] is not None:
            made.error = ApiError(answer["status"], *answer["error"])
        if answer["more"]:
            made.stream = self._parts(number, heard)
        else:
            del self._asked[number]
        return made

    async def _parts(
        self, number: int, heard: asyncio.Queue[tuple[Responded | Part, bytes]]
    ) -> AsyncIterator[bytes]:
        try:
            while True:
                head, part = await heard.get()
                if head["kind"] == "end":
                    return
                yield part
        finally:
            self._forget(number)

    def _forget(self, number: int) -> None:
        """Nobody waits any more: a stream may end."""
        if self._asked.pop(number, None) is not None:
            self._wire.say({"kind": "forget", "number": number})

    def heard(self, head: Responded | Part, body: bytes) -> None:
        """A part of an answer."""
        asked = self._asked.get(head["number"])
        if asked is not None:
            asked.put_nowait((head, body))

    def tell_counts(self) -> None:
        """Give the owner what was counted since the last time."""
        if self.counts.total:
            self._wire.say({"kind": "counts", **self.counts.as_json()})
            self.counts = Counts()


class Process:
    """The life of a reader."""

    def __init__(self, listening: socket.socket, memory: int) -> None:
        self._listening = listening
        self._memory = memory
        self._messages: asyncio.Queue[Begun | Published | Stopped] = asyncio.Queue()
        self._wire: Wire[FromOwner, FromReader] = Wire(
            self._heard, lambda: os._exit(0)
        )  # without the owner nothing can be promised
        self._reader: Reader | None = None

    def _heard(self, head: FromOwner, body: bytes) -> None:
        if head["kind"] == "response" or head["kind"] == "part" or head["kind"] == "end":
            if self._reader is not None:
                self._reader.heard(head, body)
        else:
            self._messages.put_nowait(head)

    def _model(self, length: int) -> Model:
        with mmap.mmap(self._memory, length, prot=mmap.PROT_READ) as mapped:
            return model_of_bytes(mapped[:])

    async def run(self, wire: socket.socket) -> None:
        """From the owner's first words to its last."""
        loop = asyncio.get_running_loop()
        await loop.create_connection(lambda: self._wire, sock=wire)
        settings = cast("Begun", await self._messages.get())
        first = cast("Published", await self._messages.get())
        reader = self._reader = Reader(self._model(first["length"]), settings, self._wire)
        self._wire.say({"kind": "loaded", "version": reader.predictor.version})
        connections = Connections(reader, Limits(*settings["limits"]), loop)
        tls = Tls(*settings["tls"]).context() if settings["tls"] else None
        server = await loop.create_server(connections, sock=self._listening, ssl=tls)
        tasks = [loop.create_task(work) for work in (connections.watch(), self._count(reader))]
        gc.freeze()
        message = await self._messages.get()
        while message["kind"] == "model":
            # In a thread: the old one predicts meanwhile.
            reader.predictor.model = await asyncio.to_thread(self._model, message["length"])
            self._wire.say({"kind": "loaded", "version": reader.predictor.version})
            message = await self._messages.get()
        server.close()
        await connections.close(cast("Stopped", message)["seconds"])
        for task in tasks:
            task.cancel()
        reader.tell_counts()
        self._wire.close()
        await asyncio.Event().wait()  # what is left is sent first; then `ended` ends the process

    @staticmethod
    async def _count(reader: Reader) -> None:
        while True:
            await asyncio.sleep(_COUNTED_EVERY)
            reader.tell_counts()


def main() -> None:
    """Run with the numbers of three open files: the socket, the shared memory, the wire."""
    listening, memory, wire = map(int, sys.argv[1:4])
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # the owner says when it is time
    with contextlib.suppress(ImportError):
        import uvloop

        asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    process = Process(socket.socket(fileno=listening), memory)
    asyncio.run(process.run(socket.socket(fileno=wire)))


if __name__ == "__main__":
    main()
