"""Byte order marks are left out, UTF-16 is refused, whatever the format and however the text is cut."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tests.streams.format_support import drain

TEXTS = {
    "svm": "1 1:1 2:3\n-1 1:2\n",
    "vw": "1 |a x:1 y\n-1 'tag| z\n",
    "csv": '"label","a,b",c\n1,2,x\n-1,3,y\n',
    "tsv": "label\ta\n1\t2\n-1\t3\n",
    "jsonl": '{"label":1,"a":2}\n{"label":-1,"a":3}\n',
}
every_format = pytest.mark.parametrize("ending", TEXTS)


@pytest.mark.parametrize("batch_bytes", [1, 7, 1 << 20])
@pytest.mark.parametrize("threads", [1, 2])
@every_format
def test_a_byte_order_mark_changes_nothing(
    ending: str, threads: int, batch_bytes: int, tmp_path: Path
) -> None:
    path, marked = tmp_path / f"plain.{ending}", tmp_path / f"marked.{ending}"
    path.write_text(TEXTS[ending])
    marked.write_text(TEXTS[ending], encoding="utf-8-sig")
    options = {"threads": threads, "batch_bytes": batch_bytes}
    rows, error = drain(path, **options)
    assert (len(rows), error) == (2, "")
    assert drain(marked, **options) == (rows, "")
    assert drain([str(marked), str(marked)], **options) == (rows * 2, "")  # of each file


@every_format
def test_a_format_is_recognised_behind_a_byte_order_mark(ending: str, tmp_path: Path) -> None:
    path, marked = tmp_path / f"plain.{ending}", tmp_path / "marked"
    path.write_text(TEXTS[ending])
    marked.write_bytes(gzip.compress(TEXTS[ending].encode("utf-8-sig")))
    assert drain(marked) == drain(path)


@every_format
def test_columns_of_errors_are_those_of_the_text(ending: str, tmp_path: Path) -> None:
    wrong = {
        "svm": ("1 x\n", 3),
        "vw": ("1 |a x:y\n", 8),
        "csv": ("label,label\n", 1),
        "tsv": ("label\tlabel\n", 1),
        "jsonl": ('{"label": x}\n', 11),
    }
    text, column = wrong[ending]
    path = tmp_path / f"marked.{ending}"
    path.write_text(text, encoding="utf-8-sig")
    assert drain(path)[1].startswith(f"{path}:1:{column}: ")


@pytest.mark.parametrize("ending", TEXTS)
def test_a_file_of_a_byte_order_mark_is_empty(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"marked.{ending}"
    path.write_bytes(b"\xef\xbb\xbf")
    assert drain(path) == ([], f"{path}:1:1: no examples")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("on_error", ["stop", "skip"])
@every_format
def test_utf_16_is_refused(ending: str, on_error: str, encoding: str, tmp_path: Path) -> None:
    """Even as VW text without labels, of which any bytes would be names."""
    for text in (TEXTS[ending], "| a b\n| c\n"):
        path = tmp_path / f"wide.{ending}"
        path.write_bytes(text.encode(encoding))
        rows, error = drain(path, on_error=on_error)
        assert rows == []
        assert error == (
            f"{path}:1:1: expected UTF-8, got UTF-16: iconv -f UTF-16 -t UTF-8 turns one into the other"
        )
