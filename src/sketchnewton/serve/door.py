"""The door: which requests there are, who may make them, and those that need no more than a model to predict."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, cast

from sketchnewton.core.types import Json
from sketchnewton.serve.access import PUBLIC, READ, WRITE, Access
from sketchnewton.serve.answers import shaped
from sketchnewton.serve.bodies import Body, decode, format_of
from sketchnewton.serve.counts import Counts
from sketchnewton.serve.errors import ApiError
from sketchnewton.serve.inference import body_of_tensors, metadata, tensors_of
from sketchnewton.serve.messages import Request, Response
from sketchnewton.serve.openapi import document
from sketchnewton.serve.predictor import Predictor

__all__ = ["ApiOptions", "Door", "Route", "json_response", "routes"]

_LARGE = 1 << 16  # bytes of a body that is read beside the event loop
_CONTENT = re.compile(
    r"'[^']*'|\"[^\"]*\"|(?<=has the label )\S+|(?<=has the value )\S+|(?<=has the weight )\S+"
    r"|(?<=; there are ).+",
    re.DOTALL,
)


@dataclass(frozen=True)
class ApiOptions:
    """What the operator decides."""

    name: str = "model"
    remember: bool = False
    """Whether predictions are remembered unless the request says otherwise."""
    log_requests: bool = False
    log_records: bool = False
    """Whether what records hold may be in messages that others see: the log, the page."""


class Route(NamedTuple):
    """The method that answers a request, and what its client must be allowed."""

    name: str
    access: int


def routes(model: str) -> dict[str, dict[str, Route]]:
    """All requests but those for the page; `model` is its name in the Open Inference Protocol."""
    return {
        "/v1/predict": {"POST": Route("predict", READ)},
        "/v1/learn": {"POST": Route("learn", WRITE)},
        "/v1/feedback": {"POST": Route("feedback", WRITE)},
        "/v1/model": {"GET": Route("model", READ)},
        "/v1/model/save": {"POST": Route("save", WRITE)},
        "/v1/model/file": {"GET": Route("file", READ)},
        "/v1/model/load": {"POST": Route("load", WRITE)},
        "/v1/stats": {"GET": Route("figures", READ)},
        "/v1/stats/history": {"GET": Route("history", READ)},
        "/v1/events": {"GET": Route("events", READ)},
        "/metrics": {"GET": Route("metrics", READ)},
        "/healthz": {"GET": Route("health", PUBLIC)},
        "/readyz": {"GET": Route("ready", PUBLIC)},
        "/openapi.json": {"GET": Route("openapi", PUBLIC)},
        "/v2": {"GET": Route("protocol", PUBLIC)},
        "/v2/health/live": {"GET": Route("live", PUBLIC)},
        "/v2/health/ready": {"GET": Route("inference_ready", PUBLIC)},
        f"/v2/models/{model}": {"GET": Route("metadata", READ)},
        f"/v2/models/{model}/ready": {"GET": Route("model_ready", PUBLIC)},
        f"/v2/models/{model}/infer": {"POST": Route("infer", READ)},
    }


class Door(ABC):
    """What the owner of the model and its readers answer alike."""

    def __init__(
        self,
        predictor: Predictor,
        counts: Counts,
        access: Access,
        options: ApiOptions,
        pages: Mapping[str, Response],
    ) -> None:
        self.predictor = predictor
        self.counts = counts
        self.access = access
        self.options = options
        self.pages = pages
        self.routes = {**routes(options.name), **{path: {"GET": Route("page", PUBLIC)} for path in pages}}

    # -- for the connection

    def admit(self, request: Request) -> None:
        """Look at a request before its body comes."""
        self.access.check(request, self.route(request).access)
        if request.header(b"content-encoding").strip().lower() not in ("", "identity"):
            message = "compressed bodies are not taken: send the body without a Content-Encoding"
            raise ApiError(415, "content_encoding", message, (("Accept-Encoding", "identity"),))
        if request.header(b"transfer-encoding").strip().lower() not in ("", "chunked"):
            raise ApiError(501, "transfer_encoding", "the only Transfer-Encoding taken is chunked")

    def handle(self, request: Request) -> Response | Awaitable[Response]:
        """The answer."""
        made: Response | Awaitable[Response] = getattr(self, self.route(request).name)(request)
        return made

    def route(self, request: Request) -> Route:
        """Where a request goes; `ApiError` if nowhere."""
        known = self.routes.get(request.path)
        if known is None:
            raise ApiError(404, "not_found", f"there is no {request.path[:80]!r} here")
        found = known.get("GET" if request.method == "HEAD" else request.method)
        if found is None:
            allowed = ", ".join(known)
            message = f"{request.path} takes {allowed}, not {request.method[:20]}"
            raise ApiError(405, "method_not_allowed", message, (("Allow", allowed),))
        return found

    def finished(self, request: Request, response: Response) -> None:
        """Count a request, and write a line about it if that was asked for."""
        seconds = time.perf_counter() - request.started
        route = request.path if request.path in self.routes else "other"
        error = response.error
        if error is not None and not self.options.log_records:
            error = ApiError(error.status, error.code, _CONTENT.sub("'…'", error.message))
        self.counts.add(route, response.status, seconds, error)
        if self.options.log_requests or response.status >= 500:
            why = "" if error is None else f" {error.code}: {error.message}"
            line = f"{request.method} {request.path[:200]!r} {response.status} {1000 * seconds:.1f} ms{why}"
            line = line if line.isprintable() else line.encode("unicode_escape").decode()  # it is one
            with contextlib.suppress(OSError):  # nobody reads it
                print(f"skn: {line}", file=sys.stderr, flush=True)

    def broken(self, error: Exception) -> ApiError:
        """A mistake of ours: its kind and place for the operator, none of it for the client."""
        trace = error.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        place = (
            ""
            if trace is None
            else f" at {os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno}"
        )
        with contextlib.suppress(OSError):
            print(f"skn: internal error: {type(error).__name__}{place}", file=sys.stderr, flush=True)
        return ApiError(500, "internal", "an internal error: the server's log has a line about it")

    # -- predicting

    def predict(self, request: Request) -> Response | Awaitable[Response]:
        """`POST /v1/predict`."""
        data = request.body
        body = decode(format_of(request.header(b"content-type")), data, self.predictor.limits.rows)
        if request.query_text or body.ids is not None or self.options.remember:
            return self.predict_more(request, body, large=len(data) > _LARGE)
        if len(data) > _LARGE:
            return self._predict_beside(body)
        made, version = self.predictor.predict(body)
        return json_response(shaped(body, made, version))

    async def _predict_beside(self, body: Body) -> Response:
        made, version = await self.predictor.predict_beside(body)
        return json_response(shaped(body, made, version))

    @abstractmethod
    async def predict_more(self, request: Request, body: Body, *, large: bool) -> Response:
        """The same with ids, explanations, and whatever else a request can ask for."""

    def infer(self, request: Request) -> Response:
        """`POST /v2/models/NAME/infer`."""
        body, id = body_of_tensors(request.body, self.predictor.limits.rows)
        try:
            first = cast("list[dict[str, Json]]", body.records)[0]  # tensors are columns, matrices lists
            lists = any(isinstance(value, list) for value in first.values())
            self.predictor.model.columns.absent_from(list(first), others=lists)
        except ValueError as error:
            raise ApiError(400, "bad_records", str(error)) from None
        made, version = self.predictor.predict(body)
        return json_response(tensors_of(self.options.name, version, id, made))

    def metadata(self, _: Request) -> Response:
        """`GET /v2/models/NAME`."""
        model, version = self.predictor.model, self.predictor.version
        return json_response(metadata(self.options.name, version, dict(model.columns.kinds), model.classes))

    # -- what is always the same

    def page(self, request: Request) -> Response:
        """A file of the page."""
        return self.pages[request.path]

    def openapi(self, _: Request) -> Response:
        """`GET /openapi.json`."""
        return json_response(document(self.options.name))

    def health(self, _: Request) -> Response:
        """`GET /healthz`."""
        return json_response({"status": "ok"})

    def live(self, _: Request) -> Response:
        """`GET /v2/health/live`."""
        return json_response({"live": True})

    def protocol(self, _: Request) -> Response:
        """`GET /v2`."""
        return json_response({"name": "sketchnewton", "version": "2", "extensions": []})


def _encoder() -> Callable[[object], str]:
    """JSON without infinities. The encoder of the library makes another one for each call, in half of its time."""
    library = json.JSONEncoder(allow_nan=False)
    make = getattr(json.encoder, "c_make_encoder", None)
    if make is None:  # not compiled
        return library.encode
    compiled = make(
        None, library.default, json.encoder.encode_basestring_ascii, None, ": ", ", ", False, False, False
    )
    return lambda value: "".join(compiled(value, 0))


_encode = _encoder()


def json_response(value: object, headers: tuple[tuple[str, str], ...] = ()) -> Response:
    """JSON."""
    return Response(_encode(value).encode(), headers=headers)
