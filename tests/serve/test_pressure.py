"""More than the disk can take: refused at once, never half done; an end that finishes what was asked."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import socket
import sqlite3
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from sketchnewton.serve.errors import ApiError
from sketchnewton.serve.http import Connections, Limits
from sketchnewton.serve.messages import Request, Response
from tests.serve.running import Answer, Server, serving


def storm(server: Server, clients: int, each: int) -> list[Answer]:
    """Many clients that learn at once; what came back."""
    answers: list[Answer] = []

    def work(part: int) -> None:
        client = server.client()
        with contextlib.suppress(OSError, http.client.HTTPException):
            for number in range(each):
                answers.append(client.post("/v1/learn", {"n": part * each + number, "label": 1.0}))

    threads = [threading.Thread(target=work, args=(part,)) for part in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


@pytest.mark.slow
def test_a_full_queue(tmp_path: Path) -> None:
    with serving(tmp_path / "state", "--queue", "1") as server:
        answers = storm(server, 12, 10)
        refused = [answer for answer in answers if answer.status != 200]
        assert refused
        assert {(answer.status, answer.code, answer.headers["retry-after"]) for answer in refused} == {
            (429, "busy", "1")
        }
        assert server.client().get("/v1/model").json["version"] == len(answers) - len(refused)


@pytest.mark.slow
def test_the_end_finishes_what_was_asked(tmp_path: Path) -> None:
    with serving(tmp_path / "state") as server:
        answers: list[Answer] = []
        thread = threading.Thread(target=lambda: answers.extend(storm(server, 8, 500)))
        thread.start()
        while server.client().get("/v1/model").json["version"] < 20:
            pass
        assert server.stop() == 0
        thread.join()
    with contextlib.closing(sqlite3.connect(tmp_path / "state" / "log.sqlite")) as log:
        rows = log.execute("SELECT body FROM events").fetchall()
    assert len({json.loads(body)["n"] for (body,) in rows}) == len(rows)
    assert all(answer.status == 200 for answer in answers)
    assert len(answers) <= len(rows)  # an answer may have been on its way


@pytest.mark.slow
def test_a_long_body_does_not_hold_up_others(tmp_path: Path) -> None:
    """5,000 records are learned in steps; predictions come between, and see the model grow."""
    with serving(tmp_path / "state") as server:
        client = server.client()
        client.post("/v1/learn", {"n": 1.0, "city": "R", "label": 1.0})
        body = [{"n": number / 7, "city": "ROL"[number % 3], "label": number % 4} for number in range(5000)]
        whole: list[Answer] = []
        thread = threading.Thread(target=lambda: whole.append(server.client().post("/v1/learn", body)))
        thread.start()
        versions = []
        while thread.is_alive():
            versions.append(client.post("/v1/predict", {"n": 1.0, "city": "R"}).json["version"])
        assert whole[0].json["version"] == 5001
        assert versions[0] < 5001
        assert versions == sorted(versions)


@pytest.mark.slow
def test_many_labels_do_not_hold_up_predictions(tmp_path: Path) -> None:
    """Predictions are made between labels of one request: they see versions between its first and its last."""
    rows = 5000
    with serving(tmp_path / "state") as server:
        client, other = server.client(), server.client()
        ids = [f"r{number}" for number in range(rows)]
        assert client.post("/v1/learn", {"n": 1.0, "label": 1.0}).status == 200
        body = {"records": [{"n": float(number)} for number in range(rows)], "ids": ids}
        assert client.post("/v1/predict", body).status == 200
        labels = [{"id": id, "label": 1.0} for id in ids]
        answers: list[Answer] = []
        thread = threading.Thread(target=lambda: answers.append(client.post("/v1/feedback", labels)))
        thread.start()
        versions = set()
        while not answers:
            versions.add(other.post("/v1/predict", {"n": 1.0}).json["version"])
        thread.join()
        assert answers[0].json["version"] == 1 + rows
        assert any(1 < version < 1 + rows for version in versions)


@pytest.mark.slow
def test_another_process_holds_the_log(tmp_path: Path) -> None:
    """Somebody's own look at the log, with a transaction: labels wait for its end, predictions do not."""
    with serving(tmp_path / "state") as server:
        client, other = server.client(), server.client()
        assert client.post("/v1/learn", {"n": 1.0, "label": 1.0}).status == 200
        answers: list[Answer] = []
        with contextlib.closing(
            sqlite3.connect(tmp_path / "state" / "log.sqlite", isolation_level=None)
        ) as log:
            log.execute("BEGIN IMMEDIATE")
            thread = threading.Thread(
                target=lambda: answers.append(client.post("/v1/learn", {"n": 2.0, "label": 1.0}))
            )
            thread.start()
            end = time.monotonic() + 0.5
            while time.monotonic() < end:
                assert other.post("/v1/predict", {"n": 1.0}).status == 200
            assert not answers
            log.execute("ROLLBACK")
        thread.join()
        assert [answer.status for answer in answers] == [200]
        assert answers[0].json["version"] == 2


@pytest.mark.slow
def test_nothing_piles_up_for_who_does_not_read(tmp_path: Path) -> None:
    def asked(method: bytes, path: bytes, body: bytes) -> bytes:
        head = method + b" " + path + b" HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        return head + b"Content-Length: %d\r\n\r\n" % len(body) + body

    pairs = 2000
    with serving(tmp_path / "state") as server:
        other = server.client()
        with socket.create_connection(("127.0.0.1", server.port)) as deaf:
            deaf.setblocking(False)
            left = (
                asked(b"POST", b"/v1/learn", b'{"n": 1, "label": 1}') + asked(b"GET", b"/uplot.js", b"")
            ) * pairs
            version, still = -1, 0
            while still < 20:  # a second without a step
                with contextlib.suppress(BlockingIOError):
                    left = left[deaf.send(left) :]
                time.sleep(0.05)
                before, version = version, other.get("/v1/model").json["version"]
                still = still + 1 if version == before else 0
        assert 0 < version < pairs


class _Large:
    """Answers with ten megabytes."""

    def admit(self, request: Request) -> None:
        pass

    def handle(self, request: Request) -> Response:
        return Response(b"a" * 10_000_000)

    def finished(self, request: Request, response: Response) -> None:
        pass

    def broken(self, error: Exception) -> ApiError:
        raise error


async def _asked_of_large(client: Callable[[socket.socket, Connections], Awaitable[None]]) -> None:
    loop = asyncio.get_running_loop()
    connections = Connections(_Large(), Limits(idle_seconds=0.2, header_seconds=0.2), loop)
    server = await loop.create_server(connections, "127.0.0.1", 0)
    watching = loop.create_task(connections.watch())
    with socket.create_connection(server.sockets[0].getsockname()) as asking:
        asking.setblocking(False)
        await loop.sock_sendall(asking, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        async with asyncio.timeout(30):
            await client(asking, connections)
    watching.cancel()
    server.close()


def test_who_does_not_read_is_ended() -> None:
    async def deaf(_: socket.socket, connections: Connections) -> None:
        while not connections.open:
            await asyncio.sleep(0.01)
        while connections.open:
            await asyncio.sleep(0.01)

    asyncio.run(_asked_of_large(deaf))


def test_who_reads_slowly_is_not_ended() -> None:
    async def slow(asking: socket.socket, _: Connections) -> None:
        got = 0
        while got < 10_000_000:
            block = await asyncio.get_running_loop().sock_recv(asking, 200_000)
            assert block, f"ended after {got} bytes"
            got += len(block)
            await asyncio.sleep(0.02)

    asyncio.run(_asked_of_large(slow))
