"""Labels that come later: once for each id, answered alike, forgotten or assumed in time."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sketchnewton import Model
from tests.serve.running import Answer, Server, serving


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("late") / "state") as server:
        yield server


def test_a_label_is_learned_once(server: Server) -> None:
    client = server.client()
    predicted = client.post("/v1/predict?id=one", {"price": 2.0}).json
    assert predicted["id"] == "one"
    rows = predicted["version"]
    first = client.post("/v1/feedback", {"id": "one", "label": 3.0, "weight": 2.0})
    assert first.json == {
        "id": "one",
        "prediction": predicted["prediction"],
        "learned": True,
        "version": rows + 1,
    }
    assert client.post("/v1/feedback", {"id": "one", "label": 5.0}).json == first.json
    assert client.get("/v1/model").json["version"] == rows + 1
    assert client.post("/v1/feedback", {"id": "nobody", "label": 5.0}).status == 404
    assert client.post("/v1/predict?id=one", {"price": 2.0}).code == "id_in_use"


def test_late_labels_learn_what_learn_would(tmp_path: Path) -> None:
    records = [{"price": float(i), "city": "RO"[i % 2]} for i in range(6)]
    with serving(tmp_path / "state") as server:
        client = server.client()
        body = {"records": records, "ids": [f"r{i}" for i in range(6)]}
        assert [one["id"] for one in client.post("/v1/predict", body).json["predictions"]] == body["ids"]
        labels = [{"id": f"r{i}", "label": i / 2} for i in (3, 0, 5)]
        answer = client.post("/v1/feedback", [*labels, {"id": "nobody", "label": 1}, labels[0]])
        results = answer.json["results"]
        assert [one.get("learned") for one in results] == [True, True, True, None, True]
        assert results[3]["error"]["code"] == "unknown_id"
        assert results[4] == results[0]
        data = client.get("/v1/model/file").data
    model = Model()
    model.learner = type(model.learner)(intercept=True)
    for i in (3, 0, 5):
        model.learn(records[i], [i / 2])
    assert data == model.to_bytes()


def test_generated_ids_and_other_formats(server: Server) -> None:
    client = server.client()
    found = client.post("/v1/predict?remember=true", [{"price": 1}, {"price": 2}]).json["predictions"]
    assert len({one["id"] for one in found}) == 2
    vw = client.ask("POST", "/v1/predict?remember=true", b"|a b:2\n|a c:1\n", "text/vw").json["predictions"]
    for one in (*found, *vw):
        assert client.post("/v1/feedback", {"id": one["id"], "label": 1.0}).status == 200
    assert "id" not in client.post("/v1/predict", {"price": 1}).json


def test_the_same_label_many_times_at_once(server: Server) -> None:
    client = server.client()
    rows = client.post("/v1/predict?id=crowd", {"price": 2.0}).json["version"]
    answers: list[Answer] = []

    def ask(own: int) -> None:
        answers.append(server.client().post("/v1/feedback", {"id": "crowd", "label": float(own)}))

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({answer.data for answer in answers}) == 1
    assert client.get("/v1/model").json["version"] == rows + 1


def test_idempotency_keys(server: Server) -> None:
    client = server.client()
    first = client.post("/v1/learn", {"price": 1.0, "label": 2.0}, Idempotency_Key="k1")
    again = client.post("/v1/learn", {"price": 1.0, "label": 2.0}, Idempotency_Key="k1")
    assert again.data == first.data
    assert again.headers["idempotency-replayed"] == "true"
    assert client.post("/v1/learn", {"price": 1.5, "label": 2.0}, Idempotency_Key="k1").code == "key_reused"
    assert client.get("/v1/model").json["version"] == first.json["version"]
    refused = client.post("/v1/learn", {"price": "x", "label": 2.0}, Idempotency_Key="k2")
    assert refused.code == "bad_records"
    assert client.post("/v1/learn", {"price": 1, "label": 2.0}, Idempotency_Key="k2").status == 200


@pytest.mark.slow
def test_labels_that_never_come(tmp_path: Path) -> None:
    with serving(tmp_path / "a", "--feedback-ttl", "0.5") as server:
        client = server.client()
        client.post("/v1/predict?id=gone", {"price": 2.0})
        assert client.get("/v1/model").json["server"]["pending"] == 1
        wait_for(lambda: client.get("/v1/model").json["server"]["pending"] == 0)
        assert client.post("/v1/feedback", {"id": "gone", "label": 1.0}).status == 410
        assert client.get("/v1/model").json["version"] == 0
    with serving(tmp_path / "b", "--feedback-ttl", "0.5", "--assume-label", "0") as server:
        client = server.client()
        client.post("/v1/predict?id=gone", {"price": 2.0})
        wait_for(lambda: client.get("/v1/model").json["version"] == 1)
        assert client.post("/v1/feedback", {"id": "gone", "label": 1.0}).status == 410
        data = client.get("/v1/model/file").data
    model = Model()
    model.learn({"price": 2.0}, [0.0])
    assert data == model.to_bytes()


def wait_for(happened: object, seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not happened():  # type: ignore[operator]
        assert time.monotonic() < end
        time.sleep(0.1)


def test_a_label_that_is_no_class_cannot_be_assumed(tmp_path: Path) -> None:
    server = Server(tmp_path / "s", "--classes", "no,yes", "--assume-label", "maybe", expect_start=False)
    assert server.process.wait(timeout=60) != 0
    server._ended()
    assert (
        server.lines[-1]
        == "skn: --assume-label 'maybe' is not a label of this model: the classes are no, yes"
    )
