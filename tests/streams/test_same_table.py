"""One table in any format: the same features, the same model to the last byte, the same predictions."""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import sketchnewton
from sketchnewton.core.batch import Batch, ParseError
from sketchnewton.model import Model
from sketchnewton.river import ModelRegressor
from sketchnewton.serve.bodies import format_of, records_of
from sketchnewton.streams import Columns, Names, open_stream, read_records
from tests.streams.format_support import rows_of
from tests.streams.random_tables import Table

BODIES = {
    "text/csv": "csv",
    "text/tab-separated-values": "tsv",
    "application/x-ndjson": "jsonl",
    "application/vnd.apache.arrow.stream": "arrow",
}
NULLABLE = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype(), pa.string(): pd.StringDtype()}


def formats_of(table: Table) -> list[str]:
    flat = ["csv", *(["tsv"] if table.fits_tsv else [])]
    return [*([] if table.nested else flat), "jsonl", "parquet", "feather", "arrow"]


def in_memory(table: Table) -> dict[str, Any]:
    """The table as people have it in Python."""
    arrow = table.arrow()
    frame = arrow.to_pandas(integer_object_nulls=True)  # or long integers beside a gap would be rounded
    return {
        "dicts": table.records,
        "generator": (record for record in table.records),
        "pyarrow": arrow,
        "polars": pl.from_arrow(arrow),
        "polars' dicts": pl.from_arrow(arrow).to_dicts(),  # type: ignore[union-attr]
        "pandas": frame,
        "pandas' dicts": frame.to_dict("records"),
        "pandas, nullable": arrow.to_pandas(types_mapper=NULLABLE.get),
        "pandas, Arrow's types": arrow.to_pandas(types_mapper=pd.ArrowDtype),
    }


@pytest.mark.slow
@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("seed", range(60))
def test_the_same_features(seed: int, nested: bool, tmp_path: Path) -> None:
    table = Table.drawn(seed, nested=nested)
    options: dict[str, Any] = {"columns": table.columns, "features": table.features}
    for exact in (False, True):

        def read(batches: Iterator[Batch], names: Names | None) -> tuple[object, object]:
            return rows_of(list(batches)), None if names is None else sorted(names.readable().values())

        found = {}
        for kind in formats_of(table):
            table.write(kind, tmp_path / f"table.{kind}")
            names = Names(exact=True) if exact else None
            stream = open_stream(tmp_path / f"table.{kind}", names=names, **options)
            found[kind] = read(iter(stream), names)
        for kind, records in in_memory(table).items():
            names = Names(exact=True) if exact else None
            found[kind] = read(read_records(records, names=names, **options), names)
        for kind, rows in found.items():
            assert rows == found["parquet"], kind


@pytest.mark.slow
@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("seed", range(100, 115))
def test_the_same_model_and_predictions(seed: int, nested: bool, tmp_path: Path) -> None:
    """Trained on one format and served on another, by any interface."""
    table = Table.drawn(seed, nested=nested)
    exact = bool(seed % 2)
    sources: dict[str, Any] = {kind: tmp_path / f"table.{kind}" for kind in formats_of(table)}
    for kind, path in sources.items():
        table.write(kind, path)
    models, digests = {}, {}
    for kind, records in {**sources, **in_memory(table)}.items():
        models[kind] = Model(
            sketchnewton.NewtonBank(), columns=table.columns, features=table.features, exact_names=exact
        )
        models[kind].learn(records)
        models[kind].save(tmp_path / "m.skn")
        digests[kind] = hashlib.sha256((tmp_path / "m.skn").read_bytes()).hexdigest()
    assert digests == dict.fromkeys(digests, digests["parquet"])
    expected = models["parquet"].predict(sources["parquet"]).tolist()
    for kind, records in {**sources, **in_memory(table)}.items():
        assert models["jsonl"].predict(records).tolist() == expected, kind
    for door, predicted in through_other_doors(models["feather"], table, sources).items():
        assert predicted == expected, door


def through_other_doors(model: Model, table: Table, paths: dict[str, Path]) -> dict[str, list[float]]:
    """The predictions one by one, by River's interface, and for the bodies that the server takes."""
    bare = [{name: value for name, value in record.items() if name != "label"} for record in table.records]
    river = ModelRegressor(model)
    body = "[" + ",".join(table.lines().splitlines()) + "]"
    served = {
        content: model.predict(records_of(format_of(content), paths[kind].read_bytes()).records).tolist()
        for content, kind in BODIES.items()
        if kind in paths
    }
    return {
        "one by one": np.concatenate([model.predict(record) for record in table.records]).tolist(),
        "River": [river.predict_one(record) for record in bare],
        "server, JSON": model.predict(records_of("json", body.encode()).records).tolist(),
        **served,
    }


@pytest.mark.parametrize("kind", ["number", "category", "text", "boolean"])
def test_an_infinite_number_is_refused(kind: str, tmp_path: Path) -> None:
    """Of a number's own type; CSV has none, and there ``inf`` may be a category."""
    field = {"number": "numeric", "category": "categorical"}.get(kind, kind)
    columns = Columns(**{field: ("x",)})
    arrow = pa.table({"label": [1.0, 1.0], "x": [1.0, float("-inf")]})
    pa.parquet.write_table(arrow, tmp_path / "t.parquet")
    (tmp_path / "t.jsonl").write_text('{"label": 1, "x": 1.0}\n{"label": 1, "x": -Infinity}\n')
    for path in tmp_path.iterdir():
        with pytest.raises(ParseError, match=r"expected a finite number .*'x', got '-(inf|Infinity)'"):
            list(open_stream(path, columns=columns))
    for records in (arrow, arrow.to_pandas(), arrow.to_pylist()):
        with pytest.raises(ParseError, match=r"record 2: expected a finite number for 'x', got '-inf'"):
            list(read_records(records, columns=columns))


def test_lists_and_objects_in_tables() -> None:
    """As in JSON: what is missing, what is not there, what is left out."""
    records: list[dict[str, Any]] = [
        {
            "words": ["b", None, "a"],
            "numbers": [0.5, None, float("nan"), 2.0],
            "user": {"age": 3, "city": "Rome"},
        },
        {"words": None, "numbers": None, "user": None},
        {"words": [], "numbers": [], "user": {"age": None, "city": "NA"}},
    ]
    names = Names(exact=True)
    rows = rows_of(list(read_records(pa.Table.from_pylist(records), names=names)))
    shown = names.readable()
    assert [{shown[index]: value for index, value in row[-1].items()} for row in rows] == [
        {"words=b": 1, "words=a": 1, "numbers^0": 0.5, "numbers^3": 2, "user^age": 3, "user^city=Rome": 1},
        {"words=": 1, "numbers=": 1, "user=": 1},
        {"user^age=": 1, "user^city=": 1},
    ]
    for drop in (("words", "user|age"), ("user",)):
        columns = Columns(drop=drop)
        read = rows_of(list(read_records(pa.Table.from_pylist(records), columns=columns)))
        assert read == rows_of(list(read_records(records, columns=columns)))


def test_pandas_writes_what_is_read_alike(tmp_path: Path) -> None:
    """Whole numbers with a gap are floats to pandas; as categories they are the same as whole numbers."""
    frame = pd.DataFrame(
        {
            "label": [1, -1, 1, -1],
            "store": [7, None, 12, 7],
            "open": [True, False, True, True],
            "opens": [datetime.time(7, 30), datetime.time(0, 0), None, datetime.time(1, 2, 3, 40)],
            "since": pd.to_datetime(
                ["2024-01-31 12:30", "2024-02-01", None, "2023-05-06 07:08:09.25"], format="ISO8601"
            ),
        }
    )
    frame.assign(opens=["07:30:00", "00:00:00", None, "01:02:03.00004"]).to_csv(
        tmp_path / "a.csv", index=False
    )
    plain = frame.assign(opens=["07:30:00", "00:00:00", None, "01:02:03.00004"])
    plain.to_json(tmp_path / "a.jsonl", orient="records", lines=True, date_format="iso", date_unit="us")
    frame.to_parquet(tmp_path / "a.parquet")
    frame.to_feather(tmp_path / "a.feather")
    columns = Columns(categorical=("store",))
    read = {path.name: rows_of(list(open_stream(path, columns=columns))) for path in tmp_path.iterdir()}
    read["memory"] = rows_of(list(read_records(frame, columns=columns)))
    for name, rows in read.items():
        assert rows == read["a.csv"], name
    names = Names(exact=True)
    list(open_stream(tmp_path / "a.csv", columns=columns, names=names))
    assert sorted(names.readable().values()) == sorted(
        ["store=7", "store=", "store=12", "open", "since=", "since=2024-02-01"]
        + [f"opens={time}" for time in ("07:30:00", "00:00:00", "", "01:02:03.00004")]
        + [f"since={moment}" for moment in ("2024-01-31T12:30:00", "2023-05-06T07:08:09.25")]
    )
