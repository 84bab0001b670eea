"""The same record through the server, Python and the command line: the same answer."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sketchnewton import Model, NewtonBank
from sketchnewton.cli.main import main
from sketchnewton.learners import OneVsAll
from sketchnewton.model import Classes, Signs
from tests.serve.running import JSON, Client, serving

RECORDS: list[dict[str, Any]] = [
    {"user": "anna", "price": 3.5, "vip": True},
    {"user": "bob", "price": 0.0, "vip": False},
    {"user": "żółw", "price": -1e-3, "vip": True},
    {"user": "anna", "price": 12, "vip": None},
]
LABELS = ["ham", "spam", "ham", "spam"]
VW = "|u anna price:3.5\n|u bob |v x:2\n"


def trained(tmp_path: Path, target: str) -> Path:
    model = {
        "numbers": lambda: Model(NewtonBank()),
        "two": lambda: Model(NewtonBank(loss="logistic"), target=Signs(names=["ham", "spam"])),
        "three": lambda: Model(
            OneVsAll("NewtonBank", 3, {"loss": "logistic"}), target=Classes(names=["eggs", "ham", "spam"])
        ),
    }[target]()
    labels: list[Any] = [1.0, -2.0, 0.5, 3.0] if target == "numbers" else LABELS
    for _ in range(5):
        model.learn(RECORDS, labels)
    path = tmp_path / "m.skn"
    model.save(path)
    return path


@pytest.fixture(scope="module", params=["numbers", "two", "three"])
def served(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Path, Client]]:
    folder = tmp_path_factory.mktemp("served")
    path = trained(folder, request.param)
    with serving(folder / "state", str(path)) as server:
        yield path, server.client()


def bodies() -> dict[str, tuple[bytes, str]]:
    import pyarrow as pa

    rows = ["user,price,vip"] + [
        f"{r['user']},{r['price']!r},{'' if r['vip'] is None else str(r['vip']).lower()}" for r in RECORDS
    ]
    table = pa.Table.from_pylist(RECORDS)
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return {
        "json": (json.dumps(RECORDS).encode(), JSON),
        "envelope": (json.dumps({"records": RECORDS}).encode(), JSON),
        "jsonl": ("".join(json.dumps(r) + "\n" for r in RECORDS).encode(), "application/x-ndjson"),
        "csv": (("\n".join(rows) + "\n").encode(), "text/csv"),
        "tsv": (("\n".join(rows) + "\n").replace(",", "\t").encode(), "text/tab-separated-values"),
        "arrow": (sink.getvalue(), "application/vnd.apache.arrow.stream"),
    }


def shown(value: Any) -> Any:
    """A number as the command line writes it."""
    return float(f"{value:.9g}") if isinstance(value, float) else value


@pytest.mark.parametrize("kind", ["json", "envelope", "jsonl", "csv", "tsv", "arrow"])
def test_server_python_and_command_line_agree(served: tuple[Path, Client], kind: str, tmp_path: Path) -> None:
    path, client = served
    body, content_type = bodies()[kind]
    answer = client.ask("POST", "/v1/predict", body, content_type)
    assert answer.status == 200, answer.data
    model = Model.load(path)
    assert [one["prediction"] for one in answer.json["predictions"]] == model.predict(RECORDS).tolist()
    assert answer.json["version"] == model.learner.rows_seen
    if model.has_classes:
        found = [list(one["probabilities"].values()) for one in answer.json["predictions"]]
        assert found == model.predict_proba(RECORDS).tolist()
        assert list(answer.json["predictions"][0]["probabilities"]) == model.classes
    (tmp_path / "rows.jsonl").write_bytes(bodies()["jsonl"][0])
    command = ["predict", str(path), str(tmp_path / "rows.jsonl"), "--output", str(tmp_path / "p.jsonl")]
    assert main([*command, "--quiet"]) == 0
    lines = [json.loads(line)["prediction"] for line in (tmp_path / "p.jsonl").read_text().splitlines()]
    assert [shown(one["prediction"]) for one in answer.json["predictions"]] == lines


def test_one_record_is_answered_as_one(served: tuple[Path, Client]) -> None:
    path, client = served
    model = Model.load(path)
    for record in RECORDS:
        plain, wrapped = (
            client.post("/v1/predict", record).json,
            client.post("/v1/predict", {"record": record}).json,
        )
        assert plain == wrapped
        assert plain["prediction"] == model.predict(record).tolist()[0]


def test_vw_text(served: tuple[Path, Client]) -> None:
    path, client = served
    answer = client.ask("POST", "/v1/predict", VW.encode(), "text/vw")
    assert [one["prediction"] for one in answer.json["predictions"]] == Model.load(path).predict(VW).tolist()


def test_contributions_of_a_record_are_named_and_sorted(served: tuple[Path, Client]) -> None:
    _, client = served
    answer = client.post("/v1/predict?explain=true", RECORDS[0]).json
    names = [entry["name"] for entry in answer["contributions"]]
    assert sorted(names) == ["price", "user=anna", "vip"]
    sizes = [abs(entry["contribution"]) for entry in answer["contributions"]]
    assert sizes == sorted(sizes, reverse=True)
    assert "intercept" in answer


def test_open_inference(served: tuple[Path, Client]) -> None:
    path, client = served
    model = Model.load(path)
    known = client.get("/v2/models/model").json
    assert {column["name"] for column in known["inputs"]} == {"user", "price", "vip"}
    tensors = [
        {"name": "user", "shape": [2], "datatype": "BYTES", "data": ["anna", "bob"]},
        {"name": "price", "shape": [2, 1], "datatype": "FP64", "data": [[3.5], [0.0]]},
        {"name": "vip", "shape": [2], "datatype": "BOOL", "data": [True, False]},
    ]
    answer = client.post("/v2/models/model/infer", {"id": "x", "inputs": tensors}).json
    assert answer["id"] == "x"
    assert answer["outputs"][0]["data"] == model.predict(RECORDS[:2]).tolist()
    if model.has_classes:
        assert answer["outputs"][1]["data"] == model.predict_proba(RECORDS[:2]).ravel().tolist()


@pytest.mark.parametrize(
    "changed",
    [
        {"datatype": []},
        {"datatype": {}},
        {"datatype": None},
        {"shape": [True]},
        {"shape": "1"},
        {"shape": [-1]},
        {"data": 1},
    ],
    ids=str,
)
def test_tensors_of_no_kind(served: tuple[Path, Client], changed: dict[str, object]) -> None:
    tensor = {"name": "price", "shape": [1], "datatype": "FP64", "data": [1.0], **changed}
    answer = served[1].post("/v2/models/model/infer", {"inputs": [tensor]})
    assert (answer.status, answer.json["error"]["code"]) == (400, "bad_tensor")


def test_a_rate_is_on_the_scale_of_its_labels(tmp_path: Path) -> None:
    with serving(tmp_path / "state", "--loss", "poisson") as server:
        client = server.client()
        for number in range(30):
            client.post("/v1/learn", {"x": 1.0, "label": 7 + number % 3})
        answer = client.post("/v1/predict", {"x": 1.0}).json
        assert answer["prediction"] == pytest.approx(math.exp(answer["score"]))
        assert 4 < answer["prediction"] < 12


def test_tables_without_columns_of_the_model(tmp_path: Path) -> None:
    """Some may be missing, even if warnings are errors; with none, no prediction and no content in the log."""
    path = trained(tmp_path, "two")
    settings = {"PYTHONWARNINGS": "error"}
    with serving(tmp_path / "state", str(path), "--log-requests", env=settings) as server:
        client = server.client()
        some = client.ask("POST", "/v1/predict", b"user\nanna\n", "text/csv")
        expected = client.post("/v1/predict", [{"user": "anna"}])
        assert (some.status, expected.status) == (200, 200)
        assert some.json["predictions"] == expected.json["predictions"]
        header = b'secret,"a\nskn: POST forged 200"\n1,2\n'
        none = client.ask("POST", "/v1/predict", header, "text/csv")
        tensor = {"name": "secret", "shape": [1], "datatype": "FP64", "data": [1.0]}
        same = client.post("/v2/models/model/infer", {"inputs": [tensor]})
        for answer in (none, same):
            assert answer.status == 400
            assert (
                "none of the columns that the model knows is there: it knows "
                in answer.json["error"]["message"]
            )
        server.stop()  # when all lines are written
    log = [line for line in server.lines if "POST" in line]
    assert len(log) == 4
    assert "secret" not in "".join(log)
    assert not any("forged" in line for line in server.lines)
