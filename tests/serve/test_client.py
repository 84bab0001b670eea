"""The client when connections are lost and servers are busy: played by a server that follows a script."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

from sketchnewton.client import Client, ClientError


class Step(NamedTuple):
    """What the server does with a request; a status of 0 closes the connection without an answer."""

    status: int = 200
    body: object = {}
    headers: tuple[str, ...] = ()
    delay: float = 0.0


class Asked(NamedTuple):
    line: str
    headers: dict[str, str]
    body: bytes
    connection: int

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Script:
    """A server that takes one step of its script for each request, and remembers what it was asked."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.asked: list[Asked] = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._count = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._socket.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self._count += 1
            threading.Thread(target=self._serve, args=(connection, self._count), daemon=True).start()

    def _serve(self, connection: socket.socket, number: int) -> None:
        with connection, connection.makefile("rb") as file:
            while line := file.readline():
                headers = {}
                while (header := file.readline().strip()) != b"":
                    name, _, value = header.decode().partition(": ")
                    headers[name.lower()] = value
                body = file.read(int(headers.get("content-length", 0)))
                self.asked.append(Asked(line.decode().strip(), headers, body, number))
                step = self.steps.pop(0)
                time.sleep(step.delay)
                if step.status == 0:
                    return
                raw = step.body if isinstance(step.body, bytes) else json.dumps(step.body).encode()
                head = [f"HTTP/1.1 {step.status} As Asked", f"Content-Length: {len(raw)}", *step.headers]
                connection.sendall("\r\n".join(head).encode() + b"\r\n\r\n" + raw)
                if "Connection: close" in step.headers:
                    return


@pytest.fixture
def script() -> Iterator[Script]:
    made = Script()
    yield made
    made.close()


REFUSED = {"error": {"code": "unknown_id", "message": "id 'x' is not known"}}
BUSY = {"error": {"code": "busy", "message": "the queue is full"}}


def test_an_error_has_the_servers_code_and_message(script: Script) -> None:
    script.steps = [Step(404, REFUSED)]
    with Client(script.url) as client, pytest.raises(ClientError, match="id 'x' is not known") as caught:
        client.feedback("x", 1)
    assert (caught.value.code, caught.value.status) == ("unknown_id", 404)
    assert caught.value.message == "id 'x' is not known"


def test_a_connection_is_kept(script: Script) -> None:
    script.steps = [Step(200, {"version": 1}), Step(200, {"version": 2})]
    with Client(script.url) as client:
        client.stats()
        client.model()
    assert {one.connection for one in script.asked} == {1}


def test_a_kept_connection_that_was_closed_costs_no_retry(script: Script) -> None:
    script.steps = [Step(200, {}, ("Connection: close",)), Step(200, {}), Step(0), Step(200, {"version": 3})]
    with Client(script.url, retries=0) as client:
        client.stats()
        client.stats()
        assert client.stats() == {"version": 3}  # the server closes instead of answering
    assert [one.connection for one in script.asked] == [1, 2, 2, 3]


def test_a_lost_learn_is_repeated_with_the_same_key(script: Script) -> None:
    script.steps = [Step(0), Step(0), Step(200, {"predictions": [{"prediction": 0.5}], "version": 7})]
    with Client(script.url) as client:
        assert client.learn({"a": 1}, 1) == {"prediction": 0.5, "version": 7}
    keys = {one.headers["idempotency-key"] for one in script.asked}
    assert len(script.asked) == 3
    assert len(keys) == 1
    assert {one.body for one in script.asked} == {b'{"records": [{"a": 1}], "labels": [1]}'}


def test_two_calls_have_two_keys(script: Script) -> None:
    answer = Step(200, {"id": "x", "learned": True})
    script.steps = [answer, answer]
    with Client(script.url) as client:
        client.feedback("x", 1, weight=2)
        client.feedback("x", 1)
    first, second = script.asked
    assert first.headers["idempotency-key"] != second.headers["idempotency-key"]
    assert (first.json, second.json) == ({"id": "x", "label": 1, "weight": 2}, {"id": "x", "label": 1})


def test_a_lost_predict_is_repeated_with_the_same_id(script: Script) -> None:
    script.steps = [Step(0), Step(200, {"prediction": 1, "version": 0})]
    with Client(script.url) as client:
        client.predict({"a": 1}, remember=True)
    first, second = script.asked
    assert first.json == second.json
    assert len(first.json["id"]) == 32


@pytest.mark.parametrize("records", [{"a": 1}, [{"a": 1}, {"a": 2}]])
def test_a_predict_whose_answer_was_lost_is_remembered_once(script: Script, records: Any) -> None:
    answer = {"prediction": 0.5}
    listed = {"predictions": [answer, answer], "version": 3}
    in_use = {"error": {"code": "id_in_use", "message": "the id is in use"}}
    script.steps = [Step(0), Step(409, in_use)]
    script.steps.append(Step(200, {**answer, "version": 3} if isinstance(records, dict) else listed))
    with Client(script.url) as client:
        found = client.predict(records, remember=True)
    first, second, third = script.asked
    assert first.body == second.body
    assert (third.json, third.line) == (records, "POST /v1/predict?remember=false HTTP/1.1")
    if isinstance(records, dict):
        assert found == {**answer, "version": 3, "id": first.json["id"]}
    else:
        assert [one["id"] for one in found] == first.json["ids"]


def test_an_id_of_ones_own_that_is_in_use_is_an_error(script: Script) -> None:
    script.steps = [Step(409, {"error": {"code": "id_in_use", "message": "the id is in use"}})]
    with Client(script.url) as client, pytest.raises(ClientError, match="in use"):
        client.predict({"a": 1}, id="mine")


def test_the_server_says_when_to_come_back(script: Script) -> None:
    script.steps = [Step(429, BUSY, ("Retry-After: 1",)), Step(503, BUSY), Step(200, {"version": 1})]
    start = time.monotonic()
    with Client(script.url) as client:
        assert client.stats() == {"version": 1}
    assert 1.0 <= time.monotonic() - start < 3.0


def test_who_asks_for_too_long_a_pause_is_not_waited_for(script: Script) -> None:
    script.steps = [Step(503, BUSY, ("Retry-After: 3600",))]
    with Client(script.url) as client, pytest.raises(ClientError, match="queue is full"):
        client.stats()
    assert len(script.asked) == 1


def test_retries_end(script: Script) -> None:
    script.steps = [Step(429, BUSY)] * 3
    with Client(script.url, retries=2) as client, pytest.raises(ClientError) as caught:
        client.stats()
    assert (len(script.asked), caught.value.status, caught.value.code) == (3, 429, "busy")


@pytest.mark.parametrize("status", [400, 401, 404, 410, 413, 500, 507])
def test_what_is_refused_is_not_repeated(script: Script, status: int) -> None:
    script.steps = [Step(status, BUSY)]
    with Client(script.url) as client, pytest.raises(ClientError) as caught:
        client.learn([{"a": 1}], [1])
    assert (len(script.asked), caught.value.status) == (1, status)


def test_a_server_that_is_silent(script: Script) -> None:
    script.steps = [Step(200, {}, delay=2.0)]
    with Client(script.url, timeout=0.2, retries=0) as client, pytest.raises(ClientError) as caught:
        client.stats()
    assert (caught.value.code, caught.value.status) == ("no_answer", None)


def test_no_server() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with Client(f"http://127.0.0.1:{port}", retries=1) as client, pytest.raises(ClientError, match="refused"):
        client.stats()


@pytest.mark.parametrize("body", [b"<html>", b"[1]", b"\xff"])
def test_another_server(script: Script, body: bytes) -> None:
    script.steps = [Step(200, body), Step(502, body)]
    with Client(script.url) as client:
        for status in (None, 502):
            with pytest.raises(ClientError) as caught:
                client.stats()
            assert (caught.value.code, caught.value.status) == ("bad_answer", status)


def test_a_redirect_is_not_followed_with_the_token(script: Script) -> None:
    script.steps = [Step(302, b"", (f"Location: {script.url}/elsewhere",))]
    with Client(script.url, token="secret") as client, pytest.raises(ClientError, match="302"):
        client.stats()
    assert len(script.asked) == 1
    assert script.asked[0].headers["authorization"] == "Bearer secret"


def test_the_token_is_in_no_text(script: Script) -> None:
    script.steps = [Step(401, {"error": {"code": "wrong_token", "message": "the token is wrong"}})]
    client = Client(script.url, token="secret")
    with client, pytest.raises(ClientError) as caught:
        client.stats()
    assert "secret" not in repr(client) + str(caught.value)


def test_a_path_in_front(script: Script) -> None:
    script.steps = [Step(200, {})]
    with Client(f"{script.url}/clicks/") as client:
        client.model()
    assert script.asked[0].line == "GET /clicks/v1/model HTTP/1.1"


def test_arrays_and_scalars_of_numpy(script: Script) -> None:
    answer = Step(200, {"predictions": [{"prediction": 0.0}] * 2, "version": 2})
    script.steps = [answer]
    with Client(script.url) as client:
        client.learn([{"a": np.float32(0.5)}, {"a": np.int64(2)}], np.array([1, -1]), weights=np.ones(2))
    assert script.asked[0].json == {
        "records": [{"a": 0.5}, {"a": 2}],
        "labels": [1, -1],
        "weights": [1.0, 1.0],
    }


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_json_cannot_hold(value: float) -> None:
    with pytest.raises(ValueError, match="use None for a missing value"):
        Client("http://127.0.0.1:1").predict({"a": value})
    with pytest.raises(TypeError, match="a set cannot be sent"):
        Client("http://127.0.0.1:1").predict({"a": {1}})


@pytest.mark.parametrize(
    ("url", "settings"),
    [
        ("ftp://a", {}),
        ("127.0.0.1:8080", {}),
        ("http://", {}),
        ("http://user:word@a", {}),
        ("http://a/?x=1", {}),
        ("http://a", {"timeout": 0}),
        ("http://a", {"retries": -1}),
        ("http://a", {"token": "two\nlines"}),
        ("http://a", {"token": ""}),
    ],
)
def test_invalid_settings(url: str, settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="is invalid"):
        Client(url, **settings)


def test_threads_share_a_client(script: Script) -> None:
    script.steps = [Step(200, {"version": 1}) for _ in range(80)]
    found: list[object] = []
    with Client(script.url) as client:

        def ask() -> None:
            found.extend(client.stats() for _ in range(10))

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == [{"version": 1}] * 80
    assert max(one.connection for one in script.asked) <= 8
