"""`--workers`: processes that predict beside the one that learns; the same answers, the same promises."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.serve.kills import Ledger, final_check, one_life
from tests.serve.running import Client, Server, serving
from tests.serve.test_durability import model_of, teach, wait_until

pytestmark = pytest.mark.slow

RECORD = {"price": 1.5, "city": "R"}


def readers(server: Server) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = server.client().get("/v1/model").json["server"]["readers"]
    return found


def clients(server: Server, count: int = 40) -> list[Client]:
    """Connections enough that each process has some."""
    return [server.client() for _ in range(count)]


def test_all_answer_alike(tmp_path: Path) -> None:
    """Whoever has the connection: after a moment all predict with the model that the owner has."""
    with serving(tmp_path / "state", "--workers", "2") as server:
        assert len(readers(server)) == 2
        for number, client in enumerate(clients(server)):
            teach(client, 2, 2 * number)
        wait_until(lambda: [reader["version"] for reader in readers(server)] == [80, 80])
        answers = {client.post("/v1/predict", RECORD).data for client in clients(server)}
        assert len(answers) == 1
        assert json.loads(answers.pop())["version"] == 80
        for client in clients(server):
            assert client.post("/v1/predict", [RECORD] * 3000).json["version"] == 80
            assert client.post("/v1/predict?explain=true", RECORD).json["contributions"]
            assert client.get("/").headers["content-type"].startswith("text/html")
            assert client.post("/v1/predict", [1]).code == "bad_body"
            assert client.post("/v1/feedback", {"id": "nobody", "label": 1}).code == "unknown_id"
            assert client.get("/v2/models/model").json["versions"] == ["80"]
        wait_until(lambda: 'route="/v1/predict",status="200"} 120' in text_of(server))
        assert 'route="/v1/predict",status="400"} 40' in text_of(server)
        assert server.stop() == 0


def text_of(server: Server) -> str:
    return server.client().get("/metrics").data.decode()


def test_late_labels_and_keys_by_any_connection(tmp_path: Path) -> None:
    with serving(tmp_path / "state", "--workers", "2") as server:
        for number, (first, second, third) in enumerate(zip(*[iter(clients(server, 60))] * 3, strict=True)):
            id = f"n{number}"
            assert first.post("/v1/predict", {"record": RECORD, "id": id}).json["id"] == id
            answer = second.post("/v1/feedback", {"id": id, "label": 2.0})
            assert third.post("/v1/feedback", {"id": id, "label": 2.0}).data == answer.data
        body = {**RECORD, "label": 1.0}
        answers = {client.post("/v1/learn", body, Idempotency_Key="k").data for client in clients(server, 20)}
        assert len(answers) == 1
        assert server.client().get("/v1/model").json["version"] == 21


def test_a_model_that_is_loaded_is_that_of_all(tmp_path: Path) -> None:
    with serving(tmp_path / "a") as server:
        teach(server.client(), 8)
        other = model_of(server)
    with serving(tmp_path / "b", "--workers", "2") as server:
        teach(server.client(), 3)
        for client in clients(server, 5):
            assert client.ask("POST", "/v1/model/load", other, "application/octet-stream").status == 200
            assert {each.post("/v1/predict", RECORD).json["version"] for each in clients(server, 20)} == {8}
            teach(client, 1)


def test_a_reader_that_dies_is_replaced(tmp_path: Path) -> None:
    with serving(tmp_path / "state", "--workers", "2") as server:
        teach(server.client(), 5)
        before = {reader["pid"] for reader in readers(server)}
        os.kill(min(before), signal.SIGKILL)
        wait_until(lambda: len(readers(server)) == 2 and min(before) not in pids(server))
        wait_until(lambda: [reader["version"] for reader in readers(server)] == [5, 5])  # a moment later
        assert {client.post("/v1/predict", RECORD).json["version"] for client in clients(server)} == {5}
        assert any("a reader has ended" in line for line in server.lines)


def pids(server: Server) -> set[int]:
    return {reader["pid"] for reader in readers(server)}


def test_readers_end_with_the_owner(tmp_path: Path) -> None:
    for end in ("kill", "stop"):
        with serving(tmp_path / end, "--workers", "2") as server:
            teach(server.client(), 5)
            known = pids(server)
            getattr(server, end)()
            wait_until(lambda known=known: not any(Path(f"/proc/{pid}").exists() for pid in known))
        with serving(tmp_path / end) as server:
            assert server.client().get("/v1/model").json["version"] == 5


def test_the_live_figures_through_a_reader(tmp_path: Path) -> None:
    with serving(tmp_path / "state", "--workers", "2") as server:
        for _ in range(12):
            with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
                connection.sendall(b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
                got = b""
                while b"event: stats" not in got or not got.endswith(b"\n\n\r\n"):
                    got += connection.recv(1 << 16)
        assert server.client().get("/healthz").status == 200
        assert server.stop() == 0


def test_one_server_for_an_address(tmp_path: Path) -> None:
    """Sockets of readers share an address, but not with another server."""
    skn = os.path.join(os.path.dirname(sys.executable), "skn")
    with serving(tmp_path / "a", "--workers", "1") as server:
        command = [skn, "serve", "--workers", "1", "--port", str(server.port), "--state", str(tmp_path / "b")]
        other = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert other.returncode == 1
    assert "Address already in use" in other.stderr.splitlines()[-1]


def test_kills_with_readers(tmp_path: Path) -> None:
    ledger = Ledger()
    for seed in range(3):
        one_life(tmp_path / "state", ledger, seed, "--workers", "2")
    final_check(tmp_path / "state", ledger)
    assert ledger.learned
    assert ledger.labelled


def test_tokens_are_the_same_everywhere(tmp_path: Path) -> None:
    (tmp_path / "write").write_text("w" * 20 + "\n")
    (tmp_path / "read").write_text("r" * 20 + "\n")
    options = ("--token-file", str(tmp_path / "write"), "--read-token-file", str(tmp_path / "read"))
    with serving(tmp_path / "state", "--workers", "2", *options) as server:
        lesson = {**RECORD, "label": 1.0}
        for _ in range(12):
            assert server.client("w" * 20).post("/v1/learn", lesson).status == 200
            assert server.client("r" * 20).post("/v1/predict", RECORD).status == 200
            assert server.client("r" * 20).post("/v1/learn", lesson).code == "read_only"
            assert server.client("r" * 20).post("/v1/predict?id=x", RECORD).code == "read_only"
            assert server.client().post("/v1/predict", RECORD).code == "unauthorized"
