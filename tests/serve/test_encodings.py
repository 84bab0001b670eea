"""Compressed bodies are refused before they come, never read as something else; health as protocols want it."""

from __future__ import annotations

import gzip
import json
import socket
import zlib
from collections.abc import Iterator

import pytest

from tests.serve.running import JSON, Server, serving

BODY = json.dumps({"price": 1.0, "label": 1}).encode()


@pytest.fixture(scope="module", params=[(), ("--workers", "1")], ids=["alone", "with a reader"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("encodings") / "state", *request.param) as server:
        assert server.client().post("/v1/learn", {"price": 0.5, "label": 0}).status == 200
        yield server


@pytest.mark.parametrize("path", ["/v1/learn", "/v1/predict", "/v1/feedback", "/v1/model/load"])
@pytest.mark.parametrize("coding", ["gzip", "GZIP", "deflate", "br", "zstd", "identity, gzip"])
def test_compressed_bodies_are_refused(server: Server, path: str, coding: str) -> None:
    client = server.client()
    before = client.get("/v1/model/file").data
    for data in (
        gzip.compress(BODY),
        zlib.compress(BODY),
        gzip.compress(bytes(10 << 20)),
        b"1 | plain\n",
        b"",
    ):
        answer = client.ask("POST", path, data, "text/vw", {"Content-Encoding": coding})
        assert (answer.status, answer.code) == (415, "content_encoding")
        assert answer.headers["accept-encoding"] == "identity"
    assert client.get("/v1/model/file").data == before


@pytest.mark.parametrize("coding", ["identity", "Identity", ""])
def test_no_compression_may_be_said(server: Server, coding: str) -> None:
    headers = {"Content-Encoding": coding}
    assert server.client().ask("POST", "/v1/predict", BODY, JSON, headers).status == 200


def raw(server: Server, *headers: str, body: bytes) -> int:
    """The status of a request to predict with these very headers."""
    lines = ["POST /v1/predict HTTP/1.1", "Host: localhost", "Connection: close", *headers]
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode() + body)
        return int(connection.recv(1000).split()[1])


def test_headers_that_come_twice_are_one_list(server: Server) -> None:
    length = f"Content-Length: {len(BODY)}"
    assert raw(server, length, body=BODY) == 200
    for first, second in (("gzip", "identity"), ("identity", "gzip")):
        twice = f"Content-Encoding: {first}", f"Content-Encoding: {second}"
        assert raw(server, length, *twice, body=BODY) == 415


def test_transfer_encodings(server: Server) -> None:
    body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY)
    assert raw(server, "Transfer-Encoding: chunked", body=body) == 200
    assert raw(server, "Transfer-Encoding: gzip, chunked", body=body) == 501


def test_health_in_the_words_of_the_open_inference_protocol(server: Server) -> None:
    client = server.client()
    assert client.get("/v2/health/live").json == {"live": True}
    assert client.get("/v2/health/ready").json == {"ready": True}
    assert client.get("/v2/models/model/ready").json == {"name": "model", "ready": True}
    assert client.get("/healthz").json == {"status": "ok"}
    assert client.get("/readyz").json == {"status": "ready", "version": 1}
    for path in ("/healthz", "/readyz", "/v2/health/live", "/v2/health/ready", "/v2/models/model/ready"):
        answer = client.ask("HEAD", path)
        assert (answer.status, answer.data) == (200, b"")
