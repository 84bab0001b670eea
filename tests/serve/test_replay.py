"""What a server has learned can be learned again, by any learner, and exported."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sketchnewton import AdaGrad, Model
from sketchnewton.cli.main import main
from tests.serve.running import serving

ROWS = [{"price": number / 3, "city": "ROL"[number % 3], "label": float(number % 5)} for number in range(30)]


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bytes]:
    state = tmp_path_factory.mktemp("replay") / "state"
    with serving(state) as server:
        client = server.client()
        for row in ROWS[:10]:
            client.post("/v1/learn", row)
        client.post("/v1/learn", ROWS[10:20])
        records = [{name: value for name, value in row.items() if name != "label"} for row in ROWS[20:]]
        client.post("/v1/predict", {"records": records, "ids": list(range(10))})
        labels = [{"id": n, "label": row["label"], "weight": 2.0} for n, row in enumerate(ROWS[20:])]
        client.post("/v1/feedback", labels)
        data = client.get("/v1/model/file").data
        server.kill()
    return state, data


def test_the_same_model(past: tuple[Path, bytes], tmp_path: Path) -> None:
    state, data = past
    for log in (state, state / "log.sqlite"):
        assert main(["replay", str(log), "--model", str(tmp_path / "m.skn"), "--quiet"]) == 0
        assert (tmp_path / "m.skn").read_bytes() == data


def test_another_learner(past: tuple[Path, bytes], capsys: pytest.CaptureFixture[str]) -> None:
    state, _ = past
    assert main(["replay", str(state), "--learner", "adagrad", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    model = Model(AdaGrad(intercept=True))
    score = model.new_score()
    for steps in (model.learning(ROWS[:20]), model.learning(ROWS[20:], weights=[2.0] * 10)):
        for batch, scores in steps:
            score.update(scores, batch.labels, batch.weights)
    assert found["learner"] == "AdaGrad"
    assert (found["rows"], found["loss"]) == (30, score.mean_loss)


def test_export(past: tuple[Path, bytes], tmp_path: Path) -> None:
    state, _ = past
    out = tmp_path / "seen.jsonl"
    assert main(["convert", str(state), str(out), "--quiet"]) == 0
    found = [json.loads(line) for line in out.read_text().splitlines()]
    assert found == [*ROWS[:20], *({**row, "_weight": 2.0} for row in ROWS[20:])]
    assert main(["convert", str(state), str(tmp_path / "seen.vw"), "--quiet"]) == 2


def test_what_is_no_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.sqlite").write_text("hello")
    assert main(["replay", str(tmp_path / "x.sqlite")]) == 1
    assert "neither the directory of a server nor its log" in capsys.readouterr().err
