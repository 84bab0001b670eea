"""A client of `skn serve`: predict, learn and late labels over HTTP, with the standard library alone.

```python
with Client("http://127.0.0.1:8080") as client:
    answer = client.predict({"user": "anna", "price": 3.5}, remember=True)
    client.feedback(answer["id"], 1)
```
"""

from __future__ import annotations

import http.client
import json
import random
import ssl
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, NamedTuple, Self, TypedDict, cast, overload
from urllib.parse import urlencode, urlsplit

__all__ = ["Client", "ClientError", "Feedback", "Prediction"]

Record = Mapping[str, object]
Records = Record | Sequence[Record] | str | bytes
Label = str | float | bool

_BUSY = (429, 503)  # the server has not done it and says so: try again
_FIRST_WAIT, _LONGEST_WAIT = 0.1, 5.0  # seconds, doubled from one to the other
_JSON = "application/json"


class Contribution(TypedDict):
    """What a feature adds to a score."""

    name: str
    value: float
    contribution: float


class Prediction(TypedDict, total=False):
    """The answer for a record, with what the model has and what was asked for."""

    prediction: Label | None
    score: float | None
    scores: dict[str, float | None]
    probability: float
    probabilities: dict[str, float]
    lower: float | None
    upper: float | None
    id: str
    version: int
    contributions: list[Contribution]
    intercept: float


class Refusal(TypedDict):
    """Why a late label was not learned."""

    code: str
    message: str


class Feedback(TypedDict, total=False):
    """The answer for a late label: what had been predicted, or why nothing was learned."""

    id: str
    prediction: Label | None
    learned: bool
    version: int
    error: Refusal


class ClientError(Exception):
    """A request that was refused, or that got no answer.

    * `code`: the server's word for it, such as `unknown_id`; `no_answer` if there was none, `bad_answer` if it was
      not the server's.
    * `message`: what is wrong, in one line.
    * `status`: the HTTP status; None if there was no answer.
    """

    def __init__(self, code: str, message: str, status: int | None = None) -> None:
        super().__init__(code, message, status)
        self.code = code
        self.message = message
        self.status = status

    def __str__(self) -> str:
        return f"{self.message} ({self.code})"


class _Answer(NamedTuple):
    status: int
    reason: str
    retry_after: str | None
    body: bytes


class Client:
    """Client of a server started with `skn serve`.

    Every call is repeated after a lost connection, and when the server is busy (429 and 503, after the time it
    asks for). What learns carries an idempotency key, and what is remembered has an id of the client's own, so a
    repeated call is learned once. Connections are kept open; several threads may use one client.

    * `url`: where the server is, such as `http://127.0.0.1:8080`; a path in front of the server's own is kept.
    * `token`: the bearer token, if the server asks for one.
    * `timeout`: seconds to wait for a connection, and for each part of an answer. A server that asks for a longer
      pause than this is not waited for.
    * `retries`: how often a call is repeated before it fails.
    * `context`: of TLS, for certificates that the system does not know (`ssl.create_default_context(cafile=…)`).
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        timeout: float = 10.0,
        retries: int = 4,
        context: ssl.SSLContext | None = None,
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"url={url!r} is invalid: must begin with http:// or https:// and name a host")
        if parts.query or parts.fragment or "@" in parts.netloc:
            raise ValueError("url is invalid: must have no user, query or fragment")
        if not timeout > 0:
            raise ValueError(f"timeout={timeout} is invalid: must be > 0")
        if retries < 0:
            raise ValueError(f"retries={retries} is invalid: must be >= 0")
        if token is not None and not (token.isascii() and token.isprintable() and token.strip()):
            raise ValueError("token is invalid: must be printable ASCII, without line breaks")
        self.url = url.rstrip("/")
        self._secure, self._host, self._port = parts.scheme == "https", parts.hostname, parts.port
        self._path = parts.path.rstrip("/")
        self._headers = {} if token is None else {"Authorization": f"Bearer {token.strip()}"}
        self._timeout, self._retries = timeout, retries
        self._context = context
        self._idle: list[http.client.HTTPConnection] = []  # append and pop are atomic

    def __repr__(self) -> str:
        return f"Client({self.url!r})"

    # -- predictions and labels

    @overload
    def predict(
        self,
        records: Record,
        *,
        id: str | None = None,
        remember: bool | None = None,
        explain: bool = False,
        interval: float | None = None,
    ) -> Prediction: ...
    @overload
    def predict(
        self,
        records: Sequence[Record],
        *,
        ids: Sequence[str] | None = None,
        remember: bool | None = None,
        explain: bool = False,
        interval: float | None = None,
    ) -> list[Prediction]: ...
    @overload
    def predict(
        self,
        records: str | bytes,
        *,
        remember: bool | None = None,
        explain: bool = False,
        interval: float | None = None,
        content_type: str,
    ) -> Prediction | list[Prediction]: ...
    def predict(
        self,
        records: Records,
        *,
        id: str | None = None,
        ids: Sequence[str] | None = None,
        remember: bool | None = None,
        explain: bool = False,
        interval: float | None = None,
        content_type: str | None = None,
    ) -> Prediction | list[Prediction]:
        """The prediction for a record (a dict), or a list of predictions for a list of records.

        A prediction is a dict: `prediction`, `score`, `probabilities` where there are any, `version` (rows learned
        so far), and the `id` to give to `feedback` where the record is remembered.

        * `records`: a dict, a list of dicts, or text in a format that the server reads, with its `content_type`
          (`text/csv`, `text/x-vw`, `application/x-ndjson`).
        * `remember`: True if a label will come by `feedback`, False if not; default: as the server was told to, or
          True where an id is given.
        * `id`, `ids`: of the record or records, for `feedback`; made here if they are remembered and have none.
        * `explain`: of one record, add each feature's `contributions` to the score.
        * `interval`: add `lower` and `upper`, between which this share of labels lies, such as 0.9.
        """
        query = {} if remember is None else {"remember": str(remember).lower()}
        if interval is not None:
            query["interval"] = repr(float(interval))
        if explain:
            query["explain"] = "true"
        if isinstance(records, str | bytes):
            if id is not None or ids is not None:
                raise ValueError("ids go with records, not with text: the server makes them")
            return _predictions(self._send("POST", "/v1/predict", query, *_text(records, content_type)))
        one = isinstance(records, Mapping)
        if (ids if one else id) is not None:
            raise ValueError("one record has an id, several have ids")
        if remember is False and (id is not None or ids is not None):
            raise ValueError("remember=False is invalid: a record that has an id is remembered")
        body = records if isinstance(records, Mapping) else list(records)
        if id is None and ids is None and not remember:
            return _predictions(self._send("POST", "/v1/predict", query, _json(body), _JSON))
        query.pop("remember", None)
        given = _ids(body, id, ids)
        named = {"record": body, "id": given[0]} if one else {"records": body, "ids": given}
        try:
            return _predictions(self._send("POST", "/v1/predict", query, _json(named), _JSON))
        except ClientError as error:
            if error.code != "id_in_use" or id is not None or ids is not None:
                raise
        # Ids made here are new: it was an earlier try of this call whose answer was lost.
        again = _predictions(
            self._send("POST", "/v1/predict", {**query, "remember": "false"}, _json(body), _JSON)
        )
        if not isinstance(again, list):
            return {**again, "id": given[0]}
        return [{**answer, "id": name} for answer, name in zip(again, given, strict=True)]

    @overload
    def learn(
        self, records: Record, labels: Label | None = None, weights: float | None = None
    ) -> Prediction: ...
    @overload
    def learn(
        self,
        records: Sequence[Record],
        labels: Iterable[object] | None = None,
        weights: Iterable[float] | None = None,
    ) -> list[Prediction]: ...
    @overload
    def learn(self, records: str | bytes, *, content_type: str) -> Prediction | list[Prediction]: ...
    def learn(
        self,
        records: Records,
        labels: Label | Iterable[object] | None = None,
        weights: float | Iterable[float] | None = None,
        *,
        content_type: str | None = None,
    ) -> Prediction | list[Prediction]:
        """Learn records whose labels are known; the answer is what was predicted before, as `predict` gives it.

        * `records`: as in `predict`.
        * `labels`, `weights`: one for each record; None if the records hold them, as text always does.
        """
        key = {"Idempotency-Key": uuid.uuid4().hex}
        if isinstance(records, str | bytes):
            if labels is not None or weights is not None:
                raise ValueError("labels and weights of text are in the text")
            return _predictions(self._send("POST", "/v1/learn", {}, *_text(records, content_type), key))
        one = isinstance(records, Mapping)
        given = {
            "records": [records] if one else list(records),
            **({} if labels is None else {"labels": [labels] if one else _listed(labels)}),
            **({} if weights is None else {"weights": [weights] if one else _listed(weights)}),
        }
        learned = _predictions(self._send("POST", "/v1/learn", {}, _json(given), _JSON, key))
        return cast("list[Prediction]", learned)[0] if one else learned

    def feedback(self, id: str, label: Label, weight: float | None = None) -> Feedback:
        """Learn the label of a record that was predicted before, once: a repeated call gets the same answer.

        * `id`: of the prediction. One that the server does not know raises `ClientError` with status 404, one that
          has expired 410.
        * `label`: what the prediction should have been.
        * `weight`: importance of the record.
        """
        key = {"Idempotency-Key": uuid.uuid4().hex}
        event = {"id": id, "label": label, **({} if weight is None else {"weight": weight})}
        return cast("Feedback", self._send("POST", "/v1/feedback", {}, _json(event), _JSON, key))

    def feedback_all(self, events: Iterable[Record]) -> list[Feedback]:
        """Many late labels in one request.

        * `events`: dicts with `id`, `label` and, where it is not 1, `weight`.

        The answers are in the same order. Where an id was not known, its answer has an `error` with `code` and
        `message`; the others are learned all the same.
        """
        key = {"Idempotency-Key": uuid.uuid4().hex}
        answer = self._send("POST", "/v1/feedback", {}, _json(list(events)), _JSON, key)
        return list(answer["results"])

    # -- the server and its model

    def model(self) -> dict[str, Any]:
        """Description of the model: kind, columns, metrics, spectrum, experts, weights."""
        return dict(self._send("GET", "/v1/model"))

    def stats(self) -> dict[str, Any]:
        """Current state of the server: rows, loss, latency, pending labels, last errors."""
        return dict(self._send("GET", "/v1/stats"))

    def history(self) -> list[dict[str, Any]]:
        """What `stats` was before, oldest first, without weights, experts and errors."""
        return list(self._send("GET", "/v1/stats/history")["history"])

    def save(self) -> dict[str, bool | int]:
        """Have the server write its model to its own file now."""
        return dict(self._send("POST", "/v1/model/save", {}, b"", _JSON))

    def model_file(self) -> bytes:
        """The model as a file, for `sketchnewton.load`, `skn predict` or another server."""
        return self._exchange("GET", "/v1/model/file", {}, None, {})

    def load(self, file: bytes) -> dict[str, bool | int]:
        """Replace the server's model by the one in `file`, the content of a `.skn` file."""
        return dict(self._send("POST", "/v1/model/load", {}, file, "application/octet-stream"))

    # -- connections

    def close(self) -> None:
        """Close the connections. The client may be used again, which opens new ones."""
        while self._idle:
            self._idle.pop().close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] = {},
        body: bytes | None = None,
        content_type: str | None = None,
        headers: Mapping[str, str] = {},
    ) -> dict[str, Any]:
        """The server's answer to a request, as JSON."""
        typed = {} if content_type is None else {"Content-Type": content_type}
        raw = self._exchange(method, path, query, body, {"Accept": _JSON, **typed, **headers})
        try:
            answer = json.loads(raw)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise ClientError("bad_answer", f"{self.url}{path} does not answer as skn serve does")
        return answer

    def _exchange(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: bytes | None,
        headers: Mapping[str, str],
    ) -> bytes:
        """The body of the answer, after as many tries as are allowed."""
        target = f"{self._path}{path}{'?' + urlencode(query) if query else ''}"
        wait = _FIRST_WAIT
        for left in range(self._retries, -1, -1):
            pause = wait * random.uniform(0.5, 1.0)  # so that many clients do not come back at once
            try:
                answer = self._once(method, target, body, {**self._headers, **headers})
            except (OSError, http.client.HTTPException) as error:
                if left == 0 or isinstance(error, ssl.SSLError):
                    raise ClientError("no_answer", f"{self.url}: {_reason(error)}") from error
            else:
                if answer.status < 300:
                    return answer.body
                asked = _seconds(answer.retry_after)
                if answer.status not in _BUSY or left == 0 or asked > self._timeout:
                    raise _refusal(answer, self.url)
                pause = max(pause, asked)
            time.sleep(pause)
            wait = min(2 * wait, _LONGEST_WAIT)
        raise AssertionError("the last try returns or raises")

    def _once(self, method: str, target: str, body: bytes | None, headers: Mapping[str, str]) -> _Answer:
        """One try. A kept connection that the server has closed meanwhile is replaced by a new one."""
        while True:
            kept = bool(self._idle)
            try:
                connection = self._idle.pop()
            except IndexError:
                kept, connection = False, self._connection()
            try:
                connection.request(method, target, body, dict(headers))
                response = connection.getresponse()
                found = _Answer(
                    response.status, response.reason, response.headers["Retry-After"], response.read()
                )
            except (ConnectionError, http.client.BadStatusLine):
                connection.close()
                if kept:
                    continue
                raise
            except BaseException:
                connection.close()
                raise
            if response.will_close:
                connection.close()
            else:
                self._idle.append(connection)
            return found

    def _connection(self) -> http.client.HTTPConnection:
        if not self._secure:
            return http.client.HTTPConnection(self._host, self._port, timeout=self._timeout)
        context = self._context or ssl.create_default_context()
        return http.client.HTTPSConnection(self._host, self._port, timeout=self._timeout, context=context)


def _refusal(answer: _Answer, url: str) -> ClientError:
    """What the server said; servers in front of it say it in their own way."""
    try:
        error = json.loads(answer.body)["error"]
        return ClientError(str(error["code"]), str(error["message"]), answer.status)
    except (ValueError, KeyError, TypeError):
        line = f"{url} answered {answer.status} {answer.reason}"
        return ClientError("bad_answer", line, answer.status)


def _predictions(answer: dict[str, Any]) -> Prediction | list[Prediction]:
    """The answer for one record, or the list for several, each with the version."""
    if "predictions" not in answer:
        return cast("Prediction", answer)
    return [cast("Prediction", {**one, "version": answer["version"]}) for one in answer["predictions"]]


def _ids(records: Record | Sequence[Record], id: str | None, ids: Sequence[str] | None) -> list[str]:
    """The ids of records. Those made here are the same in every try, so that a record is remembered once."""
    if isinstance(records, Mapping):
        return [uuid.uuid4().hex if id is None else id]
    given = [uuid.uuid4().hex for _ in records] if ids is None else list(ids)
    if len(given) != len(records):
        raise ValueError(f"ids is invalid: {len(given)} for {len(records)} records")
    return given


def _json(value: object) -> bytes:
    try:
        return json.dumps(value, allow_nan=False, default=_plain).encode()
    except ValueError as error:
        if "circular" in str(error).lower():
            raise
        raise ValueError("records hold NaN or infinity: use None for a missing value") from None


def _plain(value: object) -> object:
    """A scalar or array of NumPy as what JSON knows."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"a {type(value).__name__} cannot be sent: use text, a number, true, false or None")


def _listed(values: object) -> list[object]:
    if isinstance(values, str | bytes):
        raise ValueError("labels and weights of several records must be lists")
    return list(values.tolist() if hasattr(values, "tolist") else cast("Iterable[object]", values))


def _text(records: str | bytes, content_type: str | None) -> tuple[bytes, str]:
    if content_type is None:
        raise ValueError("content_type is missing: text needs one, such as text/csv")
    return records.encode() if isinstance(records, str) else records, content_type


def _seconds(text: str | None) -> float:
    """What Retry-After asks for; a date, which our server never sends, counts as nothing."""
    try:
        return max(0.0, float(text or 0))
    except ValueError:
        return 0.0


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
