"""The owner's side of its readers: starts them, shares the model with them, answers what they ask."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Callable

from sketchnewton.model import Model
from sketchnewton.serve.counts import Counts
from sketchnewton.serve.engine import Engine
from sketchnewton.serve.errors import ApiError
from sketchnewton.serve.http import Application
from sketchnewton.serve.messages import Request, Response, failed
from sketchnewton.serve.wire import Asked, FromOwner, FromReader, ReaderSettings, Wire

__all__ = ["Readers"]

_LEAST_PAUSE = 0.05  # seconds between two copies of the model
_SHARE = 0.1  # of the owner's time that goes into copies, at most
_RESTART_PAUSE = 1.0


class _Link:
    """One reader that runs."""

    def __init__(
        self, process: subprocess.Popen[bytes], ask: Callable[[_Link, FromReader, bytes], None]
    ) -> None:
        self.process = process
        self.version: int | None = None
        self.gone = asyncio.get_running_loop().create_future()
        self.loaded: asyncio.Future[None] | None = None
        self.tasks: dict[int, asyncio.Task[None]] = {}
        self.wire: Wire[FromReader, FromOwner] = Wire(lambda head, body: ask(self, head, body), self._ended)

    def _ended(self) -> None:
        for task in list(self.tasks.values()):
            if task.get_name() == "stream":  # all else may be in the log already
                task.cancel()
        if self.loaded is not None and not self.loaded.done():
            self.loaded.set_result(None)
        if not self.gone.done():
            self.gone.set_result(None)


class Readers:
    """So many processes that predict with copies of the model."""

    def __init__(
        self,
        engine: Engine,
        counts: Counts,
        settings: ReaderSettings,
        listening: list[socket.socket],
        say: Callable[[str], None],
    ) -> None:
        self._engine = engine
        self._counts = counts
        self._settings = settings
        self._listening = listening
        self._say = say
        self._app: Application | None = None
        self._links: dict[int, _Link] = {}
        self._memory = _shared_memory()
        self._length = 0
        self._published: tuple[Model, int] | None = None
        self._publishing = asyncio.Lock()
        self._tasks: list[asyncio.Task[None]] = []
        self._closing = False

    def facts(self) -> list[dict[str, int | None]]:
        """Process and version of each reader that runs."""
        return [{"pid": link.process.pid, "version": link.version} for link in self._links.values()]

    async def start(self, app: Application) -> None:
        """Start them all; returns when each has the model, or has failed to start."""
        self._app = app
        await self._copy()
        first = [asyncio.Event() for _ in self._listening]
        self._tasks = [asyncio.create_task(self._keep(at, event)) for at, event in enumerate(first)]
        self._tasks.append(asyncio.create_task(self._follow()))
        for event in first:
            await event.wait()

    async def _keep(self, at: int, first: asyncio.Event) -> None:
        """Keep one running."""
        while True:
            try:
                link = await self._started(at)
                first.set()
                await link.gone
                self._links.pop(at, None)
                await asyncio.to_thread(link.process.wait)
            except OSError as error:
                self._say(f"a reader cannot be started: {error}")
            first.set()
            if self._closing:
                return
            self._say("a reader has ended: another one is started")
            await asyncio.sleep(_RESTART_PAUSE)

    async def _started(self, at: int) -> _Link:
        ours, theirs = socket.socketpair()
        with theirs:
            files = (self._listening[at].fileno(), self._memory, theirs.fileno())
            command = [sys.executable, "-m", "sketchnewton.serve.reader", *map(str, files)]
            process = subprocess.Popen(command, pass_fds=files, stdin=subprocess.DEVNULL)
        link = _Link(process, self._heard)
        ours.setblocking(False)
        await asyncio.get_running_loop().create_connection(lambda: link.wire, sock=ours)
        link.wire.say({"kind": "settings", **self._settings})
        async with self._publishing:
            self._links[at] = link
            await self._give(link)
        return link

    # -- the model

    async def _follow(self) -> None:
        """Publish the model when it has changed, without spending too much time on it."""
        while True:
            start = time.monotonic()
            if self._published is None or not self._is_current(self._published):
                with contextlib.suppress(ValueError):  # not finite: there is no copy of such a model
                    await self.publish()
            spent = time.monotonic() - start
            await asyncio.sleep(max(_LEAST_PAUSE, spent / _SHARE))

    def _is_current(self, published: tuple[Model, int]) -> bool:
        return published[0] is self._engine.model and published[1] == self._engine.version

    async def publish(self) -> None:
        """Give all readers the model as it is now; returns when they use it."""
        async with self._publishing:
            await self._copy()
            await asyncio.gather(*(self._give(link) for link in list(self._links.values())))

    async def _copy(self) -> None:
        """Put the model into the shared memory. No reader looks at it now: each has said that it is done."""
        model = self._engine.model
        data, version = await self._engine.copy()
        if len(data) > os.fstat(self._memory).st_size:
            os.ftruncate(self._memory, len(data) * 3 // 2)
        await asyncio.to_thread(os.pwrite, self._memory, data, 0)
        self._length = len(data)
        self._published = model, version

    async def _give(self, link: _Link) -> None:
        if link.gone.done():
            return
        link.loaded = asyncio.get_running_loop().create_future()
        link.wire.say({"kind": "model", "length": self._length})
        await link.loaded

    # -- what readers say

    def _heard(self, link: _Link, head: FromReader, body: bytes) -> None:
        if head["kind"] == "loaded":
            link.version = head["version"]
            if link.loaded is not None and not link.loaded.done():
                link.loaded.set_result(None)
        elif head["kind"] == "counts":
            self._counts.merge(head)
        elif head["kind"] == "forget":
            task = link.tasks.get(head["number"])
            if task is not None and task.get_name() == "stream":
                task.cancel()
        else:
            number = head["number"]
            task = asyncio.get_running_loop().create_task(self._answer(link, head, body))
            link.tasks[number] = task
            task.add_done_callback(lambda _: link.tasks.pop(number, None))

    async def _answer(self, link: _Link, head: Asked, body: bytes) -> None:
        number, app = head["number"], self._app
        assert app is not None
        headers = {key.encode("latin-1"): value.encode("latin-1") for key, value in head["headers"].items()}
        request = Request(head["method"], head["path"], head["query"], headers, body, time.perf_counter())
        try:
            app.admit(request)
            made = app.handle(request)
            response = made if isinstance(made, Response) else await made
        except ApiError as error:
            response = failed(error)
        except Exception as error:
            response = failed(app.broken(error))
        failure = response.error
        link.wire.say(
            {
                "kind": "response",
                "number": number,
                "status": response.status,
                "type": response.content_type,
                "headers": response.headers,
                "error": None if failure is None else (failure.code, failure.message),
                "more": response.stream is not None,
            },
            response.body,
        )
        if response.stream is not None:
            await self._send_parts(link, number, response)

    @staticmethod
    async def _send_parts(link: _Link, number: int, response: Response) -> None:
        task, stream = asyncio.current_task(), response.stream
        assert task is not None
        assert stream is not None
        task.set_name("stream")
        try:
            async for part in stream:
                link.wire.say({"kind": "part", "number": number}, part)
            link.wire.say({"kind": "end", "number": number})
        finally:
            if isinstance(stream, AsyncGenerator):
                await stream.aclose()

    # -- the end

    async def close(self, seconds: float) -> None:
        """Have them answer what they were asked, then end; after so many seconds, end them."""
        self._closing = True
        links = list(self._links.values())
        for link in links:
            link.wire.say({"kind": "stop", "seconds": seconds})
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds + 2.0):
                for link in links:
                    await link.gone
        for task in self._tasks:
            task.cancel()
        for link in links:
            if link.process.poll() is None and not link.gone.done():
                link.process.kill()
            await asyncio.to_thread(link.process.wait)
        os.close(self._memory)


def _shared_memory() -> int:
    """A file that is in memory and has no name, for readers to map."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("skn-model", os.MFD_CLOEXEC)
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
