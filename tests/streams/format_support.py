"""Rows to write and rows that were read, for the tests of formats."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from sketchnewton.streams import Batch, hash_feature, open_stream
from sketchnewton.testing.readers import Row, rows_of
from sketchnewton.testing.readers import drain as drained

__all__ = ["CSV", "drain", "hashed", "make_rows", "rows_of"]


def drain(path: Path | str | list[str], **options: object) -> tuple[list[Row], str]:
    """All rows that arrive, and the error at the end."""
    return drained(open_stream(path, **options))  # type: ignore[arg-type]


def make_rows(seed: int, count: int, *, weights: bool, tags: bool, labels: bool = True) -> Batch:
    random = np.random.default_rng(seed)
    lengths = random.integers(0, 6, count)
    indptr = np.concatenate(([0], np.cumsum(lengths)))
    indices = np.concatenate([np.sort(random.choice(40, n, replace=False)) for n in lengths] or [[]])
    data = random.normal(size=len(indices)) * 10.0 ** random.integers(-200, 200, len(indices))
    return Batch(
        indptr.astype(np.int64),
        indices.astype(np.int64),
        np.where(random.random(len(data)) < 0.3, 1.0, data),
        random.normal(size=count) if labels else np.full(count, np.nan),
        random.random(count) if weights else None,
        tags=[b"t%d" % i for i in range(count)] if tags else None,
    )


CSV = (
    "label,age,city,user|id,note\n"
    "1,33,Rome,7,\n"
    '-1,,"New York, NY",8,"say ""hi"""\n'
    "\n"
    '0.5,0,Rome,9,"two\nlines"\n'
)


def hashed(*names: str, values: dict[str, float] | None = None) -> dict[int, float]:
    given = dict.fromkeys(names, 1.0) | (values or {})
    return {
        hash_feature(*reversed(name.split("|", 1)) if "|" in name else (name,)): value
        for name, value in given.items()
    }
