"""`kill -9` under load, and what must be true after it.

Every record carries a number of its own, so the log tells how often each was learned. The model is compared with
one that learned the log's events by `Model.learn`, read from SQLite here and not by the server's own code.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import random
import sqlite3
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sketchnewton.model import Model, open_model
from tests.serve.running import Client, Server

OPTIONS = ("--loss", "logistic", "--classes", "no,yes", "--snapshot-events", "40")


@dataclass
class Ledger:
    """What the server has acknowledged."""

    learned: set[int] = field(default_factory=set)
    waiting: dict[str, int] = field(default_factory=dict)
    labelled: dict[str, tuple[int, dict[str, Any]]] = field(default_factory=dict)
    repeated: int = 0
    numbers: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def number(self) -> int:
        with self.lock:
            self.numbers += 1
            return self.numbers


def record(number: int) -> dict[str, Any]:
    draw = random.Random(number)
    return {"n": number, "city": draw.choice(["Rome", "Oslo", "Lima"]), "x": draw.gauss(0, 1)}


def label(number: int) -> str:
    return "yes" if random.Random(-number).random() < 0.4 else "no"


def load(client: Client, ledger: Ledger, seed: int, stop: threading.Event) -> None:
    """Learn, remember, label and repeat, until the server is gone."""
    draw = random.Random(seed)
    with contextlib.suppress(OSError, http.client.HTTPException):
        while not stop.is_set():
            choice = draw.random()
            if choice < 0.4:
                number = ledger.number()
                answer = client.post("/v1/learn", {**record(number), "label": label(number)})
                assert answer.status == 200, answer.data
                ledger.learned.add(number)
            elif choice < 0.7:
                number = ledger.number()
                answer = client.post("/v1/predict", {"record": record(number), "id": f"id-{number}"})
                assert answer.status == 200, answer.data
                ledger.waiting[f"id-{number}"] = number
            else:
                give_label(client, ledger, draw)
    client.close()


def give_label(client: Client, ledger: Ledger, draw: random.Random) -> None:
    """A label that is new, or one that was given before."""
    known = draw.random() < 0.3 and bool(ledger.labelled)
    with ledger.lock:
        pool = list(ledger.labelled if known else ledger.waiting)
    if not pool:
        return
    id = draw.choice(pool)
    number = int(id.removeprefix("id-"))
    answer = client.post("/v1/feedback", {"id": id, "label": label(number)})
    assert answer.status == 200, answer.data
    with ledger.lock:
        ledger.waiting.pop(id, None)
        before = ledger.labelled.setdefault(id, (number, answer.json))
        ledger.repeated += known
        assert before[1] == answer.json, "a repeated label was answered differently"


def one_life(state: Path, ledger: Ledger, seed: int, *options: str) -> None:
    """Start the server, check what it knows, load it, kill it."""
    server = Server(state, *OPTIONS, *options)
    try:
        check(server, ledger)
        stop = threading.Event()
        failures: list[BaseException] = []

        def work(client: Client, part: int) -> None:
            try:
                load(client, ledger, 1000 * seed + part, stop)
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=(server.client(), part)) for part in range(4)]
        for thread in threads:
            thread.start()
        time.sleep(random.Random(seed).uniform(0.2, 1.2))
        server.kill()
        stop.set()
        for thread in threads:
            thread.join(timeout=60)
        if failures:
            raise failures[0]
    finally:
        if server.process.returncode is None:
            server.kill()


def check(server: Server, ledger: Ledger) -> None:
    """Everything acknowledged was learned exactly once, and the model is that of the log, byte for byte."""
    with contextlib.closing(sqlite3.connect(server.state / "log.sqlite")) as log:
        rows = log.execute("SELECT seq, kind, body, label, weight FROM events ORDER BY seq").fetchall()
        known = dict(log.execute("SELECT id, state FROM ids").fetchall())
    assert [row[0] for row in rows] == list(range(1, len(rows) + 1))
    numbers = [json.loads(body)["n"] for _, _, body, _, _ in rows]
    assert len(numbers) == len(set(numbers)), "a record was learned twice"
    assert ledger.learned <= set(numbers), "an acknowledged record was not learned"
    assert {number for number, _ in ledger.labelled.values()} <= set(numbers), (
        "an acknowledged label was lost"
    )
    assert set(ledger.waiting) <= set(known), "an id that was promised is unknown"
    model = open_model(server.state / "origin.skn")
    assert isinstance(model, Model)
    for _, kind, body, label_text, weight in rows:
        labels = [json.loads(label_text)] if kind == "label" else None
        model.learn(json.loads(body), labels, None if weight is None else [weight])
    answer = server.client().get("/v1/model/file")
    assert answer.status == 200
    assert answer.data == model.to_bytes(), "the model is not that of the log"


def final_check(state: Path, ledger: Ledger) -> int:
    """The last start; returns the number of events."""
    server = Server(state, *OPTIONS)
    try:
        check(server, ledger)
        return int(server.client().get("/v1/model").json["server"]["events"])
    finally:
        server.kill()
