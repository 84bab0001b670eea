"""Interactions of columns by their names: products of all features of the one and all of the other."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from sketchnewton.cli.main import main
from sketchnewton.streams import Columns, Features, Names, open_stream, read_records
from tests.streams.format_support import drain

RECORDS = [
    {"label": 1, "city": "Rome", "device": "phone", "price": 2.0, "note": "good food"},
    {"label": -1, "city": None, "device": "desk", "price": 0.0, "note": "bad"},
    {"label": -1, "city": "Oslo", "device": "desk", "price": 3.0, "note": None},
]


def named(records: object, *terms: str, **how: object) -> list[dict[str, float]]:
    """The features of each row by name, without the plain ones."""
    names = Names(exact=True)
    features = Features(interactions=terms)
    batches = list(read_records(records, features=features, names=names, **how))  # type: ignore[arg-type]
    known = names.readable()
    rows = []
    for batch in batches:
        for k in range(len(batch)):
            row = batch[k : k + 1]
            pairs = zip(row.indices.tolist(), row.data.tolist(), strict=True)
            rows.append({known[index]: value for index, value in pairs if "*" in known[index]})
    return rows


@pytest.mark.parametrize("kind", ["dicts", "table"])
def test_products(kind: str) -> None:
    records = RECORDS if kind == "dicts" else pa.Table.from_pylist(RECORDS)
    assert named(records, "city,price") == [{"city=Rome*price": 2.0}, {}, {"city=Oslo*price": 3.0}]
    assert named(records, "city,device") == [
        {"city=Rome*device=phone": 1.0},
        {"city=*device=desk": 1.0},
        {"city=Oslo*device=desk": 1.0},
    ]
    assert named(records, "note,price", "price,price", columns=Columns(text=("note",)))[0] == {
        "note=good*price": 2.0,
        "note=food*price": 2.0,
        "price*price": 4.0,
    }
    three = named(records, "city,device,price")
    assert three == [{"city=Rome*device=phone*price": 2.0}, {}, {"city=Oslo*device=desk*price": 3.0}]


def test_all_formats_and_batches(tmp_path: Path) -> None:
    table = pa.Table.from_pylist(RECORDS)
    pa.parquet.write_table(table, tmp_path / "a.parquet")
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(record) + "\n" for record in RECORDS))
    table.to_pandas().to_csv(tmp_path / "a.csv", index=False)
    features = Features(interactions=("city,device",), ngram=("2",))
    found = [drain(path, features=features) for path in sorted(tmp_path.iterdir())]
    assert found[0] == found[1] == found[2]
    assert found[0][1] == ""
    assert drain(tmp_path / "a.csv", features=features, batch_bytes=1) == found[0]
    plain = drain(tmp_path / "a.csv", features=Features(ngram=("2",)))[0]
    for row, without in zip(found[0][0], plain, strict=True):
        assert len(row[4]) == len(without[4]) + 1


def test_what_cannot_be(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="must be names of columns"):
        Features(interactions=("a,",))
    data, lines = tmp_path / "a.csv", tmp_path / "a.vw"
    data.write_text("label,city,price\n1,Rome,2\n-1,Oslo,3\n")
    lines.write_text("1 | a b\n")
    assert main(["train", str(data), "--interactions", "city,prize"]) == 1
    assert "no column of features is named 'prize' (did you mean 'price'?)" in capsys.readouterr().err
    assert main(["train", str(lines), "--interactions", "city,price"]) == 1
    assert "interactions='city,price' are of columns: they need a table" in capsys.readouterr().err
    with pytest.raises(ValueError, match="cannot be combined with others where names are exact"):
        list(open_stream(data, features=Features(interactions=("city,price", "  ")), names=Names(exact=True)))


def test_they_are_remembered(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, model = tmp_path / "a.csv", str(tmp_path / "m.skn")
    rows = "".join(f"{1 if (k % 2) == (k % 3 > 0) else -1},c{k % 2},d{k % 3}\n" for k in range(300))
    data.write_text("label,city,device\n" + rows)
    assert main(["train", str(data), "--interactions", "city,device", "--model", model, "--quiet"]) == 0
    assert main(["test", model, str(data), "--json", "--quiet"]) == 0
    assert json.loads(capsys.readouterr().out)["error"] == 0.0
    data.write_text("city\nc1\n")  # where one is missing
    assert main(["predict", model, str(data)]) == 0
