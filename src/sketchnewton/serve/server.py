"""Sockets, signals and the order in which a server begins and ends."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import ipaddress
import os
import resource
import signal
import socket
import ssl
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

from sketchnewton.model import Model
from sketchnewton.serve.access import Access
from sketchnewton.serve.api import Api, ApiOptions
from sketchnewton.serve.engine import Engine, EngineOptions
from sketchnewton.serve.http import Connections, Limits, Response
from sketchnewton.serve.keeper import Keeper, KeeperOptions
from sketchnewton.serve.replaying import Standing
from sketchnewton.serve.state import State
from sketchnewton.serve.stats import Stats

__all__ = ["Settings", "is_local", "serve"]

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
_POLICY = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"  # noqa: E501


@dataclass(frozen=True)
class Settings:
    """All that the operator decides."""

    state: str
    host: str = "127.0.0.1"
    port: int = 8080
    recover: bool = False
    access: Access = field(default_factory=Access)
    tls: ssl.SSLContext | None = None
    limits: Limits = field(default_factory=Limits)
    engine: EngineOptions = field(default_factory=EngineOptions)
    keeper: KeeperOptions = field(default_factory=KeeperOptions)
    api: ApiOptions = field(default_factory=ApiOptions)
    shutdown_seconds: float = 30.0


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
        with socket_at(settings.host, settings.port) as listening:
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


def _check_assumed_label(model: Model, label: Any) -> None:
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


def socket_at(host: str, port: int) -> socket.socket:
    """A socket that listens there."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        made = socket.socket(family, kind, protocol)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen(1024)
    except OSError as error:
        raise OSError(error.errno, f"cannot listen there: {error.strerror}", f"{host}:{port}") from None
    return made


async def _serve(
    settings: Settings, state: State, standing: Standing, listening: socket.socket, say: Callable[[str], None]
) -> None:
    loop = asyncio.get_running_loop()
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
    state.log.start()
    connections = Connections(api, settings.limits, loop)
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    server = await loop.create_server(connections, sock=listening, ssl=settings.tls)
    tasks = [loop.create_task(work) for work in (connections.watch(), keeper.run(), api.report())]
    gc.freeze()  # what is there now stays: no need to look at it again
    host, port = listening.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    say(f"serving at {'http' if settings.tls is None else 'https'}://{shown}:{port}/")
    try:
        await stop.wait()
    finally:
        say("shutting down")
        api.closing = True
        api.wake()
        server.close()
        await connections.close(settings.shutdown_seconds)
        for task in tasks:
            task.cancel()
        with contextlib.suppress(
            Exception
        ):  # the log has it all: a snapshot only makes the next start shorter
            await keeper.save()
        say(f"{engine.version:,} rows learned")


def pages() -> dict[str, Response]:
    """The files of the page, by their paths: read once, so that no request ever names a file."""
    found: dict[str, Response] = {}
    folder = resources.files("sketchnewton.serve").joinpath("static")
    if not folder.is_dir():
        return found
    for entry in folder.iterdir():
        kind = _TYPES.get(os.path.splitext(entry.name)[1])
        if kind is not None:
            headers = (
                ("Content-Security-Policy", _POLICY),
                ("X-Content-Type-Options", "nosniff"),
                ("Referrer-Policy", "no-referrer"),
                ("Cache-Control", "no-cache"),
            )
            page = Response(entry.read_bytes(), content_type=kind, headers=headers)
            found["/" if entry.name == "index.html" else f"/{entry.name}"] = page
    return found


def to_stderr(line: str) -> None:
    """A line for the operator."""
    print(f"skn: {line}", file=sys.stderr, flush=True)
