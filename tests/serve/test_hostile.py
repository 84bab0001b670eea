"""Hostile clients: always a 4xx in one shape, never a traceback, never a changed model."""

from __future__ import annotations

import json
import random
import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.serve.running import JSON, Client, Server, serving
from tests.serve.test_answers import bodies

PATHS = ("/v1/learn", "/v1/predict", "/v1/feedback")
TYPES = (
    JSON,
    "application/x-ndjson",
    "text/csv",
    "text/tab-separated-values",
    "text/vw",
    "text/svmlight",
    "application/vnd.apache.arrow.stream",
)
NASTY: list[bytes] = [
    b"", b" ", b"\0", b"{", b"}", b"[]", b"[[]]", b"{}x", b"null", b"true", b"1e999", b'"text"', b"NaN",
    b'{"a": 1, "a": 2}', b'{"records": []}', b'{"records": [1]}', b'{"records": [{}], "labels": []}',
    b'{"records": [{}], "labels": 3}', b'{"records": [{"a": 1}], "labels": [{"x": 1}]}', b'[{"a": 1}, 2]',
    b'{"record": {"a": 1}, "labels": [1]}', b'{"record": {"a": 1}, "weight": -1, "label": 1}',
    b'{"record": {"a": 1}, "weight": "x", "label": 1}', b'{"record": {"a": 1}, "label": null}',
    b'{"record": {"a": 1}, "label": [1]}', b'{"record": {"a": 1}, "label": 1e400}',
    b'{"a": {"b": {"c": 1}}, "label": 1}',
    b'{"a": [[1]], "label": 1}', b'{"price": "abc", "label": 1}', b'{"price": 1e400, "label": 1}',
    b'{"label": "maybe", "price": 1}', b'{"label": 1' + b"0" * 5000 + b"}",
    b'{"a": ' + b"1" * 5000 + b', "label": 1}',
    b"[" * 100_000, b'{"a":' * 50_000, b"\xff\xfe\xff", b"\x1f\x8b\x08\0" + b"\0" * 50, b"PK\x03\x04" + b"\0" * 50,
    b"ARROW1\0\0" + b"\xff" * 40, b"\xff\xff\xff\xff\xff\xff\xff\x7f", b"\xff\xff\xff\xff\x10\0\0\0" + b"A" * 64,
    b"PAR1" + b"\0" * 32 + b"PAR1", b"a,b\n1\n", b'a,"b\n1,2\n', b"label,price\nx,1\n", b"label,price\n1,abc\n",
    b"1 2 3 4 |a b", b"1 |a b:c", b"x |a b:1", b"1 -1 |a b", b"1 |a b:1e99999", b"1 99999999999999999999:1",
    b"1 5:abc", b"1 -5:1", b"no label here", b"1 | \xff:nan", b'{"id": "x"}', b'{"id": [], "label": 1}',
    b'{"id": "nobody", "label": 1}', b'[{"id": "nobody"}]', b'{"id": "' + b"i" * 300 + b'", "label": 1}',
]  # fmt: skip


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("hostile")
    options = (
        "--max-body",
        "1000000",
        "--max-rows",
        "500",
        "--max-features",
        "1000",
        "--header-seconds",
        "1",
    )
    with serving(folder / "state", *options, "--body-seconds", "1") as server:
        client = server.client()
        for number in range(20):
            answer = client.post(
                "/v1/learn", {"label": number % 3, "price": number / 7, "user": f"u{number % 4}"}
            )
            assert answer.status == 200
        yield server


def model_of(client: Client) -> bytes:
    answer = client.get("/v1/model/file")
    assert answer.status == 200
    return answer.data


def malformed(count: int) -> Iterator[tuple[str, str, bytes]]:
    """Path, content type and body: chosen by hand, then good bodies with some bytes changed."""
    draw = random.Random(5)
    for data in NASTY:
        for content_type in TYPES:
            for path in PATHS:
                yield path, content_type, data
    good = [data for data, _ in bodies().values()]
    while True:
        data = bytearray(draw.choice(good))
        for _ in range(draw.randint(1, 8)):
            data[draw.randrange(len(data))] = draw.randrange(256)
        cut = draw.randrange(1, len(data)) if draw.random() < 0.5 else len(data)
        yield draw.choice(PATHS), draw.choice(TYPES), bytes(data[:cut])
        if (count := count - 1) <= 0:
            return


@pytest.mark.slow
def test_malformed_bodies(server: Server) -> None:
    client = server.client()
    asked = accepted = 0
    for path, content_type, body in malformed(300):
        before = model_of(client) if asked % 25 == 0 else None
        answer = client.ask("POST", path, body, content_type)
        asked += 1
        if answer.status == 200:  # a mutant may be a good body of another kind
            accepted += 1
        else:
            assert 400 <= answer.status < 500, (path, content_type, body[:100], answer, server.lines)
            assert answer.code
            if before is not None:
                assert model_of(client) == before
    assert asked >= 1000
    assert asked - accepted >= 1000
    assert not any("Traceback" in line or "internal error" in line for line in server.lines), server.lines


def test_a_missing_label_is_told_in_words_of_requests(server: Server) -> None:
    """Not in those of Python."""
    answer = server.client().post("/v1/learn", {"record": {"price": 1}})
    assert (answer.status, answer.json["error"]["message"]) == (400, "row 1 has no label, but needs one")


def test_what_is_refused_does_not_change_the_model(server: Server) -> None:
    client = server.client()
    before = model_of(client)
    many = [{"price": 1.0, "label": 1, "new": "x"}] * 3
    for body in (
        [*many, {"price": "abc", "label": 1}],
        [*many, {"price": 1, "label": "x"}],
        {"records": [{"price": 1.0, "new": 5}], "labels": ["text"]},
        [{"price": 1.0, "label": 1}] * 501,
        {"bag": [f"w{number}" for number in range(2000)], "new": 1, "label": 1},
    ):
        answer = client.post("/v1/learn", body)
        assert answer.status in (400, 413), answer.data
        assert answer.code
        assert model_of(client) == before


@pytest.mark.parametrize(
    "path",
    ["/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/static/../api.py", "/v1/model/../file", "//etc/passwd",
     "/v1/model/file/../../..", "/index.html%00.js", "/app.js/", "/v2/models/../infer", "/\\..\\..",
     "/" + "a" * 5000],
)  # fmt: skip
def test_path_tricks(server: Server, path: str) -> None:
    for method in ("GET", "POST", "PUT", "DELETE"):
        answer = server.client().ask(method, path)
        assert answer.status == 404
        assert answer.code == "not_found"


def test_methods_and_queries(server: Server) -> None:
    client = server.client()
    assert client.ask("DELETE", "/v1/model").code == "method_not_allowed"
    assert client.ask("GET", "/v1/learn").code == "method_not_allowed"
    assert client.post("/v1/predict?explain=perhaps", {"price": 1}).code == "bad_query"
    assert client.post("/v1/predict?id=", {"price": 1}).code == "bad_id"
    assert client.ask("POST", "/v1/predict", b"{}", "image/png").code == "content_type"
    assert client.ask("POST", "/v1/predict", b"{}", "application/json; charset=utf-16").code == "content_type"
    assert client.post("/v1/learn", {"price": 1, "label": 1}, Idempotency_Key="a b").code == "bad_key"
    assert (
        client.ask("POST", "/v1/model/load", b"not a model", "application/octet-stream").code == "bad_model"
    )
    assert client.ask("GET", "/v1/model", headers={"Origin": "https://evil.example"}).code == "foreign_origin"
    assert client.ask("GET", "/v1/model", headers={"Host": "evil.example"}).code == "foreign_host"


def raw(server: Server, *parts: bytes, pause: float = 0.0) -> bytes:
    """What comes back for bytes that are sent as they are."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
        for part in parts:
            try:
                connection.sendall(part)
            except OSError:
                break
            time.sleep(pause)
        answer = b""
        try:
            while more := connection.recv(1 << 16):
                answer += more
        except OSError:
            pass
        return answer


def status_of(answer: bytes) -> int:
    head, _, body = answer.partition(b"\r\n\r\n")
    assert set(json.loads(body)) == {"error"}, answer
    return int(head.split(b" ")[1])


HEAD = b"POST /v1/learn HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GET / HTTP/9.9\r\n\r\n", 400),
        (b"nonsense\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03", 400),
        (HEAD + b"Content-Length: -5\r\n\r\n", 400),
        (HEAD + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n", 400),
        (HEAD + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
        (HEAD + b"Content-Length: 99999999999\r\n\r\n", 413),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + (b"fffff\r\n" + b"a" * 0xFFFFF + b"\r\n") * 2, 413),
        (HEAD + b"X: " + b"a" * 100_000 + b"\r\n\r\n", 431),
        (HEAD + b"".join(b"X%d: 1\r\n" % i for i in range(200)) + b"\r\n", 431),
        (b"GET /" + b"a" * 100_000, 431),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n", 400),
    ],
)
def test_malformed_http(server: Server, sent: bytes, status: int) -> None:
    assert status_of(raw(server, sent)) == status


def test_headers_behind_a_body_are_ignored(server: Server) -> None:
    body = b'{"label": 1, "price": 1}'
    head = HEAD + b"Content-Type: application/json\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
    sent = head + b"%x\r\n%s\r\n0\r\nIdempotency-Key: once\r\n\r\n" % (len(body), body)
    answers = [raw(server, sent) for _ in range(2)]
    assert all(answer.startswith(b"HTTP/1.1 200 ") for answer in answers)
    assert not any(b"Idempotency-Replayed" in answer for answer in answers)


def test_slow_clients(server: Server) -> None:
    assert status_of(raw(server, b"POST /v1/le", b"arn HT", pause=0.2)) == 408
    assert status_of(raw(server, HEAD + b"Content-Length: 100\r\n\r\n{", pause=0.2)) == 408
    assert server.client().get("/healthz").status == 200


def test_requests_in_one_piece_are_answered_in_order(server: Server) -> None:
    parts = []
    for number in range(30):
        path, body = [("/v1/learn", {"label": 1, "price": number}), ("/v1/predict", {"price": number})][
            number % 2
        ]
        data = json.dumps(body).encode()
        close = b"Connection: close\r\n" if number == 29 else b""
        head = (
            b"POST " + path.encode() + b" HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        )
        parts.append(head + close + b"Content-Length: %d\r\n\r\n" % len(data) + data)
    answer = raw(server, b"".join(parts))
    assert answer.count(b"HTTP/1.1 200") == 30
    versions = [int(found) for found in re.findall(rb'"version": (\d+)', answer)]
    assert len(versions) == 30
    assert versions == sorted(versions)


@pytest.mark.slow
def test_work_is_bounded_by_the_size_of_a_request(tmp_path: Path) -> None:
    """A duplicate name at the end of many, an explanation of many features, many query fields."""
    with serving(tmp_path / "state") as server:
        ask_for_much(server.client())


def ask_for_much(client: Client) -> None:
    names = "".join(f'"f{i}":1,' for i in range(30_000))
    start = time.monotonic()
    twice = client.ask("POST", "/v1/predict", f'{{{names}"f29999":1}}'.encode(), "application/json")
    assert (twice.status, twice.code) == (400, "bad_json")
    assert "f29999" in twice.json["error"]["message"]
    assert client.post("/v1/predict?explain=true", {f"f{i}": 1.0 for i in range(20_000)}).status == 200
    assert client.post("/v1/predict?" + "&".join(f"q{i}=1" for i in range(30)), {"a": 1}).code == "bad_query"
    # Quadratic work took minutes.
    assert time.monotonic() - start < 60
