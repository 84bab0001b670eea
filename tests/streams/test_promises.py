"""Every format keeps what every reader promises (`sketchnewton.testing`)."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

from sketchnewton.streams import FORMATS, WRITABLE, Batch, open_stream, open_writer
from sketchnewton.testing import READER_PROMISES, check_reader
from tests.streams.format_support import make_rows

BAD = {
    "svmlight": b"1 1:x\n",
    "vw": b"1 | a:x\n",
    "csv": b"x" + b"," * 40 + b"\n",
    "tsv": b"x" + b"\t" * 40 + b"\n",
    "jsonl": b"[1]\n",
}
# No check of bytes stands between damage and the threads of pyarrow: test_changed_arrow_files has its own process.
UNCHECKED = {"parquet": "damaged", "arrow": "damaged"}


def sample(format: str, folder: Path) -> tuple[bytes, list[Batch] | None]:
    """A file of that format, and its rows."""
    path = folder / f"sample.{format}"
    if format in WRITABLE:
        batch = make_rows(3, 25, weights=False, tags=False)
        with open_writer(path, columns=40) as writer:
            writer.write(batch)
        return path.read_bytes(), [batch]
    table = pa.table({"label": [1.0, 0.0, 1.0], "x": [1, 2, 3], "c": ["a", "bc", None]})
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    return path.read_bytes(), None


@pytest.mark.parametrize("promise", READER_PROMISES)
@pytest.mark.parametrize("format", FORMATS)
def test_promise(format: str, promise: str, tmp_path: Path) -> None:
    if promise.startswith(UNCHECKED.get(format, "-")):
        return
    content, rows = sample(format, tmp_path)
    check_reader(
        partial(open_stream, format=format),
        content,
        expected=rows,
        bad=BAD.get(format),
        lines=format in BAD,
        ending=f".{format}",
        only=[promise],
    )
