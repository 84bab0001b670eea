"""More than the disk can take: refused at once, never half done; an end that finishes what was asked."""

from __future__ import annotations

import contextlib
import http.client
import json
import sqlite3
import threading
from pathlib import Path

import pytest

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
