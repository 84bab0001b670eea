"""Random tables that are hard to read alike, and each of them in every format.

A table's cells are Python's values. Numbers are written with all their digits, as Python and pandas do; what
a format leaves open (how to write true, a missing value, a date with a time) is drawn at random.
"""

from __future__ import annotations

import csv
import datetime
import io
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet

from sketchnewton.features.kinds import MISSING, looks_like_number
from sketchnewton.streams import Columns, Features

Record = dict[str, Any]

NAMES = (
    *(
        "price",
        "count",
        "größe",
        "e\u0301te\u0301",
        "user|age",
        "user|city",
        "a=b",
        'say "x"',
        "x,y;z",
        "東京",
        "-",
        "0",
    ),
    *("Ω" * 300, "emoji 👩‍👩‍👧", "two words", "naïve|café|x", "1.0", "null", "'", "\\", "a\u200bb"),
)
CODES = (
    "007",
    "1e5",
    "1.0",
    "1",
    "-0.0",
    "0",
    "-0",
    "1.50",
    "1_000",
    "0x1F",
    "+5",
    "inf",
    "1e400",
    "٣",
    "１２",
    ".5",
    "5.",
)
WORDS = (
    *(
        "Rome",
        "rome",
        "São Paulo",
        "東京",
        "e\u0301",
        "é",
        'say "hi"',
        "a,b;c",
        "x\ny",
        "x\r\ny",
        "-",
        "=",
        "None at all",
    ),
    *(
        "İstanbul",
        "straße",
        "STRASSE",
        "ß",
        "ǅ",
        "a\u200bb",
        " x ",
        "\ufeffx",
        "👩‍👩‍👧",
        "true story",
        "\u00a0",
        "|",
        "'",
    ),
    *(
        "snake_case",
        "don't",
        "C++",
        "x" * 2000,
        "\\",
        "\\n",
        "#",
        "{}",
        "[1]",
        "a\tb",
        "\x7f",
        "\u2028",
        "Ⅷ",
        "x²",
    ),
)
DATES = (
    *("2024-01-31", "2024-02-30", "2024-01-31 12:30", "2024-01-31T12:30:00.500", "2024-01-31 00:00:00"),
    *(
        "2024-01-31T23:30:00-05:00",
        "12:30:00.500",
        "12:30:00.000",
        "12:30",
        "2024-01-31T12:30:00Z",
        "20240131",
    ),
    *("2024-01-31T00:00:00+00:00", "0001-01-01", "9999-12-31T23:59:59.999999", "2024-W05-3", "31.1.2024"),
)
TRUE, FALSE = ("true", "True", "TRUE", "yes", "Yes", "1"), ("false", "False", "FALSE", "no", "No", "0")


@dataclass
class Column:
    """A column; ``kind`` is what it must be said to be, None where each format finds that out by itself."""

    values: list[Any]
    type: pa.DataType
    kind: str | None = None


Make = Callable[[Random, int], Column]


def _floats(random: Random, rows: int) -> Column:
    def one() -> float:
        drawn = random.choice(
            (0.0, -0.0, 1.0, -7.0, 0.1, 2.5e-300, 5e-324, 1e16, 123456789012345680.0, -1e22, 1e-5)
        )
        return drawn if random.random() < 0.4 else random.gauss(0.0, 10.0 ** random.randint(-20, 20))

    return Column(
        [one() for _ in range(rows)], pa.float64(), random.choice((None, "category", "text", "number"))
    )


def _integers(random: Random, rows: int) -> Column:
    edges = (0, 1, -1, 2**53, 2**53 + 1, -(2**63), 2**63 - 1, 10**15)
    values = [random.choice(edges) if random.random() < 0.4 else random.randint(-99, 99) for _ in range(rows)]
    return Column(values, pa.int64(), random.choice((None, "category", "text:2", "number")))


def _booleans(random: Random, rows: int) -> Column:
    kind = random.choice((None, None, "number", "boolean", "category", "text"))
    return Column([random.random() < 0.5 for _ in range(rows)], pa.bool_(), kind)


def _ones(random: Random, rows: int) -> Column:
    """Numbers that are booleans."""
    values, of = random.choice((([0, 1], pa.int8()), ([0.0, -0.0, 1.0], pa.float64())))
    return Column([random.choice(values) for _ in range(rows)], of, "boolean")


def _texts(random: Random, rows: int) -> Column:
    from_what = random.choice((CODES, WORDS, DATES, WORDS + CODES + DATES, TRUE + FALSE, ("only one",)))
    values = [random.choice(from_what) for _ in range(rows)]
    if random.random() < 0.3:
        values = [" ".join(random.choices(from_what, k=3)) for _ in range(rows)]
    kind = random.choice(("category", "text", "text:3"))
    found = all(_is_word(value) for value in values)  # so that the first rows tell, whichever they are
    return Column(
        values,
        random.choice((pa.string(), pa.large_string())),
        None if found and kind == "category" else kind,
    )


def _is_word(text: str) -> bool:
    return not looks_like_number(text.encode()) and text.strip().lower() not in {*TRUE, *FALSE, *MISSING}


def _days(random: Random, rows: int) -> Column:
    values = [datetime.date.fromordinal(random.randint(1, 3652059)) for _ in range(rows)]
    return Column(values, pa.date32(), random.choice((None, "date", "text")))


def _moments(random: Random, rows: int) -> Column:
    zone = random.choice((None, datetime.UTC))
    unit = random.choice(("s", "ms", "us", "ns"))
    parts = {"s": 10**6, "ms": 1000}.get(unit, 1)

    def one() -> datetime.datetime:
        moment = datetime.datetime(1700, 1, 1, tzinfo=zone) + datetime.timedelta(
            seconds=random.randint(0, 17 * 10**9)
        )
        if random.random() < 0.2:
            moment = moment.replace(hour=0, minute=0, second=0)
        fraction = random.choice((0, 500_000, 123_000, 120, random.randrange(10**6)))
        return moment.replace(microsecond=fraction // parts * parts)

    of = pa.timestamp(unit, None if zone is None else "UTC")
    return Column([one() for _ in range(rows)], of, random.choice((None, "date", "text", "category")))


def _times(random: Random, rows: int) -> Column:
    drawn = (
        datetime.time(0, 0),
        datetime.time(7, 30),
        datetime.time(1, 2, 3, 40),
        datetime.time(23, 59, 59, 500_000),
    )
    return Column([random.choice(drawn) for _ in range(rows)], pa.time64("us"), random.choice((None, "text")))


def _nothing(random: Random, rows: int) -> Column:
    of = random.choice((pa.null(), pa.string(), pa.float64(), pa.bool_(), pa.date32()))
    return Column([None] * rows, of, random.choice((None, "category", "number", "text", "date", "boolean")))


def _lists(random: Random, rows: int) -> Column:
    def numbers() -> list[object]:
        return [random.choice((None, 0.0, -1.5, 2.0, 1e-9)) for _ in range(random.randint(0, 4))]

    def words() -> list[object]:
        return [random.choice((None, *WORDS[:12], "NA", "7")) for _ in range(random.randint(0, 4))]

    make, of = random.choice(((numbers, pa.float64()), (words, pa.string())))
    return Column([make() for _ in range(rows)], random.choice((pa.list_, pa.large_list))(of))


def _objects(random: Random, rows: int) -> Column:
    def one() -> Record:
        return {
            "n": random.choice((None, 2.0, 0.0)),
            "c": random.choice((None, *WORDS[:9])),
            "b": random.choice((None, True, False)),
            "v": random.choice((None, [], [1.0, 2.0])),
        }

    fields = {"n": pa.float64(), "c": pa.string(), "b": pa.bool_(), "v": pa.list_(pa.float64())}
    return Column([one() for _ in range(rows)], pa.struct(fields))


FLAT: tuple[Make, ...] = (
    *(
        _floats,
        _integers,
        _booleans,
        _ones,
        _texts,
        _texts,
        _texts,
        _days,
        _moments,
        _moments,
        _times,
        _nothing,
    ),
)
NESTED: tuple[Make, ...] = (_lists, _objects)


@dataclass
class Table:
    """A random table: records, the types that Arrow has for them, and what must be said of its columns."""

    records: list[Record]
    types: dict[str, pa.DataType]
    columns: Columns
    features: Features
    nested: bool
    random: Random

    @classmethod
    def drawn(cls, seed: int, *, nested: bool = False) -> Table:
        """The table of a seed. Only JSON, Parquet, Arrow and objects in memory can have ``nested`` ones."""
        random = Random(seed)
        rows = random.choice((1, 2, 5, 12, 30))
        names = random.sample(NAMES, random.randint(1, 6))
        if nested:
            names = [name for name in names if "|" not in name]
        made = {name: random.choice((*FLAT, *NESTED * 3) if nested else FLAT)(random, rows) for name in names}
        for column in made.values():
            gaps = random.choice((0.0, 0.0, 0.3, 0.9))
            column.values = [None if random.random() < gaps else value for value in column.values]
            if random.random() < 0.1:
                column.values = column.values[:1] * rows  # a single value
        for column in made.values():
            if column.kind is None and pa.types.is_string(column.type) | pa.types.is_large_string(
                column.type
            ):
                column.kind = (
                    None
                    if any(value is not None and _is_word(value) for value in column.values)
                    else "category"
                )
        labels = Column([random.choice((-1.0, 1.0)) for _ in range(rows)], pa.float64())
        weights = Column([random.choice((1.0, 0.5, 3.0)) for _ in range(rows)], pa.float64())
        tags = Column([random.choice((None, "täg", "7")) for _ in range(rows)], pa.string())
        whole = {"label": labels, "_weight": weights, "_tag": tags, **made}
        for name in ("_weight", "_tag"):
            if random.random() < 0.5:
                del whole[name]
        kinds = {
            kind: tuple(n for n, c in made.items() if c.kind == kind)
            for kind in ("category", "number", "boolean", "date")
        }
        text = tuple(
            f"{n}:{(c.kind or '')[5:] or 1}" for n, c in made.items() if (c.kind or "").startswith("text")
        )
        columns = Columns(
            categorical=kinds["category"],
            numeric=kinds["number"],
            boolean=kinds["boolean"],
            dates=kinds["date"],
            text=text,
            missing=random.choice(((), ("=", "-", "7", "-7", "0.1"))),
        )
        features = Features(interactions=("u ",)) if random.random() < 0.3 else Features()
        records = [{name: column.values[row] for name, column in whole.items()} for row in range(rows)]
        return cls(
            records, {name: column.type for name, column in whole.items()}, columns, features, nested, random
        )

    @property
    def fits_tsv(self) -> bool:
        """Whether no cell has a tab or a line end, which this format has no place for."""
        texts = [
            text for record in self.records for text in (*record, *record.values()) if isinstance(text, str)
        ]
        return not any(c in text for text in texts for c in "\t\r\n")

    def arrow(self) -> pa.Table:
        return pa.table(
            {name: pa.array([r[name] for r in self.records], of) for name, of in self.types.items()}
        )

    # --- files

    def write(self, kind: str, path: Path) -> None:
        """The table in a format."""
        if kind == "parquet":
            pa.parquet.write_table(self.arrow(), path)
        elif kind == "feather":
            pa.feather.write_feather(self.arrow(), str(path))
        elif kind == "arrow":
            with pa.ipc.new_stream(str(path), self.arrow().schema) as writer:
                writer.write_table(self.arrow(), max_chunksize=3)
        else:
            text = (
                self.lines()
                if kind == "jsonl"
                else self.delimited("\t" if kind == "tsv" else self.random.choice(",;"))
            )
            path.write_bytes(text.encode())

    def delimited(self, delimiter: str) -> str:
        rows = [
            list(self.types),
            *([self._cell(*pair) for pair in record.items()] for record in self.records),
        ]
        if delimiter == "\t":
            return "".join("\t".join(row) + "\n" for row in rows)
        text = io.StringIO(newline="")
        quoting = self.random.choice((csv.QUOTE_MINIMAL, csv.QUOTE_ALL))
        end = self.random.choice(("\n", "\r\n"))
        csv.writer(text, delimiter=delimiter, lineterminator=end, quoting=quoting).writerows(rows)
        return text.getvalue()

    def lines(self) -> str:
        ascii_only = self.random.random() < 0.5
        made = [{name: self._value(name, value) for name, value in record.items()} for record in self.records]
        return "".join(json.dumps(record, ensure_ascii=ascii_only) + "\n" for record in made)

    def _cell(self, name: str, value: object) -> str:
        if value is None:
            return "" if name == "_tag" else self.random.choice((*MISSING, " NA", "NA "))
        if isinstance(value, bool):
            kind = self.columns.known_kinds().get(name, "boolean")
            words = TRUE if value else FALSE
            # Of a category or a text only what is true in every format is one.
            return self.random.choice(words[:3] if kind.startswith(("category", "text")) else words)
        if isinstance(value, datetime.datetime) and self.random.random() < 0.5:
            return str(value)
        return _iso(value) if isinstance(value, datetime.date | datetime.time) else str(value)

    def _value(self, name: str, value: Any) -> Any:
        if value is None:
            return None if name == "_tag" else self.random.choice((None, math.nan, *MISSING))
        if (
            isinstance(value, float)
            and value.is_integer()
            and abs(value) < 1e15
            and self.random.random() < 0.5
        ):
            return int(value)  # as JavaScript writes it
        return _iso(value) if isinstance(value, datetime.date | datetime.time) else value


def _iso(value: Any) -> str:
    return str(value.isoformat())
