"""Requests that need the owner of the model: learning, late labels, the model itself and how it does."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import os
import re
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

from sketchnewton.core.types import Json
from sketchnewton.serve.access import WRITE, Access
from sketchnewton.serve.answers import Answer, add_bounds, contributions, shaped
from sketchnewton.serve.bodies import Body, checked_id, decode, format_of, read_json
from sketchnewton.serve.door import ApiOptions, Door, json_response
from sketchnewton.serve.engine import Engine, Label, Note, no_note
from sketchnewton.serve.errors import ApiError
from sketchnewton.serve.keeper import Keeper
from sketchnewton.serve.messages import Promise, Request, Response, failed
from sketchnewton.serve.predictor import refused
from sketchnewton.serve.readers import Readers
from sketchnewton.serve.replaying import REFUSED
from sketchnewton.serve.stats import Stats, experts, plain

__all__ = ["Api"]

_KEY = re.compile(r"[!-~]{1,200}")
_SHARE = 0.02  # of the time that may go into figures for those who watch
_TRUE, _FALSE = ("true", "1", "yes"), ("false", "0", "no", "")


class Api(Door):
    """All requests."""

    def __init__(
        self,
        engine: Engine,
        keeper: Keeper,
        stats: Stats,
        access: Access,
        options: ApiOptions,
        pages: Mapping[str, Response],
    ) -> None:
        super().__init__(engine, stats, access, options, pages)
        self.engine = engine
        self.keeper = keeper
        self.stats = stats
        self.readers: Readers | None = None
        self.closing = False
        self._news = asyncio.Event()
        self._watching = 0
        self._asked = -math.inf

    async def predict_more(self, request: Request, body: Body, *, large: bool) -> Response:
        """A prediction that is remembered or explained."""
        engine, query, ids = self.engine, request.query, body.ids
        if ids is not None or "id" in query or _flag(query, "remember", False):
            self.access.check(request, WRITE)  # what is remembered is written, and may be learned
        if "id" in query:
            if ids is not None or not body.single:
                raise ApiError(400, "bad_query", "id= is for one record that has no other id")
            ids = [checked_id(query["id"])]
        model = engine.model  # another may be loaded meanwhile
        made, version = await engine.predict_beside(body) if large else engine.predict(body)
        if "interval" in query:
            try:
                asked = (model, body.records, made, query["interval"])
                await asyncio.to_thread(add_bounds, *asked) if large else add_bounds(*asked)
            except ValueError as error:
                raise ApiError(400, "bad_query", str(error)) from None
        if ids is None and _flag(query, "remember", self.options.remember):
            ids = [_new_id() for _ in made]
        if _flag(query, "explain", False):
            if len(made) != 1:
                raise ApiError(400, "bad_query", "explain= is for one record")
            try:
                made[0].update(contributions(engine.model, body.records))
            except REFUSED as error:
                raise refused(error) from None
        if ids is not None:
            await engine.remember(body, ids, made)
            made = [{**answer, "id": id} for answer, id in zip(made, ids, strict=True)]
        return json_response(shaped(body, made, version))

    # -- learning

    def learn(self, request: Request) -> Awaitable[Response]:
        """`POST /v1/learn`."""
        data, engine = request.body, self.engine
        body = decode(format_of(request.header(b"content-type")), data, self.predictor.limits.rows)
        if body.ids is not None:
            raise ApiError(400, "bad_body", "ids are for records whose label is to come: use /v1/predict")
        if b"idempotency-key" in request.headers or not engine.learns_at_once(data):
            return self._once(request, lambda note: engine.learn(body, data, note))
        promise = Promise()
        answer = engine.learn_at_once(
            body, data, lambda error: promise.keep(response if error is None else failed(error))
        )
        response = json_response(answer)
        return promise

    async def feedback(self, request: Request) -> Response:
        """`POST /v1/feedback`."""
        if format_of(request.header(b"content-type")) != "json":
            raise ApiError(415, "content_type", "labels are JSON: use application/json")
        found = read_json(request.body)
        single = isinstance(found, dict)
        listed = [found] if single else found
        if not isinstance(listed, list) or not listed:
            raise ApiError(400, "bad_body", 'expected {"id": …, "label": …} or a list of such objects')
        if len(listed) > self.predictor.limits.rows:
            raise ApiError(413, "too_many_rows", f"there are more than {self.predictor.limits.rows} labels")
        labels = [_label(item) for item in listed]
        return await self._once(request, lambda note: self.engine.feedback(labels, single, note))

    async def _once(self, request: Request, act: Callable[[Note], Awaitable[Answer]]) -> Response:
        key = request.header(b"idempotency-key")
        if not key:
            return json_response(await act(no_note))
        if not _KEY.fullmatch(key):
            raise ApiError(
                400, "bad_key", "expected an Idempotency-Key of 1 to 200 printable ASCII characters"
            )
        content = b"\n".join((request.path.encode(), request.headers.get(b"content-type", b""), request.body))
        answer, again = await self.engine.once(key, content, act)
        return json_response(answer, headers=(("Idempotency-Replayed", "true"),) if again else ())

    # -- the model

    def model(self, _: Request) -> Response:
        """`GET /v1/model`."""
        engine, stats = self.engine, self.stats
        model = engine.model
        facts = model.facts(20)
        stats.learn_names()
        figures = engine.window.figures(model)
        return json_response(
            {
                "kind": facts["class"],
                "title": model.learner.title,
                "loss": model.learner.loss.name,
                "version": engine.version,
                "rows": engine.version,
                "features": facts["features"],
                "labels": facts["labels"],
                "columns": [{"name": name, "kind": kind} for name, kind in facts["kinds"].items()],
                "classes": model.classes,
                "metrics": {
                    "loss": plain(engine.score.mean_loss),
                    "error": engine.score.error_rate,
                    "rows": engine.score.rows,
                    "recent": {
                        "loss": plain(figures.get("loss", math.nan)),
                        **{name: plain(value) for name, value in figures.get("metrics", {}).items()},
                    },
                },
                "intercept": facts["intercept"],
                "spectrum": facts["spectrum"][:100],
                "experts": experts(engine),
                "weights": [
                    {
                        "name": item["feature"]
                        if isinstance(item["feature"], str)
                        else stats.name_of(item["feature"]),
                        "weight": item["weight"],
                    }
                    for item in facts["largest_weights"]
                ],
                "params": facts["parameters"],
                "server": {
                    "version": _version(),
                    "started": stats.started,
                    "uptime": time.time() - stats.started,
                    "pending": engine.pending,
                    "log_bytes": engine.log.bytes(),
                    "queue": engine.waiting,
                    "events": engine.seq,
                    "snapshot": self.keeper.snapshot_seq,
                    "readers": [] if self.readers is None else self.readers.facts(),
                    "problem": None if engine.problem is None else str(engine.problem),
                },
            }
        )

    async def save(self, _: Request) -> Response:
        """`POST /v1/model/save`: a snapshot now, in the server's own directory."""
        version = self.engine.version
        try:
            event = await self.keeper.save()
        except OSError as error:
            raise ApiError(507, "storage_full", f"the snapshot cannot be written: {error.strerror}") from None
        return json_response({"saved": True, "event": event, "version": version})

    async def file(self, _: Request) -> Response:
        """`GET /v1/model/file`: the model as `sketchnewton.load` opens it."""
        data, version = await self.engine.copy()
        disposition = f'attachment; filename="{self.options.name}.skn"'
        headers = (("Content-Disposition", disposition), ("X-Model-Version", str(version)))
        return Response(data, content_type="application/octet-stream", headers=headers)

    async def load(self, request: Request) -> Response:
        """`POST /v1/model/load`: the body is a model file, which takes the place of the model."""
        if not request.body:
            raise ApiError(400, "bad_model", "the body is empty: expected a model file")
        answer = await self.engine.load(request.body)
        with contextlib.suppress(OSError, ApiError):  # the log has the model: a snapshot can come later
            await self.keeper.save()
        if self.readers is not None:
            await self.readers.publish()
        return json_response(answer)

    # -- how it does

    def ready(self, _: Request) -> Response:
        """`GET /readyz`: can it learn, and is it going to stay?"""
        if self.closing:
            raise ApiError(503, "closing", "the server is shutting down")
        if self.engine.problem is not None:
            raise ApiError(503, "storage", str(self.engine.problem))
        return json_response({"status": "ready", "version": self.engine.version})

    def metrics(self, _: Request) -> Response:
        """`GET /metrics`."""
        return Response(
            self.stats.prometheus().encode(), content_type="text/plain; version=0.0.4; charset=utf-8"
        )

    def events(self, request: Request) -> Response:
        """`GET /v1/events`."""
        headers = (("Cache-Control", "no-cache"), ("X-Accel-Buffering", "no"))
        stream = None if request.method == "HEAD" else self._events()
        return Response(content_type="text/event-stream", headers=headers, stream=stream)

    async def _events(self) -> AsyncIterator[bytes]:
        latest = self.stats.tick()
        self._watching += 1
        try:
            while not self.closing:
                yield b"event: stats\ndata: " + json.dumps(latest).encode() + b"\n\n"
                await self._news.wait()
                latest = self.stats.latest
        finally:
            self._watching -= 1

    async def report(self) -> None:
        """New figures: once a second for those who watch while something changes, else every ten seconds."""
        seen: tuple[int, ...] = ()
        quiet, spent = 0.0, 0.0
        while True:
            pause = max(1.0, spent / _SHARE)  # the figures of a large model take a while
            await asyncio.sleep(pause)
            quiet += pause
            now = (self.engine.seq, self.stats.total, self.engine.pending)
            if (now != seen and self._watched()) or quiet >= 10.0:
                seen, quiet = now, 0.0
                begun = time.perf_counter()
                self.stats.tick()
                spent = time.perf_counter() - begun
                self.wake()

    def _watched(self) -> bool:
        return self._watching > 0 or time.monotonic() - self._asked < 30.0

    def figures(self, _: Request) -> Response:
        """`GET /v1/stats`."""
        if not self._watched() or not self.stats.latest:
            self.stats.tick()
        self._asked = time.monotonic()
        return json_response(self.stats.latest)

    def history(self, _: Request) -> Response:
        """`GET /v1/stats/history`."""
        return Response(b'{"history": [' + b", ".join(self.stats.history) + b"]}")

    def wake(self) -> None:
        """Tell all who watch that there is something new."""
        news, self._news = self._news, asyncio.Event()
        news.set()


def _label(item: Json) -> Label:
    if not isinstance(item, dict) or "id" not in item or "label" not in item:
        raise ApiError(400, "bad_body", "expected an object with 'id' and 'label'")
    if not item.keys() <= {"id", "label", "weight"}:
        raise ApiError(400, "bad_body", "expected 'id', 'label' and 'weight' alone")
    label, weight = item["label"], item.get("weight")
    if label is None or isinstance(label, dict | list):
        raise ApiError(400, "bad_body", "expected a label that is a number, a text, true or false")
    if weight is not None and (isinstance(weight, bool) or not isinstance(weight, int | float)):
        raise ApiError(400, "bad_body", "expected a number as the weight")
    if weight is not None and not 0.0 <= weight <= sys.float_info.max:
        raise ApiError(400, "bad_body", "expected a weight that is finite and not negative")
    return Label(checked_id(item["id"]), label, None if weight is None else float(weight))


def _flag(query: dict[str, str], name: str, default: bool) -> bool:
    value = query.get(name)
    if value is None:
        return default
    if value.lower() not in (*_TRUE, *_FALSE):
        raise ApiError(400, "bad_query", f"{name}= is true or false")
    return value.lower() in _TRUE


def _new_id() -> str:
    return os.urandom(12).hex()


def _version() -> str:
    from sketchnewton import __version__

    return str(__version__)
