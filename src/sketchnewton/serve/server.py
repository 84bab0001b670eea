"""Sockets, signals and the order in which a server begins and ends."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import ipaddress
import resource
import signal
import socket
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from typing import cast

from sketchnewton.model import Model
from sketchnewton.serve.access import Access
from sketchnewton.serve.api import Api
from sketchnewton.serve.door import ApiOptions
from sketchnewton.serve.engine import Engine, EngineOptions
from sketchnewton.serve.http import Connections, Limits
from sketchnewton.serve.keeper import Keeper, KeeperOptions
from sketchnewton.serve.page import pages
from sketchnewton.serve.readers import Readers
from sketchnewton.serve.replaying import Standing
from sketchnewton.serve.state import State
from sketchnewton.serve.stats import Stats
from sketchnewton.serve.tls import Tls
from sketchnewton.serve.wire import Options, ReaderSettings

__all__ = ["Settings", "is_local", "serve"]


_TURN = 0.001
"""Seconds that the event loop may run on while another thread waits: that of the log, or one that reads a body."""


@dataclass(frozen=True)
class Settings:
    """All that the operator decides."""

    state: str
    host: str = "127.0.0.1"
    port: int = 8080
    recover: bool = False
    access: Access = field(default_factory=Access)
    tls: Tls | None = None
    limits: Limits = field(default_factory=Limits)
    engine: EngineOptions = field(default_factory=EngineOptions)
    keeper: KeeperOptions = field(default_factory=KeeperOptions)
    api: ApiOptions = field(default_factory=ApiOptions)
    shutdown_seconds: float = 30.0
    workers: int = 0
    """Readers: processes that predict beside this one."""


def is_local(host: str) -> bool:
    """Whether an address is of this machine alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def serve(settings: Settings, fresh: Callable[[], Model], say: Callable[[str], None]) -> None:
    """Answer until a signal comes; `fresh` makes the model of a new directory, `say` tells the operator."""
    state = State(settings.state)
    try:
        started = time.perf_counter()
        standing = state.open(fresh, recover=settings.recover)
        seconds = time.perf_counter() - started
        _check_assumed_label(standing.model, settings.engine.assume_label)
        rows = standing.model.learner.rows_seen
        say(
            f"{rows:,} rows learned, {standing.replayed:,} events replayed in {seconds:.2f} s, in {settings.state}"
        )
        _allow_files(2 * settings.limits.connections)
        with contextlib.ExitStack() as stack:
            listening = sockets_at(settings.host, settings.port, settings.workers + 1)
            for each in listening:
                stack.enter_context(each)
            with contextlib.suppress(ImportError):
                import uvloop

                asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
            asyncio.run(_serve(settings, state, standing, listening, say))
    finally:
        state.close()


def _allow_files(most: int) -> None:
    """Let the process have a file for each connection, as far as the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = most if hard == resource.RLIM_INFINITY else min(most, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _check_assumed_label(model: Model, label: object) -> None:
    """Refuse a label that the model could never learn: records would be dropped without a word."""
    if label is None:
        return
    try:
        unfit = bool(model.target.code([label]).unfit)
    except (TypeError, ValueError):
        unfit = True
    if unfit:
        known = "" if model.classes is None else f": the classes are {', '.join(map(str, model.classes))}"
        raise ValueError(f"--assume-label {label!r} is not a label of this model{known}")


def sockets_at(host: str, port: int, count: int) -> list[socket.socket]:
    """So many sockets that listen there and share what comes; one that nobody else uses."""
    made: list[socket.socket] = []
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, _, _, _, address = found[0]
        if count > 1:
            with socket.socket(family) as alone:  # sockets that share would join those of another server
                alone.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                alone.bind(address)
                address = alone.getsockname()
        for _ in range(count):
            each = socket.socket(family)
            made.append(each)
            each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if count > 1:
                each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            each.bind(address)
            each.listen(1024)
    except OSError as error:
        for each in made:
            each.close()
        raise OSError(error.errno, f"cannot listen there: {error.strerror}", f"{host}:{port}") from None
    return made


async def _serve(
    settings: Settings,
    state: State,
    standing: Standing,
    listening: list[socket.socket],
    say: Callable[[str], None],
) -> None:
    loop = asyncio.get_running_loop()
    sys.setswitchinterval(_TURN)
    loop.set_default_executor(
        ThreadPoolExecutor(2, "skn-beside")
    )  # each keeps the memory of its largest task
    engine = Engine(state, standing, settings.engine)
    keeper = Keeper(engine, state, settings.keeper, standing.seq - standing.replayed)
    stats = Stats(engine)
    access = settings.access
    if is_local(settings.host):
        access = access._replace(hosts=("localhost", "127.0.0.1", "[::1]", settings.host.lower()))
    api = Api(engine, keeper, stats, access, settings.api, pages())
    state.log.start(engine.settled)
    own, *others = listening
    connections = Connections(api, settings.limits, loop)
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    tls = None if settings.tls is None else settings.tls.context()
    if others:
        api.readers = Readers(engine, stats, _for_readers(settings, access), others, say)
        await api.readers.start(api)
    server = await loop.create_server(connections, sock=own, ssl=tls)
    tasks = [loop.create_task(work) for work in (connections.watch(), keeper.run(), api.report())]
    gc.freeze()  # what is there now stays: no need to look at it again
    host, port = own.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    say(f"serving at {'http' if settings.tls is None else 'https'}://{shown}:{port}/")
    try:
        await stop.wait()
    finally:
        say("shutting down")
        api.closing = True
        api.wake()
        server.close()
        ends = [connections.close(settings.shutdown_seconds)]
        if api.readers is not None:
            ends.append(api.readers.close(settings.shutdown_seconds))
        await asyncio.gather(*ends)
        for task in tasks:
            task.cancel()
        with contextlib.suppress(
            Exception
        ):  # the log has it all: a snapshot only makes the next start shorter
            await keeper.save()
        say(f"{engine.version:,} rows learned")


def _for_readers(settings: Settings, access: Access) -> ReaderSettings:
    """What readers must know, as JSON has it."""
    return {
        "access": {
            "read": [token.decode() for token in access.read],
            "write": [token.decode() for token in access.write],
            "hosts": list(access.hosts),
        },
        "api": cast("Options", asdict(settings.api)),
        "rows": (settings.engine.limits.rows, settings.engine.limits.features),
        "limits": settings.limits,
        "tls": settings.tls,
    }


def to_stderr(line: str) -> None:
    """A line for the operator."""
    with contextlib.suppress(OSError):  # a full disk under the log is no reason to stop serving
        print(f"skn: {line}", file=sys.stderr, flush=True)
